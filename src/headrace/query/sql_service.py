"""The use case behind the SQL of a query: body → request → plan → statement → its text."""

from collections.abc import Callable

from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.query.service import QueryService
from headrace.query.sql.compile import compile_query


class SqlService:
    """Writes the SQL of custom queries, and runs none; for one event loop and many tasks."""

    def __init__(
        self,
        queries: QueryService,
        *,
        dialect: Dialect,
        write_sql: Callable[[CompiledQuery], str],
    ) -> None:
        self._queries = queries
        self._dialect = dialect
        self._write_sql = write_sql

    async def run(self, website_id: WebsiteId, body: bytes) -> str:
        """Return the SQL that gives the rows of a query at this time.

        The website must be authorized already. Raises as `QueryService.plan` does.
        """
        plan = await self._queries.plan(website_id, body)
        return self._write_sql(compile_query(plan, self._dialect))
