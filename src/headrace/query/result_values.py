"""From the store's rows to an answer: every value as JSON shows it."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any

import msgspec
from msgspec import Struct

from headrace.base.clock import date_from_days, utc_datetime
from headrace.model.plan import OutputKind
from headrace.ports.store import Rows

_LARGEST_EXACT_INTEGER = 2.0**53


class QueryResult(Struct, frozen=True):
    """Finished rows under their output names. `truncated` tells that there were more rows."""

    names: tuple[str, ...]
    kinds: tuple[OutputKind, ...]
    rows: Rows
    limit: int
    truncated: bool
    execution_ms: float


def format_rows(rows: Rows, kinds: Sequence[OutputKind]) -> Rows:
    """Turn rows of the store into rows of the answer; null stays null."""
    if not rows:
        return []
    columns = list(zip(*rows, strict=True))
    formatted = list(map(_format_column, columns, kinds))
    if all(map(is_, formatted, columns)):
        return rows
    return list(map(list, zip(*formatted, strict=True)))


def _format_column(column: Sequence[Any], kind: OutputKind) -> Sequence[Any]:
    """Finish every value once, however many rows have it: equal ones of a column finish alike."""
    if kind is OutputKind.TEXT or (kind is OutputKind.NUMBER and _is_json_ready(column)):
        return column
    formatter = FORMATTERS[kind]
    formatted = {value: None if value is None else formatter(value) for value in set(column)}
    return [formatted[value] for value in column]


def _is_json_ready(numbers: Sequence[Any]) -> bool:
    """Tell whether numbers are all as JSON shows them, as nearly always: to look takes a third."""
    if not set(map(type, numbers)) <= {int, float}:
        return False
    fractions = [number for number in numbers if type(number) is float]
    return (
        all(map(math.isfinite, fractions))
        and not any(map(float.is_integer, fractions))
        and min(numbers) >= -_LARGEST_EXACT_INTEGER
        and max(numbers) <= _LARGEST_EXACT_INTEGER
    )


def _format_number(value: Any) -> int | float | None:  # noqa: ANN401 - a value of the store
    """Write whole numbers without a point; -0 is 0, and what JSON does not have is null."""
    number = float(value)
    if not math.isfinite(number):
        return None
    if number.is_integer() and abs(number) <= _LARGEST_EXACT_INTEGER:
        return int(number)
    return number


def _format_datetime(value: Any) -> str:  # noqa: ANN401
    timestamp = utc_datetime(int(value))
    return f"{timestamp:%Y-%m-%dT%H:%M:%S}.{timestamp.microsecond // 1000:03d}Z"


def _format_json(value: Any) -> str | int | float | bool:  # noqa: ANN401
    """Read a property's value from the text that `query.properties` describes."""
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


FORMATTERS: Mapping[OutputKind, Callable[[Any], Any]] = {
    OutputKind.TEXT: str,
    OutputKind.NUMBER: _format_number,
    OutputKind.BOOLEAN: bool,
    OutputKind.DATETIME: _format_datetime,
    OutputKind.JSON: _format_json,
    OutputKind.HOUR: _format_hour,
    OutputKind.DAY: _format_day,
}
