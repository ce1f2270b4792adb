"""Regular expressions of filters as SQL that finds what RE2 with its defaults finds."""

import re
from typing import Final

from headrace.query.sql.builder import Parameters

_NEVER_FOUND: Final = r"[^\x00-\x{10FFFF}]"

_IGNORES_CASE: Final = "(?i)"
_LITERAL: Final = re.compile(r"(?:[\w /:=&%#@,;'\"<>~!-]|\\x\{[0-7]?[0-9a-f]\})+", re.ASCII)
"""ASCII characters that stand for themselves in a pattern, as they are or by their code."""

_CODE: Final = re.compile(r"\\x\{([0-9a-f]+)\}")

_REPEATED_FLAGS: Final = re.compile(r"\(\?[A-Za-z-]*\)[?*+{]")
"""A group of flags and a repetition; in a class of characters it may be neither."""

_FOLDED_TO_ASCII: Final = {"k": "\N{KELVIN SIGN}", "s": "\N{LATIN SMALL LETTER LONG S}"}
"""The characters beyond ASCII that equal one of ASCII where case is ignored."""


def write_match(column: str, pattern: str, parameters: Parameters) -> str:
    """Return the SQL of whether a pattern is found in a text column, and bind its values."""
    text = _literal_in_any_case(pattern)
    if text is None:
        return _match(column, pattern, parameters)
    # A search in lower case costs little beside RE2, which then runs for few rows (ADR 29).
    searched = parameters.bind(text, "String")
    folded = [other for letter, other in _FOLDED_TO_ASCII.items() if letter in text]
    if not folded:
        return f"(position(lower({column}), {searched}) > 0)"
    others = parameters.bind(folded, "Array(String)")
    return (
        f"(position(lower({column}), {searched}) > 0"
        f" OR multiSearchAny({column}, {others}) AND {_match(column, pattern, parameters)})"
    )


def _match(column: str, pattern: str, parameters: Parameters) -> str:
    return f"match({column}, {parameters.bind(_engine_pattern(pattern), 'String')})"


def _literal_in_any_case(pattern: str) -> str | None:
    """Return, in lower case, the ASCII text that a pattern finds in any case, if it does that."""
    literal = pattern.removeprefix(_IGNORES_CASE)
    if literal == pattern or not _LITERAL.fullmatch(literal):
        return None
    return _CODE.sub(lambda code: chr(int(code[1], 16)), literal).lower()


def _engine_pattern(pattern: str) -> str:
    """Return a pattern that the engine finds where RE2 with its defaults finds the given one.

    The engine lets `.` match a new line. Before it runs RE2 it searches for a text that it believes
    to be required, and takes the last byte of a character for the whole of it: `é?` finds only
    texts with the first byte of `é`. To RE2 a repetition after flags repeats what is before them,
    to the engine nothing: `ab+(?s)?` finds `a`. The engine does not search where there is an
    alternative. NUL occurs in no stored text, and the engine would end the pattern there.
    """
    if "\0" in pattern:
        return _NEVER_FOUND
    is_searched = pattern.isascii() and not _REPEATED_FLAGS.search(pattern)
    return f"(?-s){pattern}" if is_searched else f"(?-s){_NEVER_FOUND}|{pattern}"
