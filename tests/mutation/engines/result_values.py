"""Values of results, done wrong: numbers, datetimes, booleans, ids."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_RESULT_VALUES: Final = f"{QUERY}/result_values.py"
_EXPRESSIONS: Final = f"{QUERY}/sql/expressions.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    WrongEngine(
        "custom",
        "milliseconds have no zeros before them",
        _RESULT_VALUES,
        "timestamp.microsecond // 1000:03d}Z",
        "timestamp.microsecond // 1000}Z",
    ),
    WrongEngine(
        "custom",
        "numbers past 2^53 are integers",
        _RESULT_VALUES,
        "if number.is_integer() and abs(number) <= _LARGEST_EXACT_INTEGER:",
        "if number.is_integer():",
    ),
    WrongEngine(
        "custom",
        "whole numbers keep their fraction of zero",
        _RESULT_VALUES,
        "        and not any(map(float.is_integer, fractions))\n",
        "",
    ),
    WrongEngine(
        "custom",
        "-0 is shown with its sign",
        _RESULT_VALUES,
        "        return int(number)\n    return number\n",
        "        return int(number) or number\n    return number\n",
    ),
    WrongEngine(
        "custom",
        "false of a property is true, because its text is not empty",
        _RESULT_VALUES,
        'return bool(value == "true")',
        "return bool(value)",
    ),
    WrongEngine(
        "custom",
        "booleans are shown as the store has them",
        _RESULT_VALUES,
        "OutputKind.BOOLEAN: bool,",
        "OutputKind.BOOLEAN: int,",
    ),
    WrongEngine(
        "custom",
        "ids are in upper case",
        _EXPRESSIONS,
        '"lower(hex({column}))"',
        '"hex({column})"',
    ),
    WrongEngine(
        "custom",
        "-0 and 0 are two groups",
        _EXPRESSIONS,
        '"{column} + 0",',
        '"{column}",',
    ),
    WrongEngine(
        "custom",
        "datetimes are cut to seconds",
        _EXPRESSIONS,
        '"toUnixTimestamp64Milli({column})"',
        '"toUnixTimestamp({column}) * 1000"',
    ),
)
