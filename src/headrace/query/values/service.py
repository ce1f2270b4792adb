"""The use case of values: parameters → plan → statement → one row for each value."""

from headrace.model.tenancy import WebsiteId
from headrace.query.execution import QueryExecution
from headrace.query.result_values import QueryResult, format_rows
from headrace.query.sql.compile import compile_query
from headrace.query.validate.parameters import read_parameters
from headrace.query.values.check import VALUES_PARAMETERS, check_values_request


class ValuesService:
    """Lists values of columns; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Return the most frequent values; `body` is the query string of the request.

        Raises as `QueryService.run` does.
        """
        with self._execution.counted() as running:
            plan = check_values_request(
                read_parameters(body, VALUES_PARAMETERS),
                website_id,
                now_ms=self._execution.now_ms(),
                cutoffs=await self._execution.cutoffs(website_id),
            )
            running.table = plan.table.name
            query = compile_query(plan, self._execution.dialect)
            selected = await self._execution.select(query)
            kinds = tuple(output.kind for output in query.outputs)
            return QueryResult(
                names=("value", "count"),
                kinds=kinds,
                rows=format_rows(selected.rows[: plan.limit], kinds),
                limit=plan.limit,
                truncated=len(selected.rows) > plan.limit,
                execution_ms=self._execution.elapsed_ms(running),
                read=selected.read,
            )
