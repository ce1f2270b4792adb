"""The value of a filter: whether it suits the column and the operator, and what it means."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone

import msgspec
from msgspec import Struct

from millrace.base.errors import InvalidQuery, QueryFault
from millrace.model.catalog import (
    BOOLEAN_OPERATORS,
    LIST_OPERATORS,
    QUERY_LIMITS,
    TEXT_OPERATORS,
    Column,
    Kind,
    Operator,
)
from millrace.model.plan import FilterScalar
from millrace.model.wire import Scalar
from millrace.query.suggest import quoted

FilterValue = FilterScalar | datetime
"""A value of the column's type. A datetime without a zone waits for the query's timezone."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST_MS = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LATEST_MS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MILLISECOND

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)


class _Rule(Struct, frozen=True):
    """How values of one kind are read (None where they do not suit), and what is needed."""

    read: Callable[[Scalar], FilterValue | None]
    needed: str
    operators: frozenset[Operator]


def read_text(value: Scalar) -> str | None:
    """Take texts only."""
    return value if isinstance(value, str) else None


def read_boolean(value: Scalar) -> bool | None:
    """Take true and false only."""
    return value if isinstance(value, bool) else None


def read_number(value: Scalar) -> float | None:
    """Take finite numbers and texts that are one; true and false are no numbers."""
    if isinstance(value, str):
        return _finite(value) if _NUMBER.fullmatch(value) else None
    return None if value is None or isinstance(value, bool) else _finite(value)


def read_moment(value: Scalar) -> int | datetime | None:
    """Take ISO 8601 or epoch milliseconds; a text without an offset gives a naive datetime."""
    if isinstance(value, str):
        return _read_iso(value)
    number = read_number(value)
    if number is None or not _EARLIEST_MS <= number <= _LATEST_MS:
        return None
    return int(number)


def read_property(value: Scalar) -> FilterScalar | None:
    """Take texts, finite numbers, true and false, each as it is."""
    if isinstance(value, str | bool):
        return value
    return None if value is None or read_number(value) is None else value


_ALL = frozenset(Operator)

_RULES: Mapping[Kind, _Rule] = {
    Kind.TEXT: _Rule(read_text, "a string", _ALL),
    Kind.IDENTIFIER: _Rule(read_text, "a string", _ALL - TEXT_OPERATORS),
    Kind.NUMBER: _Rule(read_number, "a number", _ALL - TEXT_OPERATORS),
    Kind.DATETIME: _Rule(
        read_moment, "an ISO 8601 date or time or epoch milliseconds", _ALL - TEXT_OPERATORS
    ),
    Kind.BOOLEAN: _Rule(read_boolean, "true or false", BOOLEAN_OPERATORS),
    Kind.JSON: _Rule(read_property, "a string, a number, true or false", _ALL),
}


def check_operator(column: Column, operator: Operator) -> None:
    """Raise `InvalidQuery` where a column of this kind cannot be compared so."""
    if operator not in _RULES[column.kind].operators:
        raise InvalidQuery(
            QueryFault.INVALID_OPERATOR,
            f" {quoted(operator.value)} for column {quoted(column.name)}:"
            f" it is a {column.kind.value}",
        )


def check_values(
    column: Column, operator: Operator, value: Scalar | list[Scalar]
) -> tuple[FilterValue, ...]:
    """Return the values of a filter in the column's type.

    Raises `InvalidQuery`: `Invalid value`, or `Invalid operator` for an order of true and false.
    """
    if operator in LIST_OPERATORS:
        return tuple(_check_value(column, operator, item) for item in _check_list(column, value))
    if isinstance(value, list):
        raise _refusal(column, f"{operator.value} takes a single value, not an array")
    return (_check_value(column, operator, value),)


def _check_list(column: Column, value: Scalar | list[Scalar]) -> list[Scalar]:
    most = QUERY_LIMITS["maxFilterValues"]
    if not isinstance(value, list):
        raise _refusal(column, "in and not_in take an array of values")
    if not value:
        raise _refusal(column, "the array is empty")
    if len(value) > most:
        raise _refusal(column, f"{len(value)} values in the array, {most} are the most")
    return value


def _check_value(column: Column, operator: Operator, value: Scalar) -> FilterValue:
    rule = _RULES[column.kind]
    read = rule.read(value)
    if read is None:
        raise _refusal(column, f"{rule.needed} is needed", value)
    if column.kind is Kind.JSON:
        _check_property_value(column, operator, read)
    return read


def _check_property_value(column: Column, operator: Operator, value: FilterValue) -> None:
    if operator in TEXT_OPERATORS and not isinstance(value, str):
        raise InvalidQuery(
            QueryFault.INVALID_VALUE,
            f" {_shown(value)} for column {quoted(column.name)}: {operator.value} needs a string",
        )
    if isinstance(value, bool) and operator not in BOOLEAN_OPERATORS:
        raise InvalidQuery(
            QueryFault.INVALID_OPERATOR,
            f" {quoted(operator.value)} for column {quoted(column.name)}:"
            " true and false have no order",
        )


_NOTHING = object()


def _refusal(column: Column, why: str, value: object = _NOTHING) -> InvalidQuery:
    shown = "" if value is _NOTHING else f" {_shown(value)}"
    return InvalidQuery(
        QueryFault.INVALID_VALUE, f"{shown} for column {quoted(column.name)}: {why}"
    )


def _shown(value: object) -> str:
    return quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()[:100]


def _finite(value: str | float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _read_iso(text: str) -> int | datetime | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, offset = found.groups()
    micros = (fraction or "")[:6].ljust(6, "0")
    try:
        wall = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}.{micros}")
        zone = None if offset is None else _fixed_zone(offset)
    except ValueError:
        return None
    return wall if zone is None else (wall - _EPOCH.replace(tzinfo=None) - zone) // _MILLISECOND


def _fixed_zone(offset: str) -> timedelta:
    """Return how far `Z`, `+02:00` or `+0200` is ahead of UTC. Raises ValueError past a day."""
    if offset in ("Z", "z"):
        return timedelta()
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    ahead = timezone(timedelta(hours=hours, minutes=minutes)).utcoffset(None)
    if minutes > 59:
        raise ValueError(offset)
    return -ahead if offset[0] == "-" else ahead
