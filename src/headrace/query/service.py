"""The use case of custom queries: body → request → plan → statement → rows → result."""

from headrace.model.tenancy import WebsiteId
from headrace.query.execution import QueryExecution
from headrace.query.plan_result import build_result
from headrace.query.result_values import QueryResult
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query


class QueryService:
    """Runs custom queries; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Run the query of a request body over one website and return its result.

        The website must be authorized already. Raises `InvalidQuery` for a query that breaks a
        rule, and what `Store.select` raises. Cancelling the call ends the query in the store.
        """
        with self._execution.counted() as running:
            cutoffs = await self._execution.cutoffs(website_id)
            plan = check_query(
                decode_query(body), website_id, cutoffs, now_ms=self._execution.now_ms()
            )
            running.table = plan.table.name
            query = compile_query(plan, self._execution.dialect)
            selected = await self._execution.select(query)
            elapsed_ms = self._execution.elapsed_ms(running)
            return build_result(plan, query.outputs, selected, elapsed_ms)
