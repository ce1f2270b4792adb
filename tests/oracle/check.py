"""Validation of a query body, in the contract's order of checks."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import re2

from tests.oracle.buckets import exceeds_filled_rows
from tests.oracle.columns import ALIASES, TABLES, Column, find_column, is_list, is_object

ERROR_PREFIXES = {
    "INVALID_BODY": "Invalid request body",
    "INVALID_TABLE": "Invalid table",
    "INVALID_COLUMN": "Invalid column",
    "NOT_FILTERABLE": "Column not filterable",
    "NOT_AGGREGATABLE": "Column not aggregatable",
    "TOO_MANY_SELECTS": "Too many selects",
    "TOO_MANY_FILTERS": "Too many filters",
    "TOO_MANY_GROUP_BY": "Too many groupBy",
    "INVALID_SELECT": "Invalid select",
    "INVALID_AGGREGATE": "Invalid aggregate",
    "INVALID_OPERATOR": "Invalid operator",
    "INVALID_FILTER": "Invalid filter",
    "INVALID_VALUE": "Invalid value",
    "INVALID_START_DATE": "Invalid startDate",
    "INVALID_END_DATE": "Invalid endDate",
    "INVALID_TIMEZONE": "Invalid timezone",
    "INVALID_GRANULARITY": "Invalid granularity",
    "INVALID_LIMIT": "Invalid limit",
    "INVALID_OFFSET": "Invalid offset",
    "INVALID_ORDER_BY": "Invalid orderBy",
    "INVALID_FILL": "Invalid fill",
    "INVALID_HAVING": "Invalid having",
    "INVALID_TOP": "Invalid top",
    "INVALID_COMPARE": "Invalid compare",
    "INVALID_TOTALS": "Invalid totals",
    "INVALID_LAST_DAYS": "Invalid lastDays",
    "INVALID_SEARCH": "Invalid search",
    "DUPLICATE_OUTPUT_NAME": "Duplicate output name",
}

NUMBER_AGGREGATES = ("sum", "avg", "max", "min", "p50", "p75", "p90", "p95", "p99")
DATETIME_AGGREGATES = ("earliest", "latest")
SHARE_AGGREGATES = ("good_share", "needs_improvement_share", "poor_share")
AGGREGATES = ("count", "uniq", *NUMBER_AGGREGATES, *DATETIME_AGGREGATES, *SHARE_AGGREGATES)
PATTERN_OPERATORS = ("matches", "not_matches")
TEXT_OPERATORS = (
    *("contains", "not_contains", "starts_with", "not_starts_with", "ends_with", "not_ends_with"),
    *PATTERN_OPERATORS,
)
PRESENCE_OPERATORS = ("is_set", "is_not_set")
LIST_OPERATORS = ("in", "not_in")
ORDER_OPERATORS = ("gt", "lt", "gte", "lte")
OPERATORS = ("eq", "ne", *ORDER_OPERATORS, *TEXT_OPERATORS, *LIST_OPERATORS, *PRESENCE_OPERATORS)
BOOLEAN_OPERATORS = ("eq", "ne", *LIST_OPERATORS, *PRESENCE_OPERATORS)
MAX_PATTERN_LENGTH = 256
_RANGE_KEYS = ("startDate", "endDate", "timezone", "granularity")
_CONDITION = ("field", "operator", "value")
_GROUPS = ("or", "and")
_PAGE = (
    "limit",
    "offset",
    "fill",
    "orderBy",
    "having",
    "lastDays",
    "compare",
    "totals",
    "top",
    "others",
)
_HAVING = ("eq", "ne", "gt", "lt", "gte", "lte")


class QueryRejected(Exception):
    """The body is rejected with this code; the error of the response begins with `cause`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
        self.cause = ERROR_PREFIXES[code]


@dataclass(frozen=True)
class Select:
    """One output; `field` may be `*`."""

    field: str
    aggregate: str
    name: str
    filters: "list[Filter]"


@dataclass(frozen=True)
class Filter:
    """One condition; scalar operators have one entry in `values`; numbers are already parsed."""

    field: str
    kind: str
    operator: str
    values: list[Any]


