"""The use case of standard queries: body → request → plan → statements → the rows of each type."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from msgspec import Struct

from headrace.model.catalog import DATE_OUTPUT_NAME, PREVIOUS_OUTPUT_NAME
from headrace.model.plan import DateRange, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.query.execution import QueryExecution, Selected
from headrace.query.plan_result import build_result
from headrace.query.result_values import (
    QueryResult,
    ReadInfo,
    Row,
    format_number,
    rows_by_name,
)
from headrace.query.sql.outputs import list_outputs
from headrace.query.standard.check import check_standard, decode_standard
from headrace.query.standard.compile import SharedScan, compile_standard
from headrace.query.standard.definitions import SUMMARY_OUTPUTS
from headrace.query.standard.plan import Breakdown, StandardPlan

STANDARD_LABEL = "standard"
"""The label of standard queries where the metric has the table of others: they read several."""

Data = Row | Sequence[Row]
"""What a type has in the answer: one object, or rows."""


class StandardResult(Struct, frozen=True):
    """The answer of each type, in the order of the request.

    `truncated` is true if any type has more rows than the limit.
    """

    data: Mapping[str, Data]
    limit: int
    truncated: bool
    execution_ms: float
    read: ReadInfo
    compare: DateRange | None

    @property
    def row_count(self) -> int:
        """The number of rows of all types."""
        return sum(1 if isinstance(one, Mapping) else len(one) for one in self.data.values())


class StandardService:
    """Runs standard queries; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def run(self, website_id: WebsiteId, body: bytes) -> StandardResult:
        """Run the standard query of a body over one website; see `QueryService.run`."""
        with self._execution.counted() as running:
            request = decode_standard(body)
            check = partial(
                check_standard,
                website_id=website_id,
                now_ms=self._execution.now_ms(),
                cutoffs=await self._execution.cutoffs(website_id),
            )
            plan = await self._execution.check(check, request, request.filters or ())
            running.table = STANDARD_LABEL
            data, truncated, read = await self._select(plan)
            return StandardResult(
                data={name: data[name] for name in plan.types},
                limit=plan.limit,
                truncated=truncated,
                execution_ms=self._execution.elapsed_ms(running),
                read=read,
                compare=plan.compare,
            )

    async def _select(self, plan: StandardPlan) -> tuple[Mapping[str, Data], bool, ReadInfo]:
        """Return the answers by type, whether any is truncated, and what was read for all."""
        statements = compile_standard(plan, self._execution.dialect)
        selected = await self._execution.select_all(statements.queries)
        results = [
            _result(one, rows) for (one, _), rows in zip(statements.single, selected, strict=False)
        ]
        scanned = zip(statements.scans, selected[len(results) :], strict=True)
        groups = dict(
            chain.from_iterable(
                _results_of_scan(breakdowns, scan, rows) for (breakdowns, scan), rows in scanned
            )
        )
        data: dict[str, Data] = {name: rows_by_name(result) for name, result in groups.items()}
        if plan.online is not None:
            (data["online"],) = rows_by_name(results.pop())
        if results:
            data |= _summary_of(results)
        is_truncated = any(result.truncated for result in groups.values())
        return data, is_truncated, _sum_up([one.read for one in selected])


def _result(plan: QueryPlan, selected: Selected) -> QueryResult:
    return build_result(plan, list_outputs(plan), selected, execution_ms=0)


def _results_of_scan(
    breakdowns: Sequence[Breakdown], scan: SharedScan, selected: Selected
) -> Iterator[tuple[str, QueryResult]]:
    for number, breakdown in enumerate(breakdowns):
        own = Selected(scan.rows_of(number, selected.rows), None, selected.read)
        yield breakdown.type_name, _result(breakdown.plan, own)


def _summary_of(results: Sequence[QueryResult]) -> Mapping[str, Data]:
    """Return the summary and the timeseries; `results` has the query of each table.

    With buckets the rows are the timeseries, and the totals, if there are any, the summary.
    """
    rows = [_join_tables(tables) for tables in zip(*map(rows_by_name, results), strict=True)]
    if DATE_OUTPUT_NAME not in results[0].names:
        return {"summary": rows[0]}
    totals = [result.totals for result in results if result.totals is not None]
    return {"timeseries": rows, **({"summary": _join_tables(totals)} if totals else {})}


def _join_tables(rows: Sequence[Row]) -> Row:
    """Return one row from the rows of all tables, and those of the compared range."""
    columns = {name: value for row in rows for name, value in row.items()}
    sessions = columns["sessions"]
    columns["bounceRate"] = format_number(columns["bounces"] / sessions) if sessions else None
    summary = {
        name: columns[name] for name in (DATE_OUTPUT_NAME, *SUMMARY_OUTPUTS) if name in columns
    }
    if PREVIOUS_OUTPUT_NAME not in columns:
        return summary
    previous: list[Row | None] = [row[PREVIOUS_OUTPUT_NAME] for row in rows]
    present = [row for row in previous if row is not None]
    return {**summary, PREVIOUS_OUTPUT_NAME: _join_tables(present) if present else None}


def _sum_up(parts: Sequence[ReadInfo]) -> ReadInfo:
    """Return what was read by all statements; the answer is as old as the oldest of them."""
    return ReadInfo(
        rows=sum(part.rows for part in parts),
        bytes=sum(part.bytes for part in parts),
        cached=all(part.cached for part in parts),
        watermark_ms=min(part.watermark_ms for part in parts),
    )
