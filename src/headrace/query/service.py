"""The use case of custom queries: body → request → plan → statement → rows → result."""

from functools import partial
from itertools import chain

from headrace.model.plan import CompiledQuery, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.query.execution import QueryExecution, RunningQuery
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
            plan = await self.plan(website_id, body)
            running.table = plan.table.name
            return await self._execute(plan, running)

    async def plan(self, website_id: WebsiteId, body: bytes) -> QueryPlan:
        """Return the plan of a request body at this time, without running it.

        Raises `InvalidQuery` for a query that breaks a rule, and `DirectoryUnavailable`.
        """
        cutoffs = await self._execution.cutoffs(website_id)
        request = decode_query(body)
        query = request.query
        check = partial(
            check_query, website_id=website_id, cutoffs=cutoffs, now_ms=self._execution.now_ms()
        )
        own_filters = (select.filters or () for select in query.selects)
        return await self._execution.check(check, request, chain(query.filters or (), *own_filters))

    async def compile(self, website_id: WebsiteId, body: bytes) -> CompiledQuery:
        """Return the statement of a request body at this time, without running it.

        Raises as `plan` does.
        """
        return compile_query(await self.plan(website_id, body), self._execution.dialect)

    async def run_plan(self, plan: QueryPlan) -> QueryResult:
        """Run a plan as `run` does."""
        with self._execution.counted() as running:
            running.table = plan.table.name
            return await self._execute(plan, running)

    async def _execute(self, plan: QueryPlan, running: RunningQuery) -> QueryResult:
        query = compile_query(plan, self._execution.dialect)
        selected = await self._execution.select(query)
        elapsed_ms = self._execution.elapsed_ms(running)
        return build_result(plan, query.outputs, selected, elapsed_ms)
