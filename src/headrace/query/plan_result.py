"""From the rows that the store returned for a plan to the result of a custom query."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.model.catalog import PREVIOUS_OUTPUT_NAME
from headrace.model.plan import Output, OutputKind, QueryPlan
from headrace.ports.store import Rows, SelectFailed
from headrace.query.execution import Selected
from headrace.query.gap_fill import fill_buckets
from headrace.query.having import matches_having
from headrace.query.result_values import Comparison, QueryResult, format_rows
from headrace.query.sql.compile import ROW_COUNTS, is_row_of_totals


def build_result(
    plan: QueryPlan, outputs: Sequence[Output], selected: Selected, execution_ms: float
) -> QueryResult:
    """Return the result of a plan; `outputs` are the columns of its statement.

    Raises `InvalidQuery` (`Invalid fill`) for too many rows.
    """
    page, truncated = _slice_page(plan, outputs, selected.rows)
    width = len(outputs) - (0 if plan.compare is None else len(ROW_COUNTS))
    kinds = tuple(output.kind for output in outputs[:width])
    comparison = _find_comparison(plan, page)
    if comparison is not None:
        page = [
            _compared_row(row[:width], comparison.width, is_present=is_present)
            for row, is_present in zip(page, comparison.present, strict=True)
        ]
    return QueryResult(
        names=tuple(output.name for output in outputs[:width]),
        kinds=kinds,
        rows=format_rows(page, kinds),
        limit=plan.limit,
        truncated=truncated,
        execution_ms=execution_ms,
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


def _slice_page(plan: QueryPlan, outputs: Sequence[Output], rows: Rows) -> tuple[Rows, bool]:
    """Return the rows of the requested page, and whether more rows follow it.

    The store has applied the offset already, except to a plan with `fill` and to a row of totals.
    """
    if is_row_of_totals(plan):
        kept = [row for row in rows if matches_having(plan, row)]
        return kept[plan.offset :], False
    if not plan.fill:
        return rows[: plan.limit], len(rows) > plan.limit
    filled: list[list[Any]] = fill_buckets(plan, outputs, rows)
    end = plan.offset + plan.limit
    return filled[plan.offset : end], len(filled) > end
