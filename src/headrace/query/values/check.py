"""Check the parameters of a request for values and make the plan of a query."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Final

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import (
    QUERY_LIMITS,
    Aggregate,
    Column,
    Kind,
    Operator,
    Table,
    table_names,
)
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.plan import PlannedFilter, PlannedSelect, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.query.validate.check import check_table
from headrace.query.validate.columns import find_column
from headrace.query.validate.dates import check_period, check_timezone, resolve_period
from headrace.query.validate.day_range import range_of_days
from headrace.query.validate.suggest import quote_json

VALUES_PARAMETERS: Final = (
    *("website_id", "table", "field", "search", "limit"),
    *("startDate", "endDate", "lastDays", "timezone"),
)
_SEARCHABLE = frozenset({Kind.TEXT, Kind.JSON})
_NUMBER = re.compile("[0-9]{1,9}")
_ESCAPED = re.compile(r"[^\w ]", re.ASCII)


def check_values_request(
    parameters: Mapping[str, str],
    website_id: WebsiteId,
    *,
    now_ms: int,
    cutoffs: Cutoffs = NO_CUTOFFS,
) -> QueryPlan:
    """Return a query that counts the rows of each value that is set.

    Raises `InvalidQuery` for the first error.
    """
    table, column = _find_column(parameters)
    is_set = PlannedFilter(column, Operator.IS_SET, ())
    search = parameters.get("search")
    contains = () if search is None else (_check_search(column, search),)
    limit = _check_limit(parameters.get("limit"))
    period = _check_period(parameters)
    zone = check_timezone(parameters.get("timezone"))
    return QueryPlan(
        website_id=website_id,
        table=table,
        selects=(PlannedSelect(None, Aggregate.COUNT, "count"),),
        filters=(is_set, *contains),
        group_by=(column,),
        range=range_of_days(*resolve_period(period, zone, now_ms), zone),
        granularity=None,
        order_by=(),
        limit=limit,
        offset=0,
        fill=False,
        cutoff_ms=cutoffs.of_table(table),
    )


def _find_column(parameters: Mapping[str, str]) -> tuple[Table, Column]:
    if "table" not in parameters:
        detail = f": one of {', '.join(table_names())} is required"
        raise InvalidQuery(QueryErrorCode.INVALID_TABLE, detail)
    table = check_table(parameters["table"])
    if "field" not in parameters:
        raise InvalidQuery(QueryErrorCode.INVALID_COLUMN, ": the parameter field is required")
    return table, find_column(table, parameters["field"])


def _check_search(column: Column, search: str) -> PlannedFilter:
    """Return the filter for values that contain a text in any case."""
    maximum = QUERY_LIMITS["maxSearchLength"]
    if len(search) > maximum:
        detail = f": {len(search)} characters given, maximum is {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_SEARCH, detail)
    if column.kind not in _SEARCHABLE:
        detail = f": {quote_json(column.name)} has no texts"
        raise InvalidQuery(QueryErrorCode.INVALID_SEARCH, detail)
    return PlannedFilter(column, Operator.MATCHES, (f"(?i){_escape(search)}",))


def _escape(text: str) -> str:
    """Return a pattern of RE2 for a text itself."""
    return _ESCAPED.sub(lambda match: f"\\x{{{ord(match[0]):x}}}", text)


def _check_limit(value: str | None) -> int:
    if value is None:
        return QUERY_LIMITS["defaultValues"]
    if not _NUMBER.fullmatch(value) or int(value) < 1:
        raise InvalidQuery(QueryErrorCode.INVALID_LIMIT, ": must be a whole number from 1")
    return min(int(value), QUERY_LIMITS["maxValues"])


def _check_period(parameters: Mapping[str, str]) -> tuple[date, date] | int:
    """Return the days: those that are given, else the last ones up to today."""
    start, end = parameters.get("startDate"), parameters.get("endDate")
    last_days = parameters.get("lastDays")
    if start is None and end is None and last_days is None:
        return QUERY_LIMITS["defaultValuesDays"]
    is_number = last_days is not None and _NUMBER.fullmatch(last_days)
    return check_period(start, end, int(last_days or "") if is_number else last_days)
