"""Timezones by name and the changes of their offset from UTC, both from `zoneinfo` alone."""

from datetime import timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from headrace.base.clock import EPOCH, SECONDS_PER_DAY

_EXCLUDED_ZONE_NAMES = frozenset({"localtime", "posixrules", "Factory"})
"""Files that are no zones: a link to this machine's zone, a template, and the unset clock."""

_WINDOW_S = 366 * SECONDS_PER_DAY
_EARLIEST_S = -62_135_510_400  # 0001-01-02, a day inside of what datetime can hold in any zone
_LATEST_S = 253_402_128_000  # 9999-12-30

OffsetChange = tuple[int, int]
"""(epoch second, offset): from then on, clocks are `offset` seconds ahead of UTC."""


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones that a query may use."""
    return frozenset(available_timezones()) - _EXCLUDED_ZONE_NAMES


def find_zone(name: str) -> ZoneInfo | None:
    """Return a zone by its exact name, or None. Only known names reach the file system."""
    return ZoneInfo(name) if name in zone_names() else None


def offset_at(zone: ZoneInfo, epoch_s: int) -> int:
    """Return the offset of a zone from UTC at a timestamp, in seconds."""
    clamped_s = min(max(epoch_s, _EARLIEST_S), _LATEST_S)
    offset = (EPOCH + timedelta(seconds=clamped_s)).astimezone(zone).utcoffset()
    return 0 if offset is None else offset.days * SECONDS_PER_DAY + offset.seconds


def offsets_between(zone: ZoneInfo, start_s: int, end_s: int) -> tuple[OffsetChange, ...]:
    """Return the offsets in force from `start_s` to `end_s` (excluded), oldest first.

    The first pair begins at `start_s`; an empty range has the offset in force at its start.
    """
    offsets = [(start_s, offset_at(zone, start_s))]
    for window in range(start_s // _WINDOW_S, max(end_s - 1, start_s) // _WINDOW_S + 1):
        offsets += [change for change in _changes(zone.key, window) if start_s < change[0] < end_s]
    return tuple(offsets)


@lru_cache(maxsize=8192)
def _changes(zone_name: str, window: int) -> tuple[OffsetChange, ...]:
    """Return the changes within one window of 366 days; windows count from 1970.

    `zoneinfo` has no list of changes, so the offsets of consecutive days are compared and a change
    is found by bisection. No zone ever changed twice within three days (Freetown in 1939: after
    95 hours).
    """
    zone = ZoneInfo(zone_name)
    changes: list[OffsetChange] = []
    before_s = window * _WINDOW_S - 1
    before = offset_at(zone, before_s)
    for day_s in range(before_s + SECONDS_PER_DAY, before_s + _WINDOW_S + 1, SECONDS_PER_DAY):
        after = offset_at(zone, day_s)
        if after != before:
            changes.append((_first_second_of(after, zone, day_s - SECONDS_PER_DAY, day_s), after))
            before = after
    return tuple(changes)


def _first_second_of(offset: int, zone: ZoneInfo, before_s: int, after_s: int) -> int:
    while after_s - before_s > 1:
        middle_s = (before_s + after_s) // 2
        if offset_at(zone, middle_s) == offset:
            after_s = middle_s
        else:
            before_s = middle_s
    return after_s
