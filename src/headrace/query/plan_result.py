"""From the rows that the store returned for a plan to the result of a custom query."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from headrace.model.catalog import DATE_OUTPUT_NAME, PREVIOUS_OUTPUT_NAME, QUERY_LIMITS
from headrace.model.plan import Output, OutputKind, QueryPlan
from headrace.ports.store import Rows, SelectFailed
from headrace.query.execution import Selected
from headrace.query.gap_fill import fill_buckets
from headrace.query.having import matches_having
from headrace.query.result_values import (
    Comparison,
    QueryResult,
    ReadInfo,
    Row,
    format_rows,
    rows_by_name,
)
from headrace.query.sql.outputs import ROW_COUNTS, first_select, is_row_of_totals, list_outputs


def build_result(
    plan: QueryPlan, outputs: Sequence[Output], selected: Selected, execution_ms: float
) -> QueryResult:
    """Return the result of a plan; `outputs` are the columns of its statement.

    Raises `InvalidQuery` (`Invalid fill`) for too many rows.
    """
    rows, others = _split_others(plan, selected.rows)
    outputs = outputs[:-1] if plan.others else outputs
    page, truncated = _slice_page(plan, outputs, rows)
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
        others=_build_others(plan, others) if plan.others else None,
    )


def _split_others(plan: QueryPlan, rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows of top groups and those of all others, both without what tells them apart."""
    if not plan.others:
        return rows, []
    return [row[:-1] for row in rows if row[-1]], [row[:-1] for row in rows if not row[-1]]


def _build_others(plan: QueryPlan, rows: Rows) -> list[Row]:
    """Return the rows of all other groups by date: those of the same query without groups."""
    if not any(plan.compare is None or row[-2] for row in rows):
        return []
    groups = len(plan.group_by)
    alone = replace(
        plan,
        group_by=(),
        order_by=(),
        having=(),
        limit=max(QUERY_LIMITS["maxLimit"], len(rows)),
        offset=0,
        totals=False,
        top=None,
        others=False,
    )
    by_date = sorted([[row[0], *row[1 + groups :]] for row in rows], key=itemgetter(0))
    selected = Selected(by_date, None, ReadInfo())
    result = build_result(alone, list_outputs(alone), selected, execution_ms=0)
    nulls = dict.fromkeys((column.name for column in plan.group_by), None)
    return [
        {DATE_OUTPUT_NAME: row[DATE_OUTPUT_NAME], **nulls, **row} for row in rows_by_name(result)
    ]


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
    first = first_select(plan)
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
