"""Add the buckets without rows, in the order that the store would return them."""

from typing import Any

from headrace.model.catalog import Aggregate
from headrace.model.plan import Output, QueryPlan
from headrace.ports.store import Rows
from headrace.query.sql.order_by import order_keys, sort_rows
from headrace.query.validate.day_range import buckets_of
from headrace.query.validate.pagination import check_filled_rows

_ZERO_WHEN_EMPTY = frozenset({Aggregate.COUNT, Aggregate.UNIQ, Aggregate.SUM})


def fill_buckets(plan: QueryPlan, outputs: tuple[Output, ...], rows: Rows) -> list[list[Any]]:
    """Return all rows of the filled result in order, with values as the store returns them.

    Every group of the result has a row in every bucket; without groups every bucket has one row.
    Raises `InvalidQuery` (`Invalid fill`) if these are more rows than a result may have.
    """
    if plan.granularity is None:
        return [list(row) for row in rows]
    groups_end = 1 + len(plan.group_by)
    groups = dict.fromkeys(tuple(row[1:groups_end]) for row in rows) if plan.group_by else [()]
    buckets = buckets_of(plan.range, plan.granularity)
    check_filled_rows(len(groups) * len(buckets))
    rows_by_key = {tuple(row[:groups_end]): list(row) for row in rows}
    empty_values = [0 if select.aggregate in _ZERO_WHEN_EMPTY else None for select in plan.selects]
    filled = [
        rows_by_key.get((bucket, *group)) or [bucket, *group, *empty_values]
        for bucket in buckets
        for group in groups
    ]
    sort_rows(filled, order_keys(plan, outputs))
    return filled
