"""Check the conditions for the rows of a result."""

import math
from collections.abc import Collection, Sequence

import msgspec

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import HAVING_OPERATORS, QUERY_LIMITS, Operator
from headrace.model.plan import PlannedHaving
from headrace.query.validate.located import located
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import OPERATOR_SYNONYMS


def check_having(
    value: object, aliases: Sequence[str], *, datetimes: Collection[str] = ()
) -> tuple[PlannedHaving, ...]:
    """Return the conditions; each names a select whose output is a number.

    `datetimes` are the aliases of the others. Raises `InvalidQuery`: `Invalid having`.
    """
    if value is None:
        return ()
    try:
        items = msgspec.convert(value, list[wire.Having])
    except msgspec.ValidationError:
        detail = ": must be an array of objects with field, operator and value"
        raise _invalid_having(detail) from None
    maximum = QUERY_LIMITS["maxHaving"]
    if len(items) > maximum:
        raise _invalid_having(f": {len(items)} conditions given, maximum is {maximum}")
    return tuple(
        _check_condition(item, f"having[{index}]", aliases, datetimes)
        for index, item in enumerate(items)
    )


def _check_condition(
    item: wire.Having, path: str, aliases: Sequence[str], datetimes: Collection[str]
) -> PlannedHaving:
    with located(path):
        index = _check_field(item.field, aliases, datetimes)
        operator = _check_operator(item.operator)
        return PlannedHaving(index, operator, _check_number(aliases[index], item.value))


def _check_field(name: object, aliases: Sequence[str], datetimes: Collection[str]) -> int:
    """Return the index of the select of this name."""
    if not isinstance(name, str):
        raise _invalid_having(": field must be the output name of a select")
    if name not in aliases:
        hint = did_you_mean_one_of(name, aliases)
        raise _invalid_having(f": no select has this name{hint}", name)
    if name in datetimes:
        raise _invalid_having(": it is a datetime, not a number", name)
    return aliases.index(name)


def _check_operator(name: object) -> Operator:
    known = [operator.value for operator in HAVING_OPERATORS]
    if not isinstance(name, str):
        raise _invalid_having(f": operator must be one of {', '.join(known)}")
    if name not in known:
        hint = did_you_mean_one_of(name, known, OPERATOR_SYNONYMS)
        raise _invalid_having(f": operator {quote_json(name)}{hint}")
    return Operator(name)


def _check_number(field: str, value: object) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number):
                return number
    except OverflowError:
        pass
    raise _invalid_having(f": value for {quote_json(field)} must be a number")


def _invalid_having(reason: str, name: str | None = None) -> InvalidQuery:
    detail = "" if name is None else f" {quote_json(name)}"
    return InvalidQuery(QueryErrorCode.INVALID_HAVING, detail, reason)
