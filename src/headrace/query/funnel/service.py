"""The use case of funnels: body → request → plan → statement → one row for each step."""

from functools import partial
from itertools import chain
from typing import Any

from headrace.model.catalog import EVENTS, QUERY_LIMITS
from headrace.model.plan import OutputKind
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Rows
from headrace.query.execution import QueryExecution
from headrace.query.funnel.check import check_funnel, decode_funnel
from headrace.query.funnel.compile import compile_funnel
from headrace.query.funnel.plan import FunnelPlan
from headrace.query.result_values import QueryResult, format_rows

STEP_COLUMNS = (
    ("step", OutputKind.NUMBER),
    ("name", OutputKind.TEXT),
    ("count", OutputKind.NUMBER),
    ("rate", OutputKind.NUMBER),
    ("medianSeconds", OutputKind.NUMBER),
)
"""The columns of every result, behind that of the group."""


class FunnelService:
    """Runs funnels; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Run the funnel of a request body over one website; see `QueryService.run`."""
        with self._execution.counted() as running:
            cutoffs = await self._execution.cutoffs(website_id)
            request = decode_funnel(body)
            check = partial(
                check_funnel,
                website_id=website_id,
                cutoffs=cutoffs,
                now_ms=self._execution.now_ms(),
            )
            filters = chain.from_iterable(step.filters for step in request.steps)
            plan = await self._execution.check(check, request, filters)
            running.table = EVENTS.name
            query = compile_funnel(plan, self._execution.dialect)
            selected = await self._execution.select(query)
            maximum = QUERY_LIMITS["maxFunnelGroups"]
            columns = [
                *((output.name, output.kind) for output in query.outputs[:-2]),
                *STEP_COLUMNS,
            ]
            kinds = tuple(kind for _, kind in columns)
            return QueryResult(
                names=tuple(name for name, _ in columns),
                kinds=kinds,
                rows=format_rows(step_rows(plan, selected.rows[:maximum]), kinds),
                limit=maximum,
                truncated=len(selected.rows) > maximum,
                execution_ms=self._execution.elapsed_ms(running),
                read=selected.read,
            )


def step_rows(plan: FunnelPlan, groups: Rows) -> list[list[Any]]:
    """Return one row for each step of each group; steps that nobody reached count 0."""
    return [
        [*values, number, step.name, count, count / counts[0] if counts[0] else None, median_s]
        for *values, sent_counts, sent_medians in groups
        for counts in [_padded(sent_counts, len(plan.steps), 0)]
        for number, step, count, median_s in zip(
            range(1, len(plan.steps) + 1),
            plan.steps,
            counts,
            [None, *_seconds(_padded(sent_medians, len(plan.steps) - 1, None))],
            strict=True,
        )
    ]


def _padded(values: list[Any], length: int, filler: int | None) -> list[Any]:
    return [*values, *[filler] * (length - len(values))]


def _seconds(medians_ms: list[float | None]) -> list[float | None]:
    return [None if median is None else median / 1000 for median in medians_ms]
