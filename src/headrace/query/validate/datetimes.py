"""Reading a moment that a filter names: ISO 8601 or epoch milliseconds."""

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = _EPOCH.replace(tzinfo=None)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST_MS = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LATEST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND

_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"([+-])(\d\d):?([0-5]\d)", re.ASCII)
_MAX_OFFSET_HOURS = 23


def parse_epoch_ms(number: float) -> int | None:
    """Drop the fraction; None for what is before the year 1 or past 9999."""
    return int(number) if _EARLIEST_MS <= number <= _LATEST_MS else None


def parse_iso_datetime(text: str) -> int | datetime | None:
    """Read a date, or a date and a time of day with T, t or a blank between, cut to milliseconds.

    With `Z`, `+02:00` or `+0200` it gives epoch milliseconds; without an offset a naive datetime,
    at midnight for a bare date. None for anything else.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    day, minute, second, fraction, offset = match.groups()
    micros = (fraction or "")[:6].ljust(6, "0")
    try:
        wall = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}.{micros}")
    except ValueError:
        return None
    if offset is None:
        return wall
    utc_offset = _parse_offset(offset)
    return None if utc_offset is None else (wall - _WALL_EPOCH - utc_offset) // _MILLISECOND


def _parse_offset(text: str) -> timedelta | None:
    """Return how far ahead of UTC a clock with this offset is; None past a day."""
    if text in ("Z", "z"):
        return timedelta()
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[2]) > _MAX_OFFSET_HOURS:
        return None
    utc_offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -utc_offset if match[1] == "-" else utc_offset
