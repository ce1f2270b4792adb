"""What is asked of a body as a whole, unknown keys included, without building it.

A body may be 20 MiB and is looked at on the event loop, so each answer is a few passes that run
in C. They are exact for valid JSON; on other bytes any answer will do, for the decoder refuses
those. All but the first expect UTF-8.
"""

import json
import re

MAX_NESTING = 64
"""Levels of arrays and objects, the outermost being the first."""

_ODD_BACKSLASH = rb"(?<!\\)((?:\\\\)*+)"
"""What stands in front of an escape, so that an escaped backslash is not taken for one."""

_NUL = re.compile(_ODD_BACKSLASH + rb"\\u0000")
_SURROGATES = re.compile(
    _ODD_BACKSLASH
    + rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[89a-fA-F][0-9a-fA-F]{2})"
)
_SURROGATE_ESCAPE_LENGTH = len(r"\ud800")

_QUOTES_AND_BRACKETS = b'"[]{}'
_BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHER_BYTES = bytes(set(range(256)) - set(_QUOTES_AND_BRACKETS))
_STRING = re.compile(rb'"[^"]*+"')
_BRACKET_RUN = re.compile(rb"(\[++)(\]*+)")
_PEELED_LEVELS = 8  # one pass each; what is left is at most a ninth, and is walked through

_ARRAY_START = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*")
_SEPARATOR = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")


def is_utf8(body: bytes) -> bool:
    """Tell whether all bytes are UTF-8. (The decoder does not look into what it skips.)"""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def contains_nul(body: bytes) -> bool:
    """Tell whether a string holds the character NUL, which JSON can only write as an escape."""
    return b"\\" in body and b"\\u0000" in body and _NUL.search(body) is not None


def count_byte(body: bytes, byte: bytes) -> int:
    """Count a byte. `bytes.count` looks at one after the other, `replace` leaps to the next."""
    return len(body) - len(body.replace(byte, b""))


def exceeds_depth(body: bytes, levels: int) -> bool:
    """Tell whether arrays and objects are nested deeper than that."""
    if count_byte(body, b"[") + count_byte(body, b"{") <= levels:
        return False
    if b"\\" in body and b'\\"' in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    skeleton = body.translate(_BRACES_TO_BRACKETS, _OTHER_BYTES).replace(b'""', b"")
    if b'"' in skeleton:  # a string holds brackets
        skeleton = _STRING.sub(b"", skeleton)
    peeled = min(levels, _PEELED_LEVELS)
    for _ in range(peeled):
        if not skeleton:
            return False
        skeleton = skeleton.replace(b"[]", b"")  # takes away exactly the innermost
    return _brackets_exceed_depth(skeleton, levels - peeled)


def _brackets_exceed_depth(brackets: bytes, levels: int) -> bool:
    depth = 0
    for run in _BRACKET_RUN.finditer(brackets):
        first_close = run.end(1)
        depth += first_close - run.start()
        if depth > levels:
            return True
        depth -= run.end() - first_close
    return False


def replace_lone_surrogates(body: bytes) -> bytes:
    """Make a body readable that the decoder refuses for a lone surrogate; NUL is refused later."""
    return _SURROGATES.sub(_replace_lone_surrogate, body)


def _replace_lone_surrogate(match: re.Match[bytes]) -> bytes:
    backslashes: bytes = match[1]
    is_lone = len(match[0]) - len(backslashes) == _SURROGATE_ESCAPE_LENGTH
    return backslashes + b"\\u0000" if is_lone else match[0]


def count_items(body: bytes, *, at_most: int) -> int:
    """Count the items of an array, one at a time and no more of them than that."""
    text = body.decode()
    start = _ARRAY_START.match(text)
    scan = json.JSONDecoder(parse_int=float, strict=False).raw_decode
    count = 0
    while start is not None and count < at_most:
        try:
            end = scan(text, start.end())[1]
        except (json.JSONDecodeError, RecursionError):
            break
        count += 1
        start = _SEPARATOR.match(text, end)
    return count
