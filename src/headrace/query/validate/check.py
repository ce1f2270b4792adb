"""Check a query request and make its plan; the first error rejects the query.

The order of the checks is part of the contract, so `check_query` has one line for each; of a list
the length is checked first, then item by item.
"""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import (
    ALL_ROWS,
    DATE_OUTPUT_NAME,
    QUERY_LIMITS,
    Aggregate,
    Column,
    Operator,
    Table,
    find_table,
    table_names,
)
from headrace.model.plan import PlannedFilter, PlannedSelect, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.query.validate.columns import check_aggregatable, find_column, find_filterable
from headrace.query.validate.dates import check_dates, check_timezone
from headrace.query.validate.day_range import range_of_days, wall_clock_ms
from headrace.query.validate.filter_values import FilterValue, check_operator, check_values
from headrace.query.validate.pagination import (
    OutputNames,
    check_fill,
    check_granularity,
    check_limit,
    check_offset,
    check_order,
)
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json


class _CheckedFilter(Struct, frozen=True):
    """A valid filter; its naive datetimes still need the timezone of the query."""

    column: Column
    operator: Operator
    values: tuple[FilterValue, ...]


def check_query(request: wire.QueryRequest, website_id: WebsiteId) -> QueryPlan:
    """Return the plan of a request. Raises `InvalidQuery` for the first error."""
    query, names = request.query, OutputNames()
    table = check_table(query.table)
    selects = _check_selects(table, query.selects, names)
    filters = _check_filters(table, query.filters or ())
    group_by = _check_group_by(table, query.group_by or (), names)
    first, last = check_dates(request.start_date, request.end_date)
    zone = check_timezone(request.timezone)
    granularity = check_granularity(table, request.granularity)
    if granularity is not None:
        names.add(DATE_OUTPUT_NAME)
    limit = check_limit(request.limit)
    offset = check_offset(request.offset)
    order_by = check_order(request.order_by or (), names)
    days = range_of_days(first, last, zone)
    fill = check_fill(request.fill, granularity, days, has_groups=bool(group_by))
    return QueryPlan(
        website_id=website_id,
        table=table,
        selects=selects,
        filters=tuple(_resolve_datetimes(checked, zone) for checked in filters),
        group_by=group_by,
        range=days,
        granularity=granularity,
        order_by=order_by,
        limit=limit,
        offset=offset,
        fill=fill,
    )


def check_table(name: str) -> Table:
    """Return a table by its name or alias. Raises `InvalidQuery`: `Invalid table`."""
    table = find_table(name)
    if table is None:
        hint = did_you_mean_one_of(name, table_names())
        raise InvalidQuery(QueryErrorCode.INVALID_TABLE, f" {quote_json(name)}{hint}")
    return table


def _check_length(items: Sequence[object], limit: str, code: QueryErrorCode) -> None:
    maximum = QUERY_LIMITS[limit]
    if len(items) > maximum:
        raise InvalidQuery(code, f": {len(items)} given, maximum is {maximum}")


def _check_selects(
    table: Table, selects: Sequence[wire.Select], names: OutputNames
) -> tuple[PlannedSelect, ...]:
    if not selects:
        raise InvalidQuery(QueryErrorCode.INVALID_SELECT, ": at least one is required")
    _check_length(selects, "maxSelects", QueryErrorCode.TOO_MANY_SELECTS)
    return tuple(_check_select(table, select, names) for select in selects)


def _check_select(table: Table, select: wire.Select, names: OutputNames) -> PlannedSelect:
    column = None if select.field == ALL_ROWS else find_column(table, select.field)
    try:
        aggregate = Aggregate(select.aggregate)
    except ValueError:
        hint = did_you_mean_one_of(select.aggregate, (known.value for known in Aggregate))
        detail = f" {quote_json(select.aggregate)}{hint}"
        raise InvalidQuery(QueryErrorCode.INVALID_AGGREGATE, detail) from None
    if column is not None:
        check_aggregatable(table, column, aggregate)
    elif aggregate is not Aggregate.COUNT:
        detail = f" {quote_json(ALL_ROWS)}: it takes only count, {aggregate.value} needs a column"
        raise InvalidQuery(QueryErrorCode.NOT_AGGREGATABLE, detail)
    alias = _default_alias(select) if select.alias is None else _check_alias(select.alias)
    names.add(alias)
    return PlannedSelect(column, aggregate, alias)


def _default_alias(select: wire.Select) -> str:
    field = "all" if select.field == ALL_ROWS else select.field.replace(".", "_")
    return f"{select.aggregate}_{field}"


def _check_alias(alias: str) -> str:
    maximum = QUERY_LIMITS["maxAliasLength"]
    if not 1 <= len(alias) <= maximum:
        detail = f": alias {quote_json(alias)} must have 1 to {maximum} characters"
        raise InvalidQuery(QueryErrorCode.INVALID_SELECT, detail)
    return alias


def _check_filters(table: Table, filters: Sequence[wire.Filter]) -> tuple[_CheckedFilter, ...]:
    _check_length(filters, "maxFilters", QueryErrorCode.TOO_MANY_FILTERS)
    return tuple(_check_filter(table, sent) for sent in filters)


def _check_filter(table: Table, sent: wire.Filter) -> _CheckedFilter:
    column = find_filterable(table, sent.field)
    try:
        operator = Operator(sent.operator)
    except ValueError:
        hint = did_you_mean_one_of(sent.operator, (known.value for known in Operator))
        detail = f" {quote_json(sent.operator)}{hint}"
        raise InvalidQuery(QueryErrorCode.INVALID_OPERATOR, detail) from None
    check_operator(column, operator)
    return _CheckedFilter(column, operator, check_values(column, operator, sent.value))


def _resolve_datetimes(checked: _CheckedFilter, zone: ZoneInfo) -> PlannedFilter:
    """Interpret naive datetimes in the timezone of the query."""
    values = tuple(
        wall_clock_ms(value, zone) if isinstance(value, datetime) else value
        for value in checked.values
    )
    return PlannedFilter(checked.column, checked.operator, values)


def _check_group_by(table: Table, fields: Sequence[str], names: OutputNames) -> tuple[Column, ...]:
    _check_length(fields, "maxGroupBy", QueryErrorCode.TOO_MANY_GROUP_BY)
    columns: list[Column] = []
    for field in fields:
        columns.append(find_column(table, field))
        names.add(field)
    return tuple(columns)
