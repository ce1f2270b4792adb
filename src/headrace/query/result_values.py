"""Convert the store's rows to a result: every value as JSON shows it."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from headrace.base.clock import date_from_days, utc_datetime
from headrace.model.catalog import PREVIOUS_OUTPUT_NAME
from headrace.model.plan import OutputKind
from headrace.ports.store import Rows
from headrace.query.validate.day_range import first_date_of_month, first_date_of_week

Row: TypeAlias = Mapping[str, Any]
"""A row of a result by output name."""

_LARGEST_EXACT_INTEGER = 2.0**53


class ReadInfo(Struct, frozen=True):
    """What was read for a result.

    Every event that was acknowledged before `watermark_ms` is in the result.
    """

    rows: int = 0
    bytes: int = 0
    cached: bool = False
    watermark_ms: int = 0


class Comparison(Struct, frozen=True):
    """The range that a result is compared with: days counted from 1970.

    The last `width` columns of the result are the values of that range, null in the rows that are
    not `present` there.
    """

    first_day: int
    last_day: int
    width: int
    present: Sequence[bool]


class QueryResult(Struct, frozen=True):
    """Formatted rows with their output names.

    `truncated` is true if more rows exist beyond the limit. `execution_ms` includes the wait for
    the store. `totals` and `others` are by output name; None where the query does not ask for them.
    """

    names: tuple[str, ...]
    kinds: tuple[OutputKind, ...]
    rows: Rows
    limit: int
    truncated: bool
    execution_ms: float
    read: ReadInfo = ReadInfo()
    totals: Row | None = None
    comparison: Comparison | None = None
    others: Sequence[Row] | None = None


def rows_by_name(result: QueryResult) -> list[Row]:
    """Return rows by output name; the compared values are in `previous`, which may be null."""
    comparison = result.comparison
    if comparison is None:
        return [dict(zip(result.names, row, strict=True)) for row in result.rows]
    width = comparison.width
    names, selects = result.names[:-width], result.names[-2 * width : -width]
    return [
        {
            **dict(zip(names, row, strict=False)),
            PREVIOUS_OUTPUT_NAME: dict(zip(selects, row[-width:], strict=True))
            if is_present
            else None,
        }
        for row, is_present in zip(result.rows, comparison.present, strict=True)
    ]


def format_rows(rows: Rows, kinds: Sequence[OutputKind]) -> Rows:
    """Convert rows of the store to rows of the result; null stays null."""
    if not rows:
        return []
    columns = list(zip(*rows, strict=True))
    formatted = list(map(_format_column, columns, kinds))
    if all(map(is_, formatted, columns)):
        return rows
    return list(map(list, zip(*formatted, strict=True)))


def _format_column(column: Sequence[Any], kind: OutputKind) -> Sequence[Any]:
    """Format every distinct value of a column once: groups repeat few values in many rows."""
    if kind is OutputKind.TEXT or (kind is OutputKind.NUMBER and _is_json_ready(column)):
        return column
    formatter = FORMATTERS[kind]
    if kind is OutputKind.NUMBERS:
        return list(map(formatter, column))
    formatted = {value: None if value is None else formatter(value) for value in set(column)}
    return [formatted[value] for value in column]


def _is_json_ready(numbers: Sequence[Any]) -> bool:
    """Return whether no number needs formatting.

    That is nearly always so, and the check takes a third of the time of formatting.
    """
    if not set(map(type, numbers)) <= {int, float}:
        return False
    fractions = [number for number in numbers if type(number) is float]
    return (
        all(map(math.isfinite, fractions))
        and not any(map(float.is_integer, fractions))
        and min(numbers) >= -_LARGEST_EXACT_INTEGER
        and max(numbers) <= _LARGEST_EXACT_INTEGER
    )


def format_number(value: Any) -> int | float | None:  # noqa: ANN401 - a value of the store
    """Return whole numbers as int; -0 is 0, and infinity and NaN, which JSON lacks, are null."""
    number = float(value)
    if not math.isfinite(number):
        return None
    if number.is_integer() and abs(number) <= _LARGEST_EXACT_INTEGER:
        return int(number)
    return number


def _format_numbers(values: Any) -> list[int | float | None]:  # noqa: ANN401
    return [None if value is None else format_number(value) for value in values]


def format_datetime(value: Any) -> str:  # noqa: ANN401
    """Return epoch milliseconds as ISO 8601 in UTC, with milliseconds and `Z`."""
    timestamp = utc_datetime(int(value))
    return f"{timestamp:%Y-%m-%dT%H:%M:%S}.{timestamp.microsecond // 1000:03d}Z"


def _format_json(value: Any) -> str | int | float | bool:  # noqa: ANN401
    """Parse the text of a property's value: see `query.sql.json_properties`."""
    match value[0]:
        case '"':
            return str(value[1:-1])
        case "t" | "f":
            return bool(value == "true")
        case "{" | "[":
            return msgspec.json.encode(msgspec.json.decode(value)).decode()
        case _:
            number: int | float = msgspec.json.decode(value, type=int | float)
            return number


def _format_hour(value: Any) -> str:  # noqa: ANN401
    day, hour = divmod(int(value), 24)
    return f"{_format_day(day)} {hour:02d}:00:00"


@lru_cache(maxsize=4096)
def _format_day(value: Any) -> str:  # noqa: ANN401
    return date_from_days(int(value)).isoformat()


def _format_week(value: Any) -> str:  # noqa: ANN401
    return first_date_of_week(int(value)).isoformat()


def _format_month(value: Any) -> str:  # noqa: ANN401
    return first_date_of_month(int(value)).isoformat()


FORMATTERS: Mapping[OutputKind, Callable[[Any], Any]] = {
    OutputKind.TEXT: str,
    OutputKind.NUMBER: format_number,
    OutputKind.NUMBERS: _format_numbers,
    OutputKind.BOOLEAN: bool,
    OutputKind.DATETIME: format_datetime,
    OutputKind.JSON: _format_json,
    OutputKind.HOUR: _format_hour,
    OutputKind.DAY: _format_day,
    OutputKind.WEEK: _format_week,
    OutputKind.MONTH: _format_month,
}
