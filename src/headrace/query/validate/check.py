"""Check a query request and make its plan; the first error rejects the query.

The order of the checks is part of the contract, so `check_query` has one line for each; of a list
the length is checked first, then item by item.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import (
    ALL_ROWS,
    DATETIME_AGGREGATES,
    PREVIOUS_OUTPUT_NAME,
    QUERY_LIMITS,
    Aggregate,
    Column,
    Table,
    find_table,
    table_names,
)
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.plan import PlannedHaving, PlannedSelect, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.query.validate.columns import (
    check_aggregatable,
    find_column,
    find_group_column,
)
from headrace.query.validate.compare import check_compare
from headrace.query.validate.conditions.filters import (
    CheckedCondition,
    check_filters,
    check_select_filters,
    resolve_datetimes,
)
from headrace.query.validate.conditions.having import check_having
from headrace.query.validate.dates import check_period, check_timezone, resolve_period
from headrace.query.validate.day_range import range_of_days
from headrace.query.validate.lengths import check_length
from headrace.query.validate.located import located
from headrace.query.validate.pagination import (
    check_compared_fill,
    check_fill,
    check_granularity,
    check_limit,
    check_offset,
    check_order,
    check_others,
    check_output_names,
    check_top,
    check_totals,
)
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import AGGREGATE_SYNONYMS, TABLE_SYNONYMS


def check_query(
    request: wire.QueryRequest,
    website_id: WebsiteId,
    cutoffs: Cutoffs = NO_CUTOFFS,
    *,
    now_ms: int,
) -> QueryPlan:
    """Return the plan of a request over the rows that the cutoffs leave.

    `now_ms` is the time of the request, which decides what the last days are.

    Raises `InvalidQuery` for the first error.
    """
    query = request.query
    table = check_table(query.table)
    selects = _check_selects(table, query.selects)
    filters = check_filters(table, query.filters or (), "query.filters")
    group_by = _check_group_by(table, query.group_by or ())
    names = _check_output_names(request, selects, group_by)
    period = check_period(request.start_date, request.end_date, request.last_days)
    zone = check_timezone(request.timezone)
    granularity = check_granularity(table, request.granularity)
    limit = check_limit(request.limit)
    offset = check_offset(request.offset)
    order_by = check_order(request.order_by or (), names)
    first, last = resolve_period(period, zone, now_ms)
    days = range_of_days(first, last, zone)
    fill = check_fill(
        request.fill,
        granularity,
        days,
        has_groups=bool(group_by),
        has_having=request.having not in (None, []),
    )
    having = _check_having(request.having, selects)
    top = check_top(request.top, has_groups=bool(group_by), has_granularity=granularity is not None)
    others = check_others(request.others, top)
    compared_dates = check_compare(request.compare, first, last)
    totals = check_totals(request.totals)
    compared = None if compared_dates is None else range_of_days(*compared_dates, zone)
    if fill and compared is not None:
        check_compared_fill(compared, granularity, has_groups=bool(group_by))
    return QueryPlan(
        website_id=website_id,
        table=table,
        selects=tuple(select.resolve(zone) for select in selects),
        filters=resolve_datetimes(filters, zone),
        group_by=group_by,
        range=days,
        granularity=granularity,
        order_by=order_by,
        limit=limit,
        offset=offset,
        fill=fill,
        having=having,
        compare=compared,
        totals=totals,
        top=top,
        others=others,
        cutoff_ms=cutoffs.of_table(table),
    )


def _check_output_names(
    request: wire.QueryRequest, selects: Sequence["_CheckedSelect"], group_by: Sequence[Column]
) -> Sequence[str]:
    """Return the outputs that rows can be ordered by: not the values of a compared range."""
    aliases = [select.alias for select in selects]
    names = [*aliases, *(column.name for column in group_by)]
    compared = [] if request.compare is None else _compared_names(aliases)
    taken = check_output_names([*names, *compared], has_granularity=request.granularity is not None)
    return [name for name in taken if name not in compared]


def _compared_names(aliases: Sequence[str]) -> list[str]:
    """Return the names of the values of a compared range: of the object, and of its columns."""
    columns = [f"{PREVIOUS_OUTPUT_NAME}.{alias}" for alias in aliases]
    return [PREVIOUS_OUTPUT_NAME, *columns]


def _check_having(value: object, selects: Sequence["_CheckedSelect"]) -> tuple[PlannedHaving, ...]:
    return check_having(
        value,
        [select.alias for select in selects],
        datetimes={select.alias for select in selects if select.aggregate in DATETIME_AGGREGATES},
    )


def check_table(name: str) -> Table:
    """Return a table by its name or alias. Raises `InvalidQuery`: `Invalid table`."""
    table = find_table(name)
    if table is None:
        hint = did_you_mean_one_of(name, table_names(), TABLE_SYNONYMS)
        raise InvalidQuery(QueryErrorCode.INVALID_TABLE, f" {quote_json(name)}{hint}")
    return table


class _CheckedSelect(NamedTuple):
    """A valid select; the datetimes of its filters still need the timezone of the query."""

    column: Column | None
    aggregate: Aggregate
    alias: str
    filters: tuple[CheckedCondition, ...]

    def resolve(self, zone: ZoneInfo) -> PlannedSelect:
        filters = resolve_datetimes(self.filters, zone)
        return PlannedSelect(self.column, self.aggregate, self.alias, filters)


def _check_selects(table: Table, selects: Sequence[wire.Select]) -> tuple[_CheckedSelect, ...]:
    if not selects:
        raise InvalidQuery(QueryErrorCode.INVALID_SELECT, ": at least one is required")
    check_length(len(selects), "maxSelects", QueryErrorCode.TOO_MANY_SELECTS)
    checked: list[_CheckedSelect] = []
    for index, select in enumerate(selects):
        path = f"query.selects[{index}]"
        with located(path):
            checked.append(_check_select(table, select, path))
    return tuple(checked)


def _check_select(table: Table, select: wire.Select, path: str) -> _CheckedSelect:
    column = None if select.field == ALL_ROWS else find_column(table, select.field)
    try:
        aggregate = Aggregate(select.aggregate)
    except ValueError:
        known = (one.value for one in Aggregate)
        hint = did_you_mean_one_of(select.aggregate, known, AGGREGATE_SYNONYMS)
        detail = f" {quote_json(select.aggregate)}"
        raise InvalidQuery(QueryErrorCode.INVALID_AGGREGATE, detail, hint) from None
    if column is not None:
        check_aggregatable(table, column, aggregate)
    elif aggregate is not Aggregate.COUNT:
        reason = f": it takes only count, {aggregate.value} needs a column"
        raise InvalidQuery(QueryErrorCode.NOT_AGGREGATABLE, f" {quote_json(ALL_ROWS)}", reason)
    alias = _default_alias(select) if select.alias is None else _check_alias(select.alias)
    filters = check_select_filters(table, select.filters or (), f"{path}.filters")
    return _CheckedSelect(column, aggregate, alias, filters)


def _default_alias(select: wire.Select) -> str:
    field = "all" if select.field == ALL_ROWS else select.field.replace(".", "_")
    return f"{select.aggregate}_{field}"


def _check_alias(alias: str) -> str:
    maximum = QUERY_LIMITS["maxAliasLength"]
    if not 1 <= len(alias) <= maximum:
        reason = f": alias {quote_json(alias)} must have 1 to {maximum} characters"
        raise InvalidQuery(QueryErrorCode.INVALID_SELECT, "", reason)
    return alias


def _check_group_by(table: Table, fields: Sequence[str]) -> tuple[Column, ...]:
    check_length(len(fields), "maxGroupBy", QueryErrorCode.TOO_MANY_GROUP_BY)
    return tuple(find_group_column(table, field) for field in fields)