@dataclass(frozen=True)
class Group:
    """Conditions: any or all of them must match."""

    is_any: bool
    items: list["Filter | Group"]


@dataclass(frozen=True)
class Query:
    """A valid body."""

    table: str
    selects: list[Select]
    filters: list[Filter | Group]
    group_by: list[str]
    start: date
    end: date
    zone: ZoneInfo
    granularity: str | None
    limit: int
    offset: int
    order_by: list[tuple[str, bool]]  # output name, whether descending
    fill: bool
    having: list[tuple[str, str, float]]
    compare: tuple[date, date] | None
    totals: bool
    top: int | None
    others: bool


def check(body: object) -> Query:
    """Parse a body; raises `QueryRejected` with the first violation."""
    root = _check_shape(body)
    query = root["query"]
    table = _table(query["table"])
    selects = _selects(table, query["selects"])
    filters = _filters(table, query.get("filters") or [])
    group_by = _group_by(table, query.get("groupBy") or [])
    names = [*(select.name for select in selects), *group_by]
    names += [] if root.get("granularity") is None else ["date"]
    names += [] if root.get("compare") is None else ["previous"]
    _require(len(set(names)) == len(names), "DUPLICATE_OUTPUT_NAME")
    period = _period(root)
    zone = _zone(root.get("timezone"))
    start, end = _days_until_today(period, zone) if isinstance(period, int) else period
    granularity = _granularity(root.get("granularity"), table)
    limit = _whole_number(root.get("limit"), 1000, 1, None, "INVALID_LIMIT")
    offset = _whole_number(root.get("offset"), 0, 0, 1_000_000, "INVALID_OFFSET")
    order_by = _order_by(root.get("orderBy") or [], names)
    fill = _fill(root.get("fill"), granularity, root.get("having"))
    if fill and not group_by and granularity is not None:
        _require(not exceeds_filled_rows(start, end, zone, granularity), "INVALID_FILL")
    having = _having(
        root.get("having"),
        [one.name for one in selects if one.aggregate not in DATETIME_AGGREGATES],
    )
    top = _top(root.get("top"), has_buckets=bool(group_by and granularity))
    return Query(
        table=table,
        selects=selects,
        filters=filters,
        group_by=group_by,
        start=start,
        end=end,
        zone=zone,
        granularity=granularity,
        limit=min(limit, 10_000),
        offset=offset,
        order_by=order_by,
        fill=fill,
        having=having,
        top=top,
        others=_others(root.get("others"), top),
        compare=_compare(root.get("compare"), start, end),
        totals=_totals(root.get("totals")),
    )


def _require(matches: bool, code: str) -> None:
    if not matches:
        raise QueryRejected(code)


# Shape: objects, lists and texts where required, no unknown keys, no missing keys.


def _check_shape(body: object) -> dict[str, Any]:
    root = _object(
        body,
        required={"query"},
        optional=(*_RANGE_KEYS, *_PAGE),
    )
    query = _object(root["query"], required={"table", "selects"}, optional={"filters", "groupBy"})
    _text(query["table"])
    for select in _list(query["selects"]):
        item = _object(select, required={"field", "aggregate"}, optional={"alias", "filters"})
        for one in _list(_or_empty(item.get("filters"))):
            _filter_shape(one)
        _texts(item["field"], item["aggregate"], item.get("alias") or "")
    for item in _list(_or_empty(query.get("filters"))):
        _filter_shape(item)
    _texts(*_list(_or_empty(query.get("groupBy"))))
    if is_object(root.get("compare")):
        _object(root["compare"], required=set(), optional=("startDate", "endDate"))
    for condition in _values(root.get("having")):
        known = condition.keys() if is_object(condition) else set[str]()
        _require(set(known) <= set(_CONDITION), "INVALID_BODY")
    for key in _list(_or_empty(root.get("orderBy"))):
        item = _object(key, required={"field"}, optional={"direction"})
        _texts(item["field"], "" if item.get("direction") is None else item["direction"])
    return root


