"""Which moments an item may name, and how it may write them."""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date

from headrace.base.clock import MILLISECONDS_PER_DAY

EARLIEST_MS = 946_684_800_000
"""2000-01-01T00:00:00Z: what lies before is a mistake, mostly seconds for milliseconds."""

INVALID_TIMESTAMP = "must be epoch milliseconds, an ISO 8601 date or time, or an RFC 2822 date"
TOO_EARLY = "must not be before 2000-01-01"
SECONDS_HINT = f"{TOO_EARLY}; it looks like seconds: send milliseconds"

_EARLIEST_S = EARLIEST_MS // 1000
_LATEST_LIKELY_S = 7_258_118_400  # the year 2200, in seconds
_UNIX_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MILLISECONDS_PER_MINUTE = 60_000

_CLOCK_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
_SECOND = r"(?P<second>[0-9]{2})"
_HOURS_OFF = r"(?P<sign>[+-])(?P<hours_off>[0-9]{2})"
_MINUTES_OFF = r"(?P<minutes_off>[0-9]{2})"
_ISO_8601 = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    rf"(?:[Tt ]{_CLOCK_TIME}(?::{_SECOND}(?:[.,](?P<fraction>[0-9]+))?)?"
    rf"(?:[Zz]|{_HOURS_OFF}:?{_MINUTES_OFF})?)?"
)
_RFC_2822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun), *)?"
    r"(?P<day>[0-9]{1,2}) +(?P<month_name>[a-z]{3}) +(?P<year>[0-9]{4}) +"
    rf"{_CLOCK_TIME}(?::{_SECOND})? +(?:(?P<zone>[a-z]{{2,3}})|{_HOURS_OFF}{_MINUTES_OFF})"
    r"(?: *\([^()]*\))?",
    re.IGNORECASE,
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ZONE_HOURS = {
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "edt": -4,
    "est": -5,
    "cdt": -5,
    "cst": -6,
    "mdt": -6,
    "mst": -7,
    "pdt": -7,
    "pst": -8,
}


def parse_timestamps(sent: Iterable[float | str | None], *, received_ms: int) -> list[int]:
    """Parse the timestamps of a batch; where none was sent it is the time of receipt.

    Raises `ValueError` at the first one that is refused.
    """
    latest_ms = received_ms + MILLISECONDS_PER_DAY
    return [
        received_ms
        if value is None
        else value
        if type(value) is int and EARLIEST_MS <= value <= latest_ms
        else parse_timestamp(value, received_ms=received_ms)
        for value in sent
    ]


def parse_timestamp(value: float | str, *, received_ms: int) -> int:
    """Return the moment in epoch milliseconds; the time of receipt for one over 24 h ahead of it.

    Raises `ValueError` with the sentence for the fault.
    """
    timestamp_ms = _parse_text(value) if isinstance(value, str) else _truncate_milliseconds(value)
    if timestamp_ms < EARLIEST_MS:
        is_number = not isinstance(value, str)
        looks_like_seconds = is_number and _EARLIEST_S <= timestamp_ms < _LATEST_LIKELY_S
        raise ValueError(SECONDS_HINT if looks_like_seconds else TOO_EARLY)
    return received_ms if timestamp_ms > received_ms + MILLISECONDS_PER_DAY else timestamp_ms


def _truncate_milliseconds(value: float) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or math.isfinite(value)):
        raise ValueError(INVALID_TIMESTAMP)
    return math.trunc(value)


def _parse_text(text: str) -> int:
    match = _ISO_8601.fullmatch(text) or _RFC_2822.fullmatch(text)
    if match is None:
        raise ValueError(INVALID_TIMESTAMP)
    parts = match.groupdict()
    try:
        return _day_ms(parts) + _time_of_day_ms(parts) - _offset_ms(parts)
    except (ValueError, KeyError) as error:  # the 30th of February, 25 o'clock, no such zone
        raise ValueError(INVALID_TIMESTAMP) from error


_Parts = Mapping[str, str | None]


def _day_ms(parts: _Parts) -> int:
    month_name = parts.get("month_name")
    month = _MONTHS.index(month_name.lower()) + 1 if month_name else _number(parts, "month")
    day = date(_number(parts, "year"), month, _number(parts, "day"))
    return (day.toordinal() - _UNIX_EPOCH_ORDINAL) * MILLISECONDS_PER_DAY


def _time_of_day_ms(parts: _Parts) -> int:
    hour, minute, second = (_number(parts, unit) for unit in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(INVALID_TIMESTAMP)
    milliseconds = ((parts.get("fraction") or "") + "000")[:3]
    return (hour * 60 + minute) * _MILLISECONDS_PER_MINUTE + second * 1000 + int(milliseconds)


def _offset_ms(parts: _Parts) -> int:
    zone = parts.get("zone")
    if zone:
        return _ZONE_HOURS[zone.lower()] * 60 * _MILLISECONDS_PER_MINUTE
    hours, minutes = _number(parts, "hours_off"), _number(parts, "minutes_off")
    if hours > 23 or minutes > 59:
        raise ValueError(INVALID_TIMESTAMP)
    offset_ms = (hours * 60 + minutes) * _MILLISECONDS_PER_MINUTE
    return -offset_ms if parts.get("sign") == "-" else offset_ms


def _number(parts: _Parts, name: str) -> int:
    return int(parts.get(name) or 0)
