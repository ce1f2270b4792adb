"""The use case behind the SQL of a query: body → request → plan → statement → its text."""

from collections.abc import Callable

from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.query.service import QueryService


class SqlService:
    """Writes the SQL of custom queries, and runs none; for one event loop and many tasks."""

    def __init__(self, queries: QueryService, *, write_sql: Callable[[CompiledQuery], str]) -> None:
        self._queries = queries
        self._write_sql = write_sql

    async def run(self, website_id: WebsiteId, body: bytes) -> str:
        """Return the SQL that gives the rows of a query at this time.

        The website must be authorized already. Raises as `QueryService.compile` does.
        """
        return self._write_sql(await self._queries.compile(website_id, body))
