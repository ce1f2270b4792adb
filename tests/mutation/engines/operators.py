"""Operators of filters and their values, done wrong: missing values, case, types."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_CONDITIONS: Final = f"{QUERY}/sql/conditions.py"
_PATTERNS: Final = f"{QUERY}/sql/patterns.py"
_PROPERTIES: Final = f"{QUERY}/sql/json_properties.py"
_VALUES: Final = f"{QUERY}/validate/conditions/filter_values.py"
_FILTERS: Final = f"{QUERY}/validate/conditions/filters.py"
_DAY_RANGE: Final = f"{QUERY}/validate/day_range.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Operators
    WrongEngine(
        "custom",
        "contains is LIKE without escapes",
        _CONDITIONS,
        '"position({column}, {value}) > 0"',
        "\"{column} LIKE concat('%', {value}, '%')\"",
    ),
    WrongEngine(
        "custom",
        "contains ignores case",
        _CONDITIONS,
        '"position({column}, {value}) > 0"',
        '"positionCaseInsensitive({column}, {value}) > 0"',
    ),
    WrongEngine(
        "custom",
        "gte leaves the value itself out",
        _CONDITIONS,
        'Operator.GTE: "{column} >= {value}"',
        'Operator.GTE: "{column} > {value}"',
    ),
    WrongEngine(
        "custom",
        "a pattern must match the whole text",
        _PATTERNS,
        'return f"(?-s){pattern}" if is_searched',
        'return f"(?-s)^(?:{pattern})$" if is_searched',
    ),
    WrongEngine(
        "custom",
        "the long s is no s in any case",
        _PATTERNS,
        "if letter in text]",
        "if letter in text and letter != 's']",
    ),
    WrongEngine(
        "custom",
        "a searched text keeps its capitals",
        _PATTERNS,
        "literal).lower()",
        "literal)",
    ),
    WrongEngine(
        "custom",
        "a pattern ends at its NUL",
        _PATTERNS,
        '    if "\\0" in pattern:\n        return _NEVER_FOUND\n',
        '    pattern = pattern.partition("\\0")[0]\n',
    ),
    # Missing values
    WrongEngine(
        "custom",
        "ne leaves missing numbers out",
        _CONDITIONS,
        "        Operator.NE,\n        Operator.NOT_IN,\n",
        "        Operator.NOT_IN,\n",
    ),
    WrongEngine(
        "custom",
        "not_in leaves missing numbers out",
        _CONDITIONS,
        "        Operator.NE,\n        Operator.NOT_IN,\n",
        "        Operator.NE,\n",
    ),
    WrongEngine(
        "custom",
        "not_contains leaves properties that are no texts out",
        _CONDITIONS,
        "        Operator.NOT_CONTAINS,\n",
        "",
    ),
    WrongEngine(
        "custom",
        "lt matches missing numbers",
        _CONDITIONS,
        "        Operator.NE,\n        Operator.NOT_IN,\n",
        "        Operator.NE,\n        Operator.NOT_IN,\n        Operator.LT,\n",
    ),
    WrongEngine(
        "custom",
        "ne leaves absent properties out",
        _CONDITIONS,
        'return f"ifNull({match}, false)"',
        'return f"({match})"',
    ),
    WrongEngine(
        "custom",
        "zero is a missing number",
        _CONDITIONS,
        'Kind.NUMBER: "isNotNull({column})"',
        'Kind.NUMBER: "ifNull({column} != 0, false)"',
    ),
    # Types of values
    WrongEngine(
        "custom",
        "a property that is a text of digits is a number",
        _PROPERTIES,
        '_NUMBER = "if({is_simple}, toFloat64OrNull({extracted}), toFloat64OrNull({value}))"',
        '_NUMBER = "toFloat64OrNull(trim(BOTH \'\\"\' FROM {value}))"',
    ),
    WrongEngine(
        "custom",
        "true of a filter is written as an integer",
        _PROPERTIES,
        '    if isinstance(value, bool):\n        return "true" if value else "false"\n',
        "",
    ),
    WrongEngine(
        "custom",
        "numbers past 64 bits are compared by their digits",
        _PROPERTIES,
        " if value.is_integer() and abs(value) < 2**63 else None",
        " if value.is_integer() else None",
    ),
    WrongEngine(
        "custom",
        "fractions of a list on a property are left out",
        _CONDITIONS,
        "        match += f\" OR {_in_array(number, numbers, 'Float64', expressions)}\"\n",
        "        del number, numbers\n",
    ),
    WrongEngine(
        "custom",
        "numbers on a property are compared as texts",
        _CONDITIONS,
        "        else expressions.number(planned.column),\n",
        "        else expressions.value(planned.column),\n",
    ),
    WrongEngine(
        "custom",
        "quotation marks at the ends of a text are not part of it",
        _PROPERTIES,
        "substring({value}, 2, -1), NULL)",
        "trim(BOTH '\\\"' FROM {value}), NULL)",
    ),
    WrongEngine(
        "custom",
        "digits of any script are a number",
        _VALUES,
        'r"[+-]?([0-9]+\\.?[0-9]*|',
        'r"[+-]?(\\d+\\.?\\d*|',
    ),
    WrongEngine(
        "custom",
        "a datetime without an offset is UTC",
        _FILTERS,
        "wall_clock_ms(value, zone) if",
        'wall_clock_ms(value, ZoneInfo("UTC")) if',
    ),
    WrongEngine(
        "custom",
        "a time that occurs twice is the second one",
        _DAY_RANGE,
        "wall.replace(tzinfo=zone).utcoffset()",
        "wall.replace(tzinfo=zone, fold=1).utcoffset()",
    ),
)
