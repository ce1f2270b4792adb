"""Checks of a body as a whole, unknown keys included, without decoding it.

A body may have 20 MiB and is checked on the event loop, so each check is a few passes that run in
C. Results are exact for valid JSON and arbitrary for other bytes, which the decoder rejects. All
functions but `is_utf8` expect UTF-8.
"""

import json
import re

MAX_NESTING = 64
"""Levels of arrays and objects, the outermost being the first."""

_ODD_BACKSLASH = rb"(?<!\\)((?:\\\\)*+)"
"""Matches complete pairs of backslashes before an escape, so that they do not hide or fake one."""

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
_PEELED_LEVELS = 8  # one pass each; the rest is at most a ninth, and is iterated over

_ARRAY_START = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*")
_SEPARATOR = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")


def is_utf8(body: bytes) -> bool:
    """Return whether all bytes are UTF-8. (The decoder does not check what it skips.)"""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def contains_nul(body: bytes) -> bool:
    """Return whether a string contains NUL, which JSON can only write as an escape."""
    return b"\\" in body and b"\\u0000" in body and _NUL.search(body) is not None


def count_byte(body: bytes, byte: bytes) -> int:
    """Count a byte. Faster than `bytes.count`, which compares bytes one by one."""
    return len(body) - len(body.replace(byte, b""))


def exceeds_depth(body: bytes, levels: int) -> bool:
    """Return whether arrays and objects are nested deeper than `levels`."""
    # as `count_byte`; two calls less for each line of an import
    kept = len(body.replace(b"[", b"")) + len(body.replace(b"{", b""))
    if 2 * len(body) - kept <= levels:
        return False
    if b"\\" in body and b'\\"' in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    skeleton = body.translate(_BRACES_TO_BRACKETS, _OTHER_BYTES).replace(b'""', b"")
    if b'"' in skeleton:  # a string contains brackets
        skeleton = _STRING.sub(b"", skeleton)
    peeled = min(levels, _PEELED_LEVELS)
    for _ in range(peeled):
        if not skeleton:
            return False
        skeleton = skeleton.replace(b"[]", b"")  # removes exactly the innermost level
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
    """Replace lone surrogates, which the decoder rejects, by NUL, which is reported per field."""
    return _SURROGATES.sub(_replace_lone_surrogate, body)


def _replace_lone_surrogate(match: re.Match[bytes]) -> bytes:
    backslashes: bytes = match[1]
    is_lone = len(match[0]) - len(backslashes) == _SURROGATE_ESCAPE_LENGTH
    return backslashes + b"\\u0000" if is_lone else match[0]


def count_items(body: bytes, *, at_most: int) -> int:
    """Count the items of an array one at a time, `at_most` of them."""
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
