"""Check and convert the values of filters by column and operator."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import (
    BOOLEAN_OPERATORS,
    LIST_OPERATORS,
    PATTERN_OPERATORS,
    PRESENCE_OPERATORS,
    QUERY_LIMITS,
    TEXT_OPERATORS,
    Column,
    Kind,
    Operator,
)
from headrace.model.plan import FilterScalar
from headrace.model.wire import FilterValue as SentValue
from headrace.model.wire import Scalar
from headrace.query.validate.conditions.datetimes import parse_epoch_ms, parse_iso_datetime
from headrace.query.validate.conditions.patterns import explain_invalid_pattern
from headrace.query.validate.suggest import MAX_QUOTED_LENGTH, quote_json

FilterValue = FilterScalar | datetime
"""A value of the column's type; a naive datetime is in the query's timezone."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class _Rule(Struct, frozen=True):
    """How values of one kind of column are parsed: None for a value that does not fit."""

    parse: Callable[[Scalar], FilterValue | None]
    expected: str
    operators: frozenset[Operator]


def parse_text(value: Scalar) -> str | None:
    """Return a text; None for anything else."""
    return value if isinstance(value, str) else None


def parse_boolean(value: Scalar) -> bool | None:
    """Return true or false; None for anything else."""
    return value if isinstance(value, bool) else None


def parse_number(value: Scalar) -> float | None:
    """Return a finite number, also from a numeric text; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0 is 0


def parse_datetime(value: Scalar) -> int | datetime | None:
    """Parse ISO 8601 or epoch milliseconds; a text without an offset is a naive datetime."""
    if isinstance(value, str):
        return parse_iso_datetime(value)
    number = parse_number(value)
    return None if number is None else parse_epoch_ms(number)


def parse_property(value: Scalar) -> FilterScalar | None:
    """Return a text, a number, true or false unchanged, also an integer past doubles."""
    return value


_OTHER_NUMBER: Mapping[Operator, Operator] = {
    Operator.EQ: Operator.IN,
    Operator.NE: Operator.NOT_IN,
    Operator.IN: Operator.EQ,
    Operator.NOT_IN: Operator.NE,
}
"""The operator that takes an array in the place of a single value, or the other way round."""

_ALL = frozenset(Operator)
_NOT_TEXT = _ALL - TEXT_OPERATORS

_RULES: Mapping[Kind, _Rule] = {
    Kind.TEXT: _Rule(parse_text, "a string", _ALL),
    Kind.IDENTIFIER: _Rule(parse_text, "a string", _NOT_TEXT),
    Kind.NUMBER: _Rule(parse_number, "a number", _NOT_TEXT),
    Kind.DATETIME: _Rule(
        parse_datetime, "an ISO 8601 date or time or epoch milliseconds", _NOT_TEXT
    ),
    Kind.BOOLEAN: _Rule(parse_boolean, "true or false", BOOLEAN_OPERATORS),
    Kind.JSON: _Rule(parse_property, "a string, a number, true or false", _ALL),
}


def check_operator(column: Column, operator: Operator) -> None:
    """Raise `InvalidQuery` (`Invalid operator`) if the operator does not apply to the column."""
    if operator not in _RULES[column.kind].operators:
        raise _invalid_operator(column, operator, f"it is a {column.kind.value}")


def check_values(column: Column, operator: Operator, value: SentValue) -> tuple[FilterValue, ...]:
    """Return the values of a filter in the column's type.

    Raises `InvalidQuery`: `Invalid value`, or `Invalid operator` for comparing true or false by
    order.
    """
    if operator in PRESENCE_OPERATORS:
        return _check_absent(column, operator, value)
    if operator in LIST_OPERATORS:
        items = _check_list(column, operator, value)
        return tuple(_check_value(column, operator, item) for item in items)
    if isinstance(value, list):
        also = _OTHER_NUMBER.get(operator)
        hint = "" if also is None else f"; {also.value} takes one"
        raise _invalid_value(column, f"{operator.value} takes a single value, not an array{hint}")
    return (_check_value(column, operator, value),)


def _check_absent(column: Column, operator: Operator, value: SentValue) -> tuple[FilterValue, ...]:
    if value is not None:
        raise _invalid_value(column, f"{operator.value} takes no value")
    return ()


def _check_list(column: Column, operator: Operator, value: Scalar | list[Scalar]) -> list[Scalar]:
    maximum = QUERY_LIMITS["maxFilterValues"]
    if not isinstance(value, list):
        single = _OTHER_NUMBER[operator].value
        reason = f"{operator.value} takes an array of values; {single} takes a single one"
        raise _invalid_value(column, reason)
    if not value:
        raise _invalid_value(column, "the array is empty")
    if len(value) > maximum:
        raise _invalid_value(column, f"{len(value)} values given, maximum is {maximum}")
    return value


def _check_value(column: Column, operator: Operator, value: Scalar) -> FilterValue:
    rule = _RULES[column.kind]
    parsed = rule.parse(value)
    if parsed is None:
        raise _invalid_value(column, f"must be {rule.expected}", _quote_scalar(value))
    if operator in TEXT_OPERATORS and not isinstance(parsed, str):
        raise _invalid_value(column, f"{operator.value} requires a string", _quote_scalar(value))
    if isinstance(parsed, bool) and operator not in BOOLEAN_OPERATORS:
        raise _invalid_operator(column, operator, "true and false have no order")
    if operator in PATTERN_OPERATORS and (reason := explain_invalid_pattern(str(parsed))):
        raise _invalid_value(column, reason, _quote_scalar(value))
    return parsed


def _invalid_operator(column: Column, operator: Operator, reason: str) -> InvalidQuery:
    detail = f" {quote_json(operator.value)} for column {quote_json(column.name)}"
    return InvalidQuery(QueryErrorCode.INVALID_OPERATOR, detail, f": {reason}")


def _invalid_value(column: Column, reason: str, quoted_value: str = "") -> InvalidQuery:
    detail = f"{quoted_value} for column {quote_json(column.name)}"
    return InvalidQuery(QueryErrorCode.INVALID_VALUE, detail, f": {reason}")


def _quote_scalar(value: Scalar) -> str:
    if isinstance(value, str):
        return f" {quote_json(value)}"
    return f" {msgspec.json.encode(value).decode()[:MAX_QUOTED_LENGTH]}"
