"""The use case of retention: body → request → plan → statement → one row for each cohort."""

from functools import partial
from itertools import chain
from typing import Any

from headrace.model.catalog import EVENTS, QUERY_LIMITS
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Rows
from headrace.query.execution import QueryExecution
from headrace.query.result_values import QueryResult, format_rows
from headrace.query.retention.check import check_retention, decode_retention
from headrace.query.retention.compile import compile_retention
from headrace.query.retention.plan import RetentionPlan


class RetentionService:
    """Runs retention queries; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Run the retention query of a body over one website; see `QueryService.run`."""
        with self._execution.counted() as running:
            request = decode_retention(body)
            check = partial(
                check_retention,
                website_id=website_id,
                now_ms=self._execution.now_ms(),
                cutoffs=await self._execution.cutoffs(website_id),
            )
            filters = chain(request.first.filters, request.returning.filters)
            plan = await self._execution.check(check, request, filters)
            running.table = EVENTS.name
            query = compile_retention(plan, self._execution.dialect)
            selected = await self._execution.select(query)
            kinds = tuple(output.kind for output in query.outputs)
            return QueryResult(
                names=tuple(output.name for output in query.outputs),
                kinds=kinds,
                rows=format_rows(known_periods(plan, selected.rows), kinds),
                limit=QUERY_LIMITS["maxLimit"],
                truncated=False,
                execution_ms=self._execution.elapsed_ms(running),
                read=selected.read,
            )


def known_periods(plan: RetentionPlan, cohorts: Rows) -> list[list[Any]]:
    """Return the rows with null for the periods that have not begun."""
    return [
        [
            cohort,
            size,
            [
                count if cohort + period <= plan.current_bucket else None
                for period, count in enumerate(returned)
            ],
        ]
        for cohort, size, returned in cohorts
    ]
