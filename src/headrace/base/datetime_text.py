"""Reads datetimes from text: ISO 8601 and RFC 2822. The ranges allowed are the callers' rules.

It also writes the one form that all objects of API and command line have.
"""

import re
from datetime import date

from msgspec import Struct

from headrace.base.clock import (
    MILLISECONDS_PER_DAY,
    MILLISECONDS_PER_MINUTE,
    days_since_epoch,
    utc_datetime,
)

_CLOCK_TIME = r"([0-9]{2}):([0-9]{2})"
_ISO_8601 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    rf"(?:[Tt ]{_CLOCK_TIME}(?::([0-9]{{2}})(?:[.,]([0-9]+))?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_RFC_2822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun), *)?"
    r"([0-9]{1,2}) +([a-z]{3}) +([0-9]{4}) +"
    rf"{_CLOCK_TIME}(?::([0-9]{{2}}))? +([a-z]{{2,3}}|[+-][0-9]{{4}})"
    r"(?: *\([^()]*\))?",
    re.IGNORECASE | re.ASCII,  # else a long s would pass for an s, in `\u017fun`
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE_OFFSETS = {
    "z": "+0000",
    "ut": "+0000",
    "utc": "+0000",
    "gmt": "+0000",
    "edt": "-0400",
    "est": "-0500",
    "cdt": "-0500",
    "cst": "-0600",
    "mdt": "-0600",
    "mst": "-0700",
    "pdt": "-0700",
    "pst": "-0800",
}


class ParsedDatetime(Struct, frozen=True, gc=False):
    """A wall-clock time, and how far that clock is ahead of UTC, if the text says so.

    `wall_ms` counts milliseconds from 1970-01-01T00:00:00 on the same clock.
    """

    wall_ms: int
    offset_ms: int | None

    @property
    def epoch_ms(self) -> int:
        """Epoch milliseconds; without an offset the clock is taken to show UTC."""
        return self.wall_ms - (self.offset_ms or 0)


def format_iso(epoch_ms: int) -> str:
    """Return epoch milliseconds as ISO 8601 in UTC with milliseconds, for programs."""
    return utc_datetime(epoch_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_iso_8601(text: str) -> ParsedDatetime | None:
    """Parse a date, or a date and a time of day, such as 2027-01-31T12:00:00.5+02:00.

    Separators are T, t or a space; seconds, fraction and offset are optional; the fraction is cut
    to milliseconds. Without a time it is midnight, without an offset `offset_ms` is None. Returns
    None for any other text. (`datetime.fromisoformat` accepts more or less with each Python.)
    """
    match = _ISO_8601.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        time_ms = _time_of_day_ms(hour or "0", minute or "0", second or "0", fraction or "")
        return ParsedDatetime(
            _midnight_ms(int(year), int(month), int(day)) + time_ms,
            None if offset is None else _offset_ms(offset),
        )
    except (ValueError, KeyError):  # 30 February, 25:00, +24:00
        return None


def parse_rfc_2822(text: str) -> ParsedDatetime | None:
    """Parse a date such as `Thu, 29 Feb 2024 01:00:00 +0100`. Returns None for any other text."""
    match = _RFC_2822.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second, zone = match.groups()
    try:
        return ParsedDatetime(
            _midnight_ms(int(year), _MONTHS.index(month.lower()) + 1, int(day))
            + _time_of_day_ms(hour, minute, second or "0", ""),
            _offset_ms(zone),
        )
    except (ValueError, KeyError):
        return None


def _midnight_ms(year: int, month: int, day: int) -> int:
    return days_since_epoch(date(year, month, day)) * MILLISECONDS_PER_DAY


def _time_of_day_ms(hour: str, minute: str, second: str, fraction: str) -> int:
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError("no such time of day")
    milliseconds = int((fraction + "000")[:3])
    minutes = int(hour) * 60 + int(minute)
    return minutes * MILLISECONDS_PER_MINUTE + int(second) * 1000 + milliseconds


def _offset_ms(zone: str) -> int:
    """Convert `+02:00`, `+0200` or the name of a zone. Raises `KeyError` or `ValueError`."""
    offset = zone if zone[0] in "+-" else _ZONE_OFFSETS[zone.lower()]
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no such offset")
    offset_ms = (hours * 60 + minutes) * MILLISECONDS_PER_MINUTE
    return -offset_ms if offset[0] == "-" else offset_ms