def _filter_shape(item: object) -> None:
    condition = _object(item, required=set(), optional=(*_CONDITION, *_GROUPS))
    groups = [_list(condition[key]) for key in _GROUPS if condition.get(key) is not None]
    required = set(_CONDITION)
    if condition.get("operator") in ("is_set", "is_not_set"):
        required.remove("value")
    _require(bool(groups) or required <= condition.keys(), "INVALID_BODY")
    _texts(*(condition[key] for key in ("field", "operator") if key in condition))
    for scalar in _values(condition.get("value")):
        _require(not is_list(scalar) and not is_object(scalar), "INVALID_BODY")
    for items in groups:
        for one in items:
            _filter_shape(one)


def _object(value: object, *, required: set[str], optional: Collection[str]) -> dict[str, Any]:
    if not is_object(value):
        raise QueryRejected("INVALID_BODY")
    _require(required <= value.keys() <= {*required, *optional}, "INVALID_BODY")
    return value


def _list(value: object) -> list[Any]:
    if not is_list(value):
        raise QueryRejected("INVALID_BODY")
    return value


def _values(value: object) -> list[Any]:
    return value if is_list(value) else [value]


def _or_empty(value: object) -> object:
    return [] if value is None else value


def _text(value: object) -> None:
    _require(isinstance(value, str), "INVALID_BODY")


def _texts(*values: object) -> None:
    for value in values:
        _text(value)


# The query object.


def _table(name: str) -> str:
    name = ALIASES.get(name, name)
    _require(name in TABLES, "INVALID_TABLE")
    return name


def _column(table: str, field: str) -> Column:
    column = find_column(table, field)
    if column is None:
        raise QueryRejected("INVALID_COLUMN")
    return column


def _selects(table: str, sent: list[dict[str, Any]]) -> list[Select]:
    _require(len(sent) >= 1, "INVALID_SELECT")
    _require(len(sent) <= 10, "TOO_MANY_SELECTS")
    return [_select(table, **select) for select in sent]


def _select(
    table: str,
    field: str,
    aggregate: str,
    alias: str | None = None,
    filters: list[dict[str, Any]] | None = None,
) -> Select:
    column = None if field == "*" else _column(table, field)
    _require(aggregate in AGGREGATES, "INVALID_AGGREGATE")
    if column is None:
        _require(aggregate == "count", "NOT_AGGREGATABLE")
    elif aggregate in DATETIME_AGGREGATES:
        _require(column.kind == "datetime", "NOT_AGGREGATABLE")
    elif aggregate in SHARE_AGGREGATES:
        _require((table, field) == ("performance", "metric_value"), "NOT_AGGREGATABLE")
    elif aggregate not in ("count", "uniq"):
        _require(column.aggregatable, "NOT_AGGREGATABLE")
    if alias is None:
        alias = f"{aggregate}_{'all' if field == '*' else field.replace('.', '_')}"
    else:
        _require(1 <= len(alias) <= 64, "INVALID_SELECT")
    return Select(field, aggregate, alias, _own_filters(table, filters or []))


def _own_filters(table: str, sent: list[dict[str, Any]]) -> list[Filter]:
    _require(len(sent) <= 5, "TOO_MANY_FILTERS")
    checked: list[Filter] = []
    for item in sent:
        _require(not _groups_of(item), "INVALID_FILTER")
        checked.append(_filter(table, *(item.get(key) for key in _CONDITION)))
    return checked


def _filters(table: str, sent: list[dict[str, Any]]) -> list[Filter | Group]:
    _require(_count_filters(sent) <= 20, "TOO_MANY_FILTERS")
    return [_filter_item(table, item, 0) for item in sent]


