"""Add the buckets without rows, in the order that the store would return them."""

from collections.abc import Sequence
from typing import Any

from headrace.model.catalog import Aggregate
from headrace.model.plan import DateRange, Granularity, Output, QueryPlan
from headrace.ports.store import Rows
from headrace.query.sql.order_by import order_keys, sort_rows
from headrace.query.validate.day_range import bucket_shift, buckets_of
from headrace.query.validate.pagination import check_filled_rows

_ZERO_WHEN_EMPTY = frozenset({Aggregate.COUNT, Aggregate.UNIQ, Aggregate.SUM})


def fill_buckets(plan: QueryPlan, outputs: Sequence[Output], rows: Rows) -> list[list[Any]]:
    """Return all rows of the filled result in order, with values as the store returns them.

    Every group of the result has a row in every bucket; without groups every bucket has one row.
    A compared range is filled with its own groups and buckets: the last column of a row, how many
    rows the compared range has, is not 0 where it has such a filled row.
    Raises `InvalidQuery` (`Invalid fill`) if these are more rows than a result may have.
    """
    if plan.granularity is None:
        return [list(row) for row in rows]
    groups_end = 1 + len(plan.group_by)
    width = groups_end + len(plan.selects)
    current = rows if plan.compare is None else [row for row in rows if row[-2]]
    keys = _filled_keys(plan, plan.range, plan.granularity, current)
    empty = [0 if select.aggregate in _ZERO_WHEN_EMPTY else None for select in plan.selects]
    rows_by_key = {tuple(row[:groups_end]): list(row) for row in rows}
    empty_row = [*empty, *([*empty, 0, 0] if plan.compare is not None else [])]
    filled = [rows_by_key.get(key) or [*key, *empty_row] for key in keys]
    if plan.compare is not None:
        _fill_compared(plan, plan.compare, plan.granularity, rows, filled)
    sort_rows(filled, order_keys(plan, outputs[:width]))
    return filled


def _filled_keys(
    plan: QueryPlan, days: DateRange, granularity: Granularity, rows: Rows, *, of: str = "result"
) -> list[tuple[Any, ...]]:
    """Return the bucket and the groups of every row of a filled range; `of` names it in errors."""
    groups_end = 1 + len(plan.group_by)
    groups = dict.fromkeys(tuple(row[1:groups_end]) for row in rows) if plan.group_by else [()]
    buckets = buckets_of(days, granularity)
    check_filled_rows(len(groups) * len(buckets), of=of)
    return [(bucket, *group) for bucket in buckets for group in groups]


def _fill_compared(
    plan: QueryPlan,
    compared: DateRange,
    granularity: Granularity,
    rows: Rows,
    filled: list[list[Any]],
) -> None:
    """Mark the rows that the filled compared range has too; it is filled as a result is."""
    shift = bucket_shift(plan.range, compared, granularity)
    compared_rows = [row for row in rows if row[-1]]
    keys = _filled_keys(plan, compared, granularity, compared_rows, of="compared range")
    present = {(bucket + shift, *group) for bucket, *group in keys}
    groups_end = 1 + len(plan.group_by)
    for row in filled:
        row[-1] = int(tuple(row[:groups_end]) in present)
