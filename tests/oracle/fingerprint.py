"""The fingerprint of an error: a walk over the text, without regular expressions."""

import hashlib
import string

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)
_WORD = _LETTERS | _DIGITS | {"_"}
_ID = _WORD | {"-"}
_SCHEME = _LETTERS | _DIGITS | set("+.-")
_URL_END = frozenset(" \t\r\n\"'<>)")
_QUOTES = {'"': '"', "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_BLANKS = " \t"


def fingerprint(error_type: str, message: str, stack: str) -> str:
    """Return sixteen digits of the type, the message without its data, and the first frame."""
    hashed = f"{error_type}\n{masked(message)}\n{first_frame(stack)}"
    return hashlib.sha256(hashed.encode()).hexdigest()[:16]


def masked(message: str) -> str:
    """Return a message with ? for each URL, quoted text, number and id."""
    kept: list[str] = []
    at = 0
    while at < len(message):
        end = _url(message, at) or _quoted(message, at) or _number(message, at)
        kept.append("?" if end else message[at])
        at = end or at + 1
    return "".join(kept)


def first_frame(stack: str) -> str:
    """Return the first line that is a frame, without the blanks before it."""
    frames = [_frame(line) for line in stack.split("\n")]
    return next((frame for frame in frames if frame), "")


def _run(text: str, at: int, characters: frozenset[str] | set[str]) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _url(text: str, at: int) -> int:
    """Return where the URL at a position ends, 0 if none is there."""
    start = 0
    if text[at] in _LETTERS:
        scheme = _run(text, at, _SCHEME)
        start = scheme + 3 if text.startswith("://", scheme) else 0
    if not start and text.startswith("data:", at) and text[at - 1 : at] not in _WORD:
        start = at + 5
    end = start
    while 0 < start <= end < len(text) and text[end] not in _URL_END:
        end += 1
    return end if end > start else 0


def _quoted(text: str, at: int) -> int:
    if text[at] in _QUOTES:
        end = text.find(_QUOTES[text[at]], at + 1)
        return end + 1 if end > 0 and "\n" not in text[at:end] else 0
    if text[at] != "'" or text[at - 1 : at] in _WORD:
        return 0
    for end in range(at + 1, len(text)):
        if text[end] == "\n":
            return 0
        if text[end] == "'" and text[end + 1 : end + 2] not in _WORD:
            return end + 1
    return 0


def _number(text: str, at: int) -> int:
    end = _run(text, at, _ID)
    if not _DIGITS.intersection(text[at:end]):
        return 0
    while text[end : end + 1] in {".", ",", ":"} and text[end + 1 : end + 2] in _DIGITS:
        end = _run(text, end + 1, _ID)
    return end


def _frame(line: str) -> str:
    text = line.lstrip(_BLANKS)
    until_return = text.split("\r")[0]
    if until_return.startswith("at ") and len(until_return) > 3:
        return until_return
    name, at_sign, rest = until_return.partition("@")
    return (
        f"{name}@{location}"
        if at_sign and ":" not in name and (location := _location(rest))
        else ""
    )


def _location(rest: str) -> str:
    """Return the longest beginning without blanks that ends in a colon and digits."""
    whole = rest.replace("\t", " ").partition(" ")[0]
    for end in range(len(whole), 0, -1):
        before, colon, number = whole[:end].rpartition(":")
        if colon and before and number and set(number) <= _DIGITS:
            return whole[:end]
    return ""
