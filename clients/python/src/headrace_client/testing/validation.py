"""What the service requires of items, field by field, in the order in which it lists errors."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, NamedTuple

Json = Any
Check = Callable[[Json], str]
"""Returns what is wrong with a value, or ""."""

_MAX_ERRORS = 50
_YEAR_2000_MS = 946_684_800_000
_TOO_EARLY = "must not be before 2000-01-01"
_VITALS = ("FCP", "LCP", "CLS", "INP", "TTFB", "FPS")
_LEVELS = ("debug", "info", "warning", "error", "fatal")


class _Field(NamedTuple):
    name: str
    check: Check
    is_required: bool = False


def _text(max_length: int | None = None, min_length: int = 0) -> Check:
    limits = f"{min_length} to {max_length}" if min_length else f"at most {max_length}"
    message = "must be text" if max_length is None else f"must be text of {limits} characters"

    def check(value: Json) -> str:
        is_valid = isinstance(value, str) and len(value) >= min_length
        return "" if is_valid and len(value) <= (max_length or len(value)) else message

    return check


def _one_of(*choices: str) -> Check:
    message = f"must be one of {', '.join(choices)}"
    return lambda value: "" if value in choices else message


def _is_number(value: Json) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _number(value: Json) -> str:
    return "" if _is_number(value) else "must be a finite number"


def _object(value: Json) -> str:
    return "" if isinstance(value, dict) else "must be an object"


def _timestamp(value: Json) -> str:
    if _is_number(value):
        looks_like_seconds = value * 1000 >= _YEAR_2000_MS
        hint = "; it looks like seconds: send milliseconds" if looks_like_seconds else ""
        return "" if value >= _YEAR_2000_MS else _TOO_EARLY + hint
    if isinstance(value, str) and (_is_date(value, _iso) or _is_date(value, parsedate_to_datetime)):
        return ""
    return "must be epoch milliseconds, an ISO 8601 date or time, or an RFC 2822 date"


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text.upper().removesuffix("Z"))


def _is_date(text: str, parse: Callable[[str], datetime]) -> bool:
    try:
        parse(text)
    except (ValueError, TypeError):
        return False
    return True


def _address(value: Json) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "must be a valid IP address"
    return ""


_TEXT = _text(256)
_URL = _text(2048)
_PATH = _Field("path", _URL)
_TIMESTAMP = _Field("timestamp", _timestamp)
_VISITOR = (_Field("anonymousId", _TEXT), _Field("sessionId", _TEXT))
_IDS = (_Field("websiteId", _text(255)), _Field("eventId", _text(512)))
_ENRICHMENT = (_Field("ip", _address), _Field("userAgent", _URL))

FIELDS: Mapping[str, Sequence[_Field]] = {
    "/track": (
        _Field("name", _text(256, min_length=1), is_required=True),
        _Field("properties", _object),
        *_VISITOR,
        _TIMESTAMP,
        _Field("namespace", _text(64)),
        _Field("source", _text(64)),
        *_IDS,
        _Field("profileId", _text(128)),
        _PATH,
        _Field("url", _URL),
        *_ENRICHMENT,
    ),
    "/vitals": (
        _TIMESTAMP._replace(is_required=True),
        _PATH._replace(is_required=True),
        _Field("metricName", _one_of(*_VITALS), is_required=True),
        _Field("metricValue", _number, is_required=True),
        *_VISITOR,
        *_IDS,
        _Field("url", _URL),
        *_ENRICHMENT,
    ),
    "/errors": (
        _TIMESTAMP._replace(is_required=True),
        _PATH._replace(is_required=True),
        _Field("message", _text(), is_required=True),
        _Field("filename", _URL),
        _Field("lineno", _number),
        _Field("colno", _number),
        _Field("stack", _text()),
        _Field("errorType", _text(128)),
        *_VISITOR,
        *_IDS,
        _Field("url", _URL),
        _Field("level", _one_of(*_LEVELS)),
        *_ENRICHMENT,
    ),
    "/identify": (
        *_VISITOR,
        _TIMESTAMP,
        *_IDS,
        _Field("profileId", _text(128, min_length=1), is_required=True),
        _PATH,
        _Field("url", _URL),
        *_ENRICHMENT,
        _Field("traits", _object),
    ),
}


def field_errors(path: str, body: Json) -> list[dict[str, Json]]:
    """Return the errors of the items of a body, as the service lists them."""
    if path == "/identify" and isinstance(body, list):
        return [_error(0, "", "must be a single object, not an array")]
    return list(islice(_errors_of(path, as_list(body)), _MAX_ERRORS))


def as_list(body: Json) -> list[Json]:
    """Return the items of a body, which may be a single one."""
    return list(body) if isinstance(body, list) else [body]  # pyright: ignore[reportUnknownArgumentType]  # JSON


def _errors_of(path: str, items: Sequence[Json]) -> Iterator[dict[str, Json]]:
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            yield _error(index, "", "must be an object")
            continue
        for field in FIELDS[path]:
            message = _message_for(field, item.get(field.name))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # JSON
            if message:
                yield _error(index, field.name, message)


def _message_for(field: _Field, value: Json) -> str:
    if value is None:
        return "is required" if field.is_required else ""
    if _has_odd_text(value):
        return "must not contain NUL characters or lone surrogates"
    return field.check(value)


def _has_odd_text(value: Json) -> bool:
    if isinstance(value, str):
        return any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value)
    if isinstance(value, dict):
        return any(_has_odd_text(one) for pair in value.items() for one in pair)  # pyright: ignore[reportUnknownVariableType]  # JSON
    return isinstance(value, list) and any(_has_odd_text(one) for one in value)  # pyright: ignore[reportUnknownVariableType]  # JSON


def _error(index: int, field: str, message: str) -> dict[str, Json]:
    return {"index": index, "field": field, "message": message}