def _groups_of(item: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {key: item[key] for key in _GROUPS if item.get(key) is not None}


def _count_filters(items: list[dict[str, Any]]) -> int:
    counts = [[_count_filters(group) for group in _groups_of(item).values()] for item in items]
    return sum(sum(within) if within else 1 for within in counts)


def _filter_item(table: str, item: dict[str, Any], depth: int) -> Filter | Group:
    groups = _groups_of(item)
    if not groups:
        return _filter(table, *(item.get(key) for key in _CONDITION))
    _require(len(groups) == 1 and not set(_CONDITION) & item.keys(), "INVALID_FILTER")
    ((key, items),) = groups.items()
    _require(depth < 3 and len(items) > 0, "INVALID_FILTER")
    return Group(key == "or", [_filter_item(table, one, depth + 1) for one in items])


def _filter(table: str, field: Any, operator: Any, value: Any) -> Filter:
    column = _column(table, field)
    _require(column.filterable, "NOT_FILTERABLE")
    _require(operator in OPERATORS, "INVALID_OPERATOR")
    if operator in TEXT_OPERATORS:
        _require(column.kind in ("text", "json"), "INVALID_OPERATOR")
    elif column.kind == "boolean":
        _require(operator in BOOLEAN_OPERATORS, "INVALID_OPERATOR")
    if operator in PRESENCE_OPERATORS:
        _require(value is None, "INVALID_VALUE")
        return Filter(field, column.kind, operator, [])
    _require(is_list(value) == (operator in LIST_OPERATORS), "INVALID_VALUE")
    values = _values(value)
    _require(1 <= len(values) <= 1000, "INVALID_VALUE")
    return Filter(
        field, column.kind, operator, [_filter_value(column, operator, one) for one in values]
    )


def _filter_value(column: Column, operator: str, value: Any) -> Any:
    checked = _typed_value(column, operator, value)
    if operator in PATTERN_OPERATORS:
        _require(len(value) <= MAX_PATTERN_LENGTH and pattern(value) is not None, "INVALID_VALUE")
    return checked


@lru_cache(maxsize=1000)
def pattern(text: str) -> Any:
    """Compile with RE2 itself; None for what is no regular expression of it."""
    library: Any = re2  # without types
    options = library.Options()
    options.log_errors = False
    try:
        return library.compile(text, options)
    except library.error:
        return None


def _typed_value(column: Column, operator: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match column.kind:
        case "text":
            _require(isinstance(value, str), "INVALID_VALUE")
        case "boolean":
            _require(isinstance(value, bool), "INVALID_VALUE")
        case "number":
            _require(is_number or _is_numeric(value), "INVALID_VALUE")
            return float(value)
        case "datetime":
            _require(is_number or parse_datetime(value, UTC) is not None, "INVALID_VALUE")
        case "json":
            _require(value is not None, "INVALID_VALUE")
            if operator in TEXT_OPERATORS:
                _require(isinstance(value, str), "INVALID_VALUE")
            if operator in ORDER_OPERATORS:
                _require(not isinstance(value, bool), "INVALID_OPERATOR")
    return value


def _is_numeric(value: object) -> bool:
    return isinstance(value, str) and bool(
        re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value)
    )


_DATE = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_DATETIME = re.compile(
    _DATE
    + r"(?:[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]+))?(Z|z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def parse_datetime(value: object, zone: tzinfo) -> datetime | None:
    """Parse an ISO 8601 timestamp; without an offset it is the local time of `zone`."""
    found = _DATETIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    day, time, fraction, offset = found.groups()
    try:
        read = datetime.fromisoformat(f"{day}T{time or '00:00'}{(offset or '').upper()}")
    except ValueError:
        return None
    milliseconds = int((fraction or "")[:3].ljust(3, "0"))
    return (read if read.tzinfo else read.replace(tzinfo=zone)).replace(
        microsecond=milliseconds * 1000
    )


def _group_by(table: str, sent: list[str]) -> list[str]:
    _require(len(sent) <= 5, "TOO_MANY_GROUP_BY")
    for field in sent:
        _column(table, field)
    return sent


# The scalars of the root.


def _period(root: dict[str, Any]) -> tuple[date, date] | int:
    if root.get("lastDays") is None:
        return _dates(root.get("startDate"), root.get("endDate"))
    both = root.get("startDate") is not None or root.get("endDate") is not None
    _require(not both, "INVALID_START_DATE")
    return _whole_number(root["lastDays"], 0, 1, 3652, "INVALID_LAST_DAYS")


def _days_until_today(days: int, zone: ZoneInfo) -> tuple[date, date]:
    today = datetime.now(UTC).astimezone(zone).date()
    return today - timedelta(days=days - 1), today


def _dates(start: object, end: object) -> tuple[date, date]:
    first, last = _date(start, "INVALID_START_DATE"), _date(end, "INVALID_END_DATE")
    _require(first <= last, "INVALID_END_DATE")
    is_leap_day = (first.month, first.day) == (2, 29)  # ten years later there is none
    ten_years_later = (first.year + 10, first.month, 28 if is_leap_day else first.day)
    _require((last.year, last.month, last.day) < ten_years_later, "INVALID_END_DATE")
    return first, last


def _date(value: object, code: str) -> date:
    if not isinstance(value, str) or not re.fullmatch(_DATE, value):
        raise QueryRejected(code)
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise QueryRejected(code) from None


def _zone(value: object) -> ZoneInfo:
    if value is None:
        return ZoneInfo("UTC")
    if not isinstance(value, str) or value not in _timezones():
        raise QueryRejected("INVALID_TIMEZONE")
    return ZoneInfo(value)


@cache
def _timezones() -> set[str]:
    """Return the names of all timezones: to find them takes longer than a query does."""
    return available_timezones()


def _granularity(value: object, table: str) -> str | None:
    if value is None:
        return None
    if value not in ("hourly", "daily", "weekly", "monthly") or table == "profiles":
        raise QueryRejected("INVALID_GRANULARITY")
    return str(value)


def _whole_number(value: object, default: int, least: int, most: int | None, code: str) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise QueryRejected(code)
    _require(value >= least and (most is None or value <= most), code)
    return int(value)


def _order_by(sent: list[dict[str, Any]], names: list[str]) -> list[tuple[str, bool]]:
    _require(len(sent) <= 5, "INVALID_ORDER_BY")
    for key in sent:
        _require(key["field"] in names, "INVALID_ORDER_BY")
        _require(key.get("direction") in (None, "asc", "desc"), "INVALID_ORDER_BY")
    return [(key["field"], key.get("direction") == "desc") for key in sent]


def _having(sent: Any, names: list[str]) -> list[tuple[str, str, float]]:
    if sent is None:
        return []
    if not is_list(sent):
        raise QueryRejected("INVALID_HAVING")
    _require(len(sent) <= 10, "INVALID_HAVING")
    return [_having_condition(item, names) for item in sent]


def _having_condition(item: Any, names: list[str]) -> tuple[str, str, float]:
    _require(is_object(item) and set(item) == set(_CONDITION), "INVALID_HAVING")
    field, operator, value = (item[key] for key in _CONDITION)
    _require(isinstance(field, str) and field in names, "INVALID_HAVING")
    _require(isinstance(operator, str) and operator in _HAVING, "INVALID_HAVING")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(is_number, "INVALID_HAVING")
    return field, operator, float(value)


def _fill(value: object, granularity: str | None, having: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool) or (value and granularity is None):
        raise QueryRejected("INVALID_FILL")
    _require(not value or having in (None, []), "INVALID_FILL")
    return value


def _top(value: object, *, has_buckets: bool) -> int | None:
    if value is None:
        return None
    top = _whole_number(value, 0, 1, 100, "INVALID_TOP")
    _require(has_buckets, "INVALID_TOP")
    return top


def _others(value: object, top: int | None) -> bool:
    _require(value is None or isinstance(value, bool), "INVALID_TOP")
    _require(not value or top is not None, "INVALID_TOP")
    return bool(value)


def _totals(value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise QueryRejected("INVALID_TOTALS")
    return bool(value)


def _compare(value: object, start: date, end: date) -> tuple[date, date] | None:
    if value is None:
        return None
    if value == "previous_period":
        length = end - start + timedelta(days=1)
        return start - length, end - length
    if value == "previous_year":
        return _last_year(start), _last_year(end)
    if not is_object(value):
        raise QueryRejected("INVALID_COMPARE")
    try:
        return _dates(value.get("startDate"), value.get("endDate"))
    except QueryRejected:
        raise QueryRejected("INVALID_COMPARE") from None


def _last_year(day: date) -> date:
    try:
        return day.replace(year=day.year - 1)
    except ValueError:
        return day.replace(year=day.year - 1, day=28)
