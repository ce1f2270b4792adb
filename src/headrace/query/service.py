"""The use case of custom queries: body → request → plan → statement → rows → result."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.model.catalog import PREVIOUS_OUTPUT_NAME
from headrace.model.plan import CompiledQuery, OutputKind, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Rows, SelectFailed
from headrace.query.execution import QueryExecution, RunningQuery, Selected
from headrace.query.gap_fill import fill_buckets
from headrace.query.having import matches_having
from headrace.query.result_values import Comparison, QueryResult, format_rows
from headrace.query.sql.compile import ROW_COUNTS, compile_query, is_row_of_totals
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
            return await self._execute(plan, running)

    async def _execute(self, plan: QueryPlan, running: RunningQuery) -> QueryResult:
        query = compile_query(plan, self._execution.dialect)
        selected = await self._execution.select(query)
        page, truncated = _slice_page(plan, query, selected.rows)
        width = len(query.outputs) - (0 if plan.compare is None else len(ROW_COUNTS))
        kinds = tuple(output.kind for output in query.outputs[:width])
        comparison = _find_comparison(plan, page)
        if comparison is not None:
            page = [
                _compared_row(row[:width], comparison.width, is_present=is_present)
                for row, is_present in zip(page, comparison.present, strict=True)
            ]
        return QueryResult(
            names=tuple(output.name for output in query.outputs[:width]),
            kinds=kinds,
            rows=format_rows(page, kinds),
            limit=plan.limit,
            truncated=truncated,
            execution_ms=self._execution.elapsed_ms(running),
            read=selected.read,
            totals=_find_totals(plan, kinds, selected),
            comparison=comparison,
        )


def _find_comparison(plan: QueryPlan, rows: Rows) -> Comparison | None:
    if plan.compare is None:
        return None
    present = [not plan.has_groups or row[-1] > 0 for row in rows]
    return Comparison(plan.compare.first_day, plan.compare.last_day, len(plan.selects), present)


def _compared_row(row: Sequence[Any], width: int, *, is_present: bool) -> Sequence[Any]:
    """Return a row whose last columns are null where the compared range has no such row."""
    return row if is_present else [*row[:-width], *[None] * width]


def _find_totals(
    plan: QueryPlan, kinds: tuple[OutputKind, ...], selected: Selected
) -> Mapping[str, Any] | None:
    """Return the totals by output name, if the query asks for them."""
    if not plan.totals:
        return None
    row = selected.rows[0] if is_row_of_totals(plan) else selected.totals
    if row is None:
        raise SelectFailed("the store has returned no totals")
    names = [select.alias for select in plan.selects]
    first = len(plan.group_by) + (plan.granularity is not None)
    (values,) = format_rows([row[first : len(kinds)]], kinds[first:])
    totals = dict(zip(names, values, strict=False))
    if plan.compare is not None:
        totals[PREVIOUS_OUTPUT_NAME] = dict(zip(names, values[len(names) :], strict=True))
    return totals


def _slice_page(plan: QueryPlan, query: CompiledQuery, rows: Rows) -> tuple[Rows, bool]:
    """Return the rows of the requested page, and whether more rows follow it.

    The store has applied the offset already, except to a plan with `fill` and to a row of totals.
    """
    if is_row_of_totals(plan):
        kept = [row for row in rows if matches_having(plan, row)]
        return kept[plan.offset :], False
    if not plan.fill:
        return rows[: plan.limit], len(rows) > plan.limit
    filled: list[list[Any]] = fill_buckets(plan, query.outputs, rows)
    end = plan.offset + plan.limit
    return filled[plan.offset : end], len(filled) > end
