"""The rows of a valid query."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.oracle.buckets import (
    MOST_FILLED_ROWS,
    bucket_of,
    buckets_of,
    has_too_many_hours,
)
from tests.oracle.check import (
    DATETIME_AGGREGATES,
    PRESENCE_OPERATORS,
    SHARE_AGGREGATES,
    Filter,
    Group,
    Query,
    QueryRejected,
    Select,
    parse_datetime,
    pattern,
)
from tests.oracle.columns import find_column, is_list, is_object
from tests.oracle.rows import Row, Stored, rows_of, time_column, value_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class JsonText(str):
    """An object or array as JSON text; it differs from a string with the same characters."""

    __slots__ = ()


@dataclass(frozen=True)
class Answer:
    """Ordered rows whose keys are in any order, and whether more rows exist."""

    rows: list[Row]
    limit: int
    truncated: bool
    totals: Row | None
    compare: tuple[date, date] | None
    others: list[Row] | None


_Keys = set[tuple[Any, ...]]


def evaluated(query: Query, stored: Stored, top: _Keys | None = None) -> Answer:
    """Evaluate a query; raises `QueryRejected` if gap filling adds too many rows.

    `top` has the groups to which rows are limited, where the query itself does not choose them.
    """
    rows = matching_rows(query, stored)
    if query.top is not None:
        top = _top_groups(query, rows)
    compared = _compared(query, stored, top)
    totals = _selects(query, rows)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    if not query.group_by and not query.granularity:
        groups[()] = []
    for row in rows:
        if top is None or _values_of_groups(query, row) in top:
            groups.setdefault(_group(query, row), []).append(row)
    if query.fill:
        _fill(query, groups)
    outputs = [_output(query, key, rows) for key, rows in groups.items()]
    if compared is not None:
        totals["previous"] = compared.totals
        outputs = [row | {"previous": _counterpart(query, row, compared)} for row in outputs]
    outputs = [row for row in outputs if _is_kept(query, row)]
    ordered = _ordered(query, outputs)
    page = ordered[query.offset : query.offset + query.limit]
    truncated = len(ordered) > query.offset + query.limit
    return Answer(
        page,
        query.limit,
        truncated,
        totals if query.totals else None,
        query.compare,
        _others(query, rows, stored, top or set()) if query.others else None,
    )


def _values_of_groups(query: Query, row: Row) -> tuple[Any, ...]:
    return tuple(_grouped(query, row, column) for column in query.group_by)


def _top_groups(query: Query, rows: list[Row]) -> _Keys:
    """Return the first groups of the range as a whole."""
    whole = replace(
        query,
        granularity=None,
        order_by=[(name, descending) for name, descending in query.order_by if name != "date"],
    )
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_values_of_groups(query, row), []).append(row)
    keys = "its groups"  # no output has this name: aliases of the tests differ from it
    outputs = [_output(whole, key, rows) | {keys: key} for key, rows in groups.items()]
    return {row[keys] for row in _ordered(whole, outputs)[: query.top]}


def _others(query: Query, rows: list[Row], stored: Stored, top: _Keys) -> list[Row]:
    """Return a row over all other groups for each bucket."""
    if all(_values_of_groups(query, row) in top for row in rows):
        return []
    buckets = _buckets_of_others(query, rows, top)
    shown = [
        {"date": label, **dict.fromkeys(query.group_by), **_selects(query, buckets[label])}
        for label in sorted(buckets)
    ]
    if query.compare is None:
        return shown
    start, end = query.compare
    before = replace(query, start=start, end=end)
    compared = _buckets_of_others(before, matching_rows(before, stored), top)
    ungrouped, before = replace(query, group_by=[]), replace(before, group_by=[])
    by_number = {
        _number(before, {"date": label}): _selects(query, rows) for label, rows in compared.items()
    }
    return [row | {"previous": by_number.get(_number(ungrouped, row))} for row in shown]


def _buckets_of_others(query: Query, rows: list[Row], top: _Keys) -> dict[str, list[Row]]:
    """Return the rows of other groups by bucket; with `fill` every bucket, if any has a row."""
    buckets: dict[str, list[Row]] = {}
    if query.fill:
        buckets = {label: [] for label in _buckets_of_range(query)}
    for row in rows:
        if _values_of_groups(query, row) not in top:
            local = _local(query, row[time_column(query.table)])
            buckets.setdefault(bucket_of(local, str(query.granularity)), []).append(row)
    return buckets


@dataclass(frozen=True)
class _Compared:
    """The compared range: its selects by number of the bucket and groups, and over all rows."""

    rows: dict[tuple[Any, ...], Row]
    totals: Row


def _compared(query: Query, stored: Stored, top: _Keys | None) -> _Compared | None:
    """Evaluate the same query over the compared range, whole and alone."""
    if query.compare is None:
        return None
    start, end = query.compare
    alone = replace(
        query,
        start=start,
        end=end,
        compare=None,
        having=[],
        limit=10**9,
        offset=0,
        totals=True,
        top=None,
        others=False,
    )
    answer = evaluated(alone, stored, top)
    assert answer.totals is not None
    names = [select.name for select in query.selects]
    return _Compared(
        {_number(alone, row): {name: row[name] for name in names} for row in answer.rows},
        answer.totals,
    )


def _counterpart(query: Query, row: Row, compared: _Compared) -> Row | None:
    return compared.rows.get(_number(query, row))


def _number(query: Query, row: Row) -> tuple[Any, ...]:
    """Return the number of a row's bucket in its range, the hour, and the groups with types."""
    groups = [(_type(row[name]), row[name]) for name in query.group_by]
    if query.granularity is None:
        return (0, "", *groups)
    day, hour = date.fromisoformat(row["date"][:10]), row["date"][10:]
    match query.granularity:
        case "weekly":
            monday = query.start - timedelta(days=query.start.weekday())
            return ((day - monday).days // 7, hour, *groups)
        case "monthly":
            return (
                (day.year - query.start.year) * 12 + day.month - query.start.month,
                hour,
                *groups,
            )
        case _:
            return ((day - query.start).days, hour, *groups)


def matching_rows(query: Query, stored: Stored) -> list[Row]:
    """Return the stored rows of the range that match all filters, in order of arrival."""
    return [row for row in _rows(query, stored) if _matches_all(query, query.filters, row)]


def shown_value(query: Query, row: Row, column: str) -> Any:
    """Return a row's value of a column as a result shows it."""
    return _shown(query.table, column, value_of(row, column))


def sort_rows(rows: list[Row], name: str, *, descending: bool) -> list[Row]:
    """Sort rows by one column, stably; null is last in both directions."""
    return _sorted(rows, name, descending=descending)


# Range and filters.


def _rows(query: Query, stored: Stored) -> list[Row]:
    def in_range(epoch_ms: int) -> bool:
        return query.start <= _local(query, epoch_ms).date() <= query.end

    rows = rows_of(query.table, stored, in_range)
    if _names_bots(query.filters):
        return rows
    return [row for row in rows if not row.get("is_bot", False) or _is_taken(query, row)]


def _is_taken(query: Query, row: Row) -> bool:
    """Return whether a select whose filters name bots takes a row of one."""
    return any(
        _names_bots([*select.filters]) and _matches_all(query, select.filters, row)
        for select in query.selects
    )


def _names_bots(conditions: list[Filter | Group]) -> bool:
    return any(
        _names_bots(one.items) if isinstance(one, Group) else one.field == "is_bot"
        for one in conditions
    )


def _local(query: Query, epoch_ms: int) -> datetime:
    return (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(query.zone)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "gt": lambda value, wanted: _row_location(value) > _row_location(wanted),
    "lt": lambda value, wanted: _row_location(value) < _row_location(wanted),
    "gte": lambda value, wanted: _row_location(value) >= _row_location(wanted),
    "lte": lambda value, wanted: _row_location(value) <= _row_location(wanted),
    "contains": lambda value, wanted: wanted in value,
    "starts_with": lambda value, wanted: value.startswith(wanted),
    "ends_with": lambda value, wanted: value.endswith(wanted),
    "matches": lambda value, wanted: "\0" not in wanted and bool(pattern(wanted).search(value)),
    "in": lambda value, wanted: value == wanted,
}
_NEGATIONS = {
    "ne": "eq",
    "not_contains": "contains",
    "not_starts_with": "starts_with",
    "not_ends_with": "ends_with",
    "not_matches": "matches",
    "not_in": "in",
}


def _row_location(value: Any) -> Any:
    """Numbers are ordered as doubles, though a double cannot represent every long number."""
    return float(value) if _type(value) == "number" else value


def _matches_all(query: Query, conditions: Sequence[Filter | Group], row: Row) -> bool:
    return all(_matches(query, condition, row) for condition in conditions)


def _matches(query: Query, condition: Filter | Group, row: Row) -> bool:
    """Compare; a negation is the exact opposite, so it matches missing values and other types."""
    if isinstance(condition, Group):
        found_items = [_matches(query, one, row) for one in condition.items]
        return any(found_items) if condition.is_any else all(found_items)
    operator = _NEGATIONS.get(condition.operator, condition.operator)
    value = value_of(row, condition.field)
    if operator in PRESENCE_OPERATORS:
        return _missing(value) == (operator == "is_not_set")
    wanted = [_wanted(query, condition, one) for one in condition.values]
    found = any(_type(value) == _type(one) and _COMPARISONS[operator](value, one) for one in wanted)
    return found != (condition.operator in _NEGATIONS)


def _wanted(query: Query, condition: Filter, value: Any) -> Any:
    if condition.kind != "datetime" or isinstance(value, int | float):
        return value
    read = parse_datetime(value, query.zone)
    assert read is not None
    return (read.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def _type(value: Any) -> str:
    """Return the JSON type of a value: true is not 1."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


# Buckets, groups and aggregates.


def _group(query: Query, row: Row) -> tuple[Any, ...]:
    bucket = (
        [bucket_of(_local(query, row[time_column(query.table)]), query.granularity)]
        if query.granularity
        else []
    )
    return (*bucket, *(_grouped(query, row, column) for column in query.group_by))


def _grouped(query: Query, row: Row, column: str) -> tuple[str, Any]:
    value = _shown(query.table, column, value_of(row, column))
    return _type(value), value


def _shown(table: str, name: str, value: Any) -> Any:
    column = find_column(table, name)
    if column is not None and column.kind == "datetime":
        at = _EPOCH + timedelta(milliseconds=value)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if is_object(value) or is_list(value):
        return JsonText(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return value


def _output(query: Query, key: tuple[Any, ...], rows: list[Row]) -> Row:
    bucket, values = (key[:1], key[1:]) if query.granularity else ((), key)
    groups = dict(zip(query.group_by, (value for _, value in values), strict=True))
    return {**({"date": bucket[0]} if bucket else {}), **groups, **_selects(query, rows)}


def _selects(query: Query, rows: list[Row]) -> Row:
    return {
        select.name: _aggregate(query.table, select, _rows_of_select(query, select, rows))
        for select in query.selects
    }


def _rows_of_select(query: Query, select: Select, rows: list[Row]) -> list[Row]:
    sees_bots = _names_bots([*query.filters, *select.filters])
    return [
        row
        for row in rows
        if (sees_bots or not row.get("is_bot", False)) and _matches_all(query, select.filters, row)
    ]


_THRESHOLDS = {
    "LCP": (2500, 4000),
    "FCP": (1800, 3000),
    "INP": (200, 500),
    "TTFB": (800, 1800),
    "CLS": (0.1, 0.25),
}


def _rating(row: Row) -> str:
    good, poor = _THRESHOLDS[row["metric_name"]]
    value = row["metric_value"]
    return "good" if value <= good else "poor" if value > poor else "needs_improvement"


def _share(aggregate: str, rows: list[Row]) -> float | None:
    ratings = [_rating(row) for row in rows if row["metric_name"] in _THRESHOLDS]
    return ratings.count(aggregate.removesuffix("_share")) / len(ratings) if ratings else None


def _aggregate(table: str, select: Select, rows: list[Row]) -> Any:
    if select.aggregate == "count":
        return len(rows)
    if select.aggregate in SHARE_AGGREGATES:
        return _share(select.aggregate, rows)
    if select.aggregate in DATETIME_AGGREGATES:
        times = [row[select.field] for row in rows]
        last = max if select.aggregate == "latest" else min
        return _shown(table, select.field, last(times)) if times else None
    values = [value_of(row, select.field) for row in rows]
    if select.aggregate == "uniq":
        present = [_shown(table, select.field, value) for value in values if not _missing(value)]
        return len({(_type(value), value) for value in present})
    numbers = sorted(float(value) for value in values if _type(value) == "number")
    if select.aggregate == "sum":
        return math.fsum(numbers)
    return _NUMERIC[select.aggregate](numbers) if numbers else None


def _missing(value: Any) -> bool:
    return value is None or value == ""


def _percentile(share: float) -> Callable[[Sequence[float]], float]:
    """Interpolate linearly between the closest ranks, which are counted from one.

    Ranks counted from zero can change the last digit, and with it the order of rows.
    """

    def interpolated(numbers: Sequence[float]) -> float:
        rank = (len(numbers) - 1) * share + 1
        below, above = numbers[int(rank) - 1], numbers[min(int(rank), len(numbers) - 1)]
        return below + (above - below) * (rank - int(rank))

    return interpolated


_NUMERIC: dict[str, Callable[[Sequence[float]], float]] = {
    "avg": lambda numbers: math.fsum(numbers) / len(numbers),
    "max": max,
    "min": min,
    "p50": _percentile(0.5),
    "p75": _percentile(0.75),
    "p90": _percentile(0.9),
    "p95": _percentile(0.95),
    "p99": _percentile(0.99),
}


def _is_kept(query: Query, row: Row) -> bool:
    """Return whether a row matches all conditions of having; null matches only `ne`."""
    return all(
        operator == "ne"
        if row[name] is None
        else _COMPARISONS[_NEGATIONS.get(operator, operator)](row[name], value)
        != (operator in _NEGATIONS)
        for name, operator, value in query.having
    )


# Gap filling and order.


def _buckets_of_range(query: Query) -> frozenset[str]:
    if has_too_many_hours(query.start, query.end, query.granularity):
        raise QueryRejected("INVALID_FILL")
    return buckets_of(query.start, query.end, query.zone, str(query.granularity))


def _fill(query: Query, groups: dict[tuple[Any, ...], list[Row]]) -> None:
    """Add every group of the result to every bucket of the range."""
    without_date = {key[1:] for key in groups} if query.group_by else {()}
    buckets = _buckets_of_range(query) if without_date else frozenset[str]()
    if len(buckets) * len(without_date) > MOST_FILLED_ROWS:
        raise QueryRejected("INVALID_FILL")
    for bucket in buckets:
        for key in without_date:
            groups.setdefault((bucket, *key), [])


def _ordered(query: Query, rows: list[Row]) -> list[Row]:
    keys = list(query.order_by)
    keys += [("date", False)] if query.granularity else []
    keys += [(query.selects[0].name, True)]
    keys += [(column, False) for column in query.group_by]
    for name, descending in reversed(keys):
        rows = _sorted(rows, name, descending=descending)
    return rows


def _sorted(rows: list[Row], name: str, *, descending: bool) -> list[Row]:
    """Sort stably; null is last in both directions."""
    present = [row for row in rows if row[name] is not None]
    absent = [row for row in rows if row[name] is None]
    return sorted(present, key=lambda row: _rank(row[name]), reverse=descending) + absent


def _rank(value: Any) -> tuple[int, Any]:
    """Return the sort key of a value; values of a property sort by type first."""
    return ("number", "boolean", "str", "JsonText").index(_type(value)), value
