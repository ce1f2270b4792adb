"""Validation of a query body, in the contract's order of checks."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

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
    "DUPLICATE_OUTPUT_NAME": "Duplicate output name",
}

AGGREGATES = ("count", "uniq", "sum", "avg", "max", "min", "p50", "p75", "p90", "p95", "p99")
TEXT_OPERATORS = ("contains", "not_contains", "starts_with")
LIST_OPERATORS = ("in", "not_in")
ORDER_OPERATORS = ("gt", "lt", "gte", "lte")
OPERATORS = ("eq", "ne", *ORDER_OPERATORS, *TEXT_OPERATORS, *LIST_OPERATORS)
_RANGE_KEYS = ("startDate", "endDate", "timezone", "granularity")
_PAGE = ("limit", "offset", "fill", "orderBy")


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


@dataclass(frozen=True)
class Filter:
    """One condition; scalar operators have one entry in `values`; numbers are already parsed."""

    field: str
    kind: str
    operator: str
    values: list[Any]


@dataclass(frozen=True)
class Query:
    """A valid body."""

    table: str
    selects: list[Select]
    filters: list[Filter]
    group_by: list[str]
    start: date
    end: date
    zone: ZoneInfo
    granularity: str | None
    limit: int
    offset: int
    order_by: list[tuple[str, bool]]  # output name, whether descending
    fill: bool


def check(body: object) -> Query:
    """Parse a body; raises `QueryRejected` with the first violation."""
    root = _check_shape(body)
    query = root["query"]
    table = _table(query["table"])
    names: list[str] = []
    selects = _selects(table, query["selects"], names)
    filters = _filters(table, query.get("filters") or [])
    group_by = _group_by(table, query.get("groupBy") or [], names)
    start, end = _dates(root.get("startDate"), root.get("endDate"))
    zone = _zone(root.get("timezone"))
    granularity = _granularity(root.get("granularity"), table, names)
    limit = _whole_number(root.get("limit"), 1000, 1, None, "INVALID_LIMIT")
    offset = _whole_number(root.get("offset"), 0, 0, 1_000_000, "INVALID_OFFSET")
    order_by = _order_by(root.get("orderBy") or [], names)
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
        fill=_fill(root.get("fill"), granularity),
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
        item = _object(select, required={"field", "aggregate"}, optional={"alias"})
        _texts(item["field"], item["aggregate"], item.get("alias") or "")
    for condition in _list(_or_empty(query.get("filters"))):
        item = _object(condition, required={"field", "operator", "value"}, optional=())
        _texts(item["field"], item["operator"])
        for scalar in _values(item["value"]):
            _require(not is_list(scalar) and not is_object(scalar), "INVALID_BODY")
    _texts(*_list(_or_empty(query.get("groupBy"))))
    for key in _list(_or_empty(root.get("orderBy"))):
        item = _object(key, required={"field"}, optional={"direction"})
        _texts(item["field"], "" if item.get("direction") is None else item["direction"])
    return root


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


def _selects(table: str, sent: list[dict[str, Any]], names: list[str]) -> list[Select]:
    _require(len(sent) >= 1, "INVALID_SELECT")
    _require(len(sent) <= 10, "TOO_MANY_SELECTS")
    return [_select(table, names, **select) for select in sent]


def _claim(name: str, names: list[str]) -> None:
    _require(name not in names, "DUPLICATE_OUTPUT_NAME")
    names.append(name)


def _select(
    table: str, names: list[str], field: str, aggregate: str, alias: str | None = None
) -> Select:
    column = None if field == "*" else _column(table, field)
    _require(aggregate in AGGREGATES, "INVALID_AGGREGATE")
    if column is None:
        _require(aggregate == "count", "NOT_AGGREGATABLE")
    elif aggregate not in ("count", "uniq"):
        _require(column.aggregatable, "NOT_AGGREGATABLE")
    if alias is None:
        alias = f"{aggregate}_{'all' if field == '*' else field.replace('.', '_')}"
    else:
        _require(1 <= len(alias) <= 64, "INVALID_SELECT")
    _claim(alias, names)
    return Select(field, aggregate, alias)


def _filters(table: str, sent: list[dict[str, Any]]) -> list[Filter]:
    _require(len(sent) <= 20, "TOO_MANY_FILTERS")
    return [_filter(table, **condition) for condition in sent]


def _filter(table: str, field: str, operator: str, value: Any) -> Filter:
    column = _column(table, field)
    _require(column.filterable, "NOT_FILTERABLE")
    _require(operator in OPERATORS, "INVALID_OPERATOR")
    if operator in TEXT_OPERATORS:
        _require(column.kind in ("text", "json"), "INVALID_OPERATOR")
    elif column.kind == "boolean":
        _require(operator in ("eq", "ne", *LIST_OPERATORS), "INVALID_OPERATOR")
    _require(is_list(value) == (operator in LIST_OPERATORS), "INVALID_VALUE")
    values = _values(value)
    _require(1 <= len(values) <= 1000, "INVALID_VALUE")
    return Filter(
        field, column.kind, operator, [_filter_value(column, operator, one) for one in values]
    )


def _filter_value(column: Column, operator: str, value: Any) -> Any:
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


def _group_by(table: str, sent: list[str], names: list[str]) -> list[str]:
    _require(len(sent) <= 5, "TOO_MANY_GROUP_BY")
    for field in sent:
        _column(table, field)
        _claim(field, names)
    return sent


# The scalars of the root.


def _dates(start: object, end: object) -> tuple[date, date]:
    first, last = _date(start, "INVALID_START_DATE"), _date(end, "INVALID_END_DATE")
    _require(first <= last, "INVALID_END_DATE")
    ten_years_later = (first.year + 10, first.month, first.day)
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
    if not isinstance(value, str) or value not in available_timezones():
        raise QueryRejected("INVALID_TIMEZONE")
    return ZoneInfo(value)


def _granularity(value: object, table: str, names: list[str]) -> str | None:
    if value is None:
        return None
    if value not in ("hourly", "daily") or table == "profiles":
        raise QueryRejected("INVALID_GRANULARITY")
    _claim("date", names)
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


def _fill(value: object, granularity: str | None) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool) or (value and granularity is None):
        raise QueryRejected("INVALID_FILL")
    return value
