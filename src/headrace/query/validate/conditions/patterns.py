"""Check regular expressions with RE2, the library that the stores run them with."""

from importlib import import_module
from typing import Any

from headrace.model.catalog import QUERY_LIMITS


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
