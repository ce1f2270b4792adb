"""Check regular expressions with RE2, the library that the stores run them with."""

import math
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from headrace.model.catalog import PATTERN_OPERATORS, QUERY_LIMITS
from headrace.model.wire import Filter

_PATTERN_OPERATORS: Final = frozenset(operator.value for operator in PATTERN_OPERATORS)
_LARGE_CLASS: Final = re.compile(r"\\[pP]")
_REPETITION: Final = re.compile(r"\{([0-9]{1,4})(?:,([0-9]{0,4}))?\}")

_CHEAP_CHARACTERS: Final = 4_096
"""Patterns of so many characters, repetitions written out, compile in a few milliseconds."""

_CHARACTERS_OF_LARGE_CLASS: Final = 700
"""A class of Unicode takes as long as so many characters."""


def patterns_of(filters: Iterable[Filter]) -> Iterator[str]:
    """Return the patterns of filters and of the groups among them."""
    for item in filters:
        yield from patterns_of(item.any_of or ())
        yield from patterns_of(item.all_of or ())
        if item.operator in _PATTERN_OPERATORS and isinstance(item.value, str):
            yield item.value


def are_costly(patterns: Iterable[str]) -> bool:
    r"""Return whether compiling patterns may take longer than an event loop can wait.

    Classes of Unicode such as `\pL`, and repetitions, make a large program of a few characters:
    0.3 s for one of the largest, and RE2 keeps the interpreter's lock meanwhile.
    """
    characters = 0
    for pattern in patterns:
        if len(pattern) > QUERY_LIMITS["maxPatternLength"]:
            continue  # refused before it is compiled
        written = len(pattern) + _CHARACTERS_OF_LARGE_CLASS * len(_LARGE_CLASS.findall(pattern))
        characters += written * math.prod(map(_most, _REPETITION.findall(pattern)))
        if characters > _CHEAP_CHARACTERS:
            return True
    return False


def _most(repetition: tuple[str, str]) -> int:
    """Return how often a part of a pattern is written out: `{2,}` and `{2,3}` have two counts.

    At least once: a part that `{0}` leaves out does not make the others smaller.
    """
    return max(1, *(int(count) for count in repetition if count))


def explain_invalid_pattern(pattern: str) -> str | None:
    """Return why a regular expression is not valid, or None for a valid one."""
    maximum = QUERY_LIMITS["maxPatternLength"]
    if len(pattern) > maximum:
        return f"a pattern has at most {maximum} characters"
    re2: Any = import_module("re2")  # it has no types, and few processes ever check a pattern
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        return f"it is not a regular expression of RE2 ({_reason_of(error)})"
    return None


def _reason_of(error: Exception) -> str:
    reason: object = error.args[0]
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
