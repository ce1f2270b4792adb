"""The value of a filter: whether it suits the column and the operator, and what it means."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryFault
from headrace.model.catalog import (
    BOOLEAN_OPERATORS,
    LIST_OPERATORS,
    QUERY_LIMITS,
    TEXT_OPERATORS,
    Column,
    Kind,
    Operator,
)
from headrace.model.plan import FilterScalar
from headrace.model.wire import Scalar
from headrace.query.validate.datetimes import read_epoch_ms, read_iso
from headrace.query.validate.suggest import quoted

FilterValue = FilterScalar | datetime
"""A value of the column's type. A datetime without a zone waits for the query's timezone."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0 is 0


def read_moment(value: Scalar) -> int | datetime | None:
    """Take ISO 8601 or epoch milliseconds; a text without an offset gives a naive datetime."""
    if isinstance(value, str):
        return read_iso(value)
    number = read_number(value)
    return None if number is None else read_epoch_ms(number)


def read_property(value: Scalar) -> FilterScalar | None:
    """Take texts, finite numbers, true and false, each as it is."""
    if isinstance(value, str | bool):
        return value
    return None if read_number(value) is None else value


_ALL = frozenset(Operator)
_NOT_TEXT = _ALL - TEXT_OPERATORS

_RULES: Mapping[Kind, _Rule] = {
    Kind.TEXT: _Rule(read_text, "a string", _ALL),
    Kind.IDENTIFIER: _Rule(read_text, "a string", _NOT_TEXT),
    Kind.NUMBER: _Rule(read_number, "a number", _NOT_TEXT),
    Kind.DATETIME: _Rule(read_moment, "an ISO 8601 date or time or epoch milliseconds", _NOT_TEXT),
    Kind.BOOLEAN: _Rule(read_boolean, "true or false", BOOLEAN_OPERATORS),
    Kind.JSON: _Rule(read_property, "a string, a number, true or false", _ALL),
}


def check_operator(column: Column, operator: Operator) -> None:
    """Raise `InvalidQuery` (`Invalid operator`) where a column cannot be compared so."""
    if operator not in _RULES[column.kind].operators:
        raise _bad_operator(column, operator, f"it is a {column.kind.value}")


def check_values(
    column: Column, operator: Operator, value: Scalar | list[Scalar]
) -> tuple[FilterValue, ...]:
    """Return the values of a filter in the column's type.

    Raises `InvalidQuery`: `Invalid value`, or `Invalid operator` for an order of true and false.
    """
    if operator in LIST_OPERATORS:
        return tuple(_check_value(column, operator, item) for item in _check_list(column, value))
    if isinstance(value, list):
        raise _bad_value(column, f"{operator.value} takes a single value, not an array")
    return (_check_value(column, operator, value),)


def _check_list(column: Column, value: Scalar | list[Scalar]) -> list[Scalar]:
    most = QUERY_LIMITS["maxFilterValues"]
    if not isinstance(value, list):
        raise _bad_value(column, "in and not_in take an array of values")
    if not value:
        raise _bad_value(column, "the array is empty")
    if len(value) > most:
        raise _bad_value(column, f"{len(value)} values in the array, {most} are the most")
    return value


def _check_value(column: Column, operator: Operator, value: Scalar) -> FilterValue:
    rule = _RULES[column.kind]
    read = rule.read(value)
    if read is None:
        raise _bad_value(column, f"{rule.needed} is needed", _shown(value))
    if operator in TEXT_OPERATORS and not isinstance(read, str):
        raise _bad_value(column, f"{operator.value} needs a string", _shown(value))
    if isinstance(read, bool) and operator not in BOOLEAN_OPERATORS:
        raise _bad_operator(column, operator, "true and false have no order")
    return read


def _bad_operator(column: Column, operator: Operator, why: str) -> InvalidQuery:
    culprit = f" {quoted(operator.value)} for column {quoted(column.name)}: {why}"
    return InvalidQuery(QueryFault.INVALID_OPERATOR, culprit)


def _bad_value(column: Column, why: str, shown: str = "") -> InvalidQuery:
    culprit = f"{shown} for column {quoted(column.name)}: {why}"
    return InvalidQuery(QueryFault.INVALID_VALUE, culprit)


def _shown(value: Scalar) -> str:
    text = quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()[:100]
    return f" {text}"
