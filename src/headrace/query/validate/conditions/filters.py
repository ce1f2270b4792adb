"""Check the filters of a query and their groups."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from msgspec import UnsetType

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import QUERY_LIMITS, Column, Operator, Table
from headrace.model.plan import Conjunction, PlannedCondition, PlannedFilter, PlannedGroup
from headrace.query.validate.columns import find_filterable
from headrace.query.validate.conditions.filter_values import (
    FilterValue,
    check_operator,
    check_values,
)
from headrace.query.validate.day_range import wall_clock_ms
from headrace.query.validate.lengths import check_length
from headrace.query.validate.located import located
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import OPERATOR_SYNONYMS


class CheckedFilter(NamedTuple):
    """A valid filter; its naive datetimes still need the timezone of the query."""

    column: Column
    operator: Operator
    values: tuple[FilterValue, ...]


class CheckedGroup(NamedTuple):
    """A valid group of such filters."""

    conjunction: Conjunction
    items: tuple["CheckedFilter | CheckedGroup", ...]


CheckedCondition = CheckedFilter | CheckedGroup


def check_filters(
    table: Table, items: Sequence[wire.Filter], path: str
) -> tuple[CheckedCondition, ...]:
    """Return the conditions of a query. The limit counts single filters, wherever they stand.

    `path` is where the items are in the body, for errors.

    Raises `InvalidQuery`: `Too many filters`, `Invalid filter` for a group, and what a single
    filter may have wrong.
    """
    check_length(_count_filters(items), "maxFilters", QueryErrorCode.TOO_MANY_FILTERS, path=path)
    return _check_items(table, items, path, depth=0)


def check_select_filters(
    table: Table, items: Sequence[wire.Filter], path: str
) -> tuple[CheckedCondition, ...]:
    """Return the filters of one select, which are single ones; `path` is where they are.

    Raises `InvalidQuery`: `Too many filters`, `Invalid filter` for a group, and what a single
    filter may have wrong.
    """
    check_length(len(items), "maxSelectFilters", QueryErrorCode.TOO_MANY_FILTERS, path=path)
    return tuple(_check_single(table, item, f"{path}[{index}]") for index, item in enumerate(items))


def resolve_datetimes(
    conditions: Iterable[CheckedCondition], zone: ZoneInfo
) -> tuple[PlannedCondition, ...]:
    """Interpret naive datetimes in the timezone of the query."""
    return tuple(_resolve(condition, zone) for condition in conditions)


def _resolve(condition: CheckedCondition, zone: ZoneInfo) -> PlannedCondition:
    if isinstance(condition, CheckedGroup):
        return PlannedGroup(condition.conjunction, resolve_datetimes(condition.items, zone))
    values = tuple(
        wall_clock_ms(value, zone) if isinstance(value, datetime) else value
        for value in condition.values
    )
    return PlannedFilter(condition.column, condition.operator, values)


def _count_filters(items: Sequence[wire.Filter]) -> int:
    return sum(
        1
        if _is_condition(item)
        else _count_filters(item.any_of or ()) + _count_filters(item.all_of or ())
        for item in items
    )


def _is_condition(item: wire.Filter) -> bool:
    return item.any_of is None and item.all_of is None


def _check_single(table: Table, item: wire.Filter, path: str) -> CheckedCondition:
    if not _is_condition(item):
        raise _invalid_filter(path, "a select takes single filters, not groups")
    return _check_item(table, item, path, depth=0)


def _check_items(
    table: Table, items: Sequence[wire.Filter], path: str, *, depth: int
) -> tuple[CheckedCondition, ...]:
    return tuple(
        _check_item(table, item, f"{path}[{index}]", depth=depth)
        for index, item in enumerate(items)
    )


def _check_item(table: Table, item: wire.Filter, path: str, *, depth: int) -> CheckedCondition:
    """Check one item; `depth` is the number of groups around it."""
    match item:
        case wire.Filter(
            field=str(field), operator=str(operator), value=value, any_of=None, all_of=None
        ):
            with located(path):
                return _check_filter(table, field, operator, value)
        case wire.Filter(any_of=[*items]) if item == wire.Filter(any_of=items):
            return _check_group(table, Conjunction.OR, items, f"{path}.or", depth=depth + 1)
        case wire.Filter(all_of=[*items]) if item == wire.Filter(all_of=items):
            return _check_group(table, Conjunction.AND, items, f"{path}.and", depth=depth + 1)
        case _:
            raise _invalid_filter(path, 'a group has exactly one key, "or" or "and"')


def _check_group(
    table: Table, conjunction: Conjunction, items: Sequence[wire.Filter], path: str, *, depth: int
) -> CheckedGroup:
    maximum = QUERY_LIMITS["maxFilterDepth"]
    if depth > maximum:
        raise _invalid_filter(path, f"groups are at most {maximum} deep")
    if not items:
        raise _invalid_filter(path, "a group has at least one filter")
    return CheckedGroup(conjunction, _check_items(table, items, path, depth=depth))


def _check_filter(
    table: Table, field: str, operator_name: str, value: wire.FilterValue | UnsetType
) -> CheckedFilter:
    """Check a single filter: its column, its operator and its value."""
    column = find_filterable(table, field)
    try:
        operator = Operator(operator_name)
    except ValueError:
        known = (one.value for one in Operator)
        hint = did_you_mean_one_of(operator_name, known, OPERATOR_SYNONYMS)
        detail = f" {quote_json(operator_name)}"
        raise InvalidQuery(QueryErrorCode.INVALID_OPERATOR, detail, hint) from None
    check_operator(column, operator)
    sent = None if isinstance(value, UnsetType) else value
    return CheckedFilter(column, operator, check_values(column, operator, sent))


def _invalid_filter(path: str, reason: str) -> InvalidQuery:
    return InvalidQuery(QueryErrorCode.INVALID_FILTER, "", f": {reason}", path)
