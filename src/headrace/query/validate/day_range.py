"""Whole days of a timezone as a range of timestamps, and the buckets of a range.

A timestamp belongs to a day if that is its wall-clock date in the zone. All of it is integer
arithmetic on epoch seconds and the zone's offsets, which the SQL repeats.
"""

from datetime import UTC, date, datetime, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from headrace.base.clock import (
    MILLISECONDS_PER_DAY,
    SECONDS_PER_DAY,
    date_from_days,
    days_since_epoch,
    to_epoch_ms,
)
from headrace.model.plan import DateRange, Granularity
from headrace.query.validate.timezones import OffsetChange, offsets_between

_MARGIN_S = 2 * SECONDS_PER_DAY
"""An offset is less than a day, so this covers all timestamps of a day."""

_HOUR_S = 3_600
_DAYS_PER_WEEK = 7
_MONTHS_PER_YEAR = 12
_FIRST_MONDAY = -3
"""Day 0, the first of 1970, was a Thursday."""

OffsetRange = tuple[int, int, int]
"""(first epoch second, end excluded, offset in force)."""


def range_of_days(first: date, last: date, zone: ZoneInfo) -> DateRange:
    """Return the range of timestamps whose wall-clock date is in `first` to `last`, inclusive.

    `start_ms` is the first such timestamp, `end_ms` follows the last one. Timestamps between them
    may belong to other days (see `is_contiguous`). A range may be empty: Apia skipped 2011-12-30.
    """
    first_day, last_day = days_since_epoch(first), days_since_epoch(last)
    wall_start_s, wall_end_s = first_day * SECONDS_PER_DAY, (last_day + 1) * SECONDS_PER_DAY
    window_s = (wall_start_s - _MARGIN_S, wall_end_s + _MARGIN_S)
    inside = [
        (max(start_s, wall_start_s - offset), min(end_s, wall_end_s - offset))
        for start_s, end_s, offset in _offset_ranges(offsets_between(zone, *window_s), window_s[1])
    ]
    inside = [(start_s, end_s) for start_s, end_s in inside if start_s < end_s]
    start_s, end_s = (inside[0][0], inside[-1][1]) if inside else (wall_start_s, wall_start_s)
    return DateRange(
        first_day=first_day,
        last_day=last_day,
        start_ms=start_s * 1000,
        end_ms=end_s * 1000,
        offsets=offsets_between(zone, start_s, end_s),
        timezone=zone.key,
    )


def is_contiguous(days: DateRange) -> bool:
    """Return whether every timestamp between the range's ends has a date of the range.

    It is false if clocks went back across midnight at an end (St. John's until 2011).
    """
    wall_start_s, wall_end_s = (
        days.first_day * SECONDS_PER_DAY,
        (days.last_day + 1) * SECONDS_PER_DAY,
    )
    return all(
        wall_start_s <= start_s + offset and end_s + offset <= wall_end_s
        for start_s, end_s, offset in _offset_ranges(days.offsets, days.end_ms // 1000)
    )


def utc_days(days: DateRange) -> tuple[int, int]:
    """Return the first UTC day that the range touches, and the one after the last."""
    return days.start_ms // MILLISECONDS_PER_DAY, -(-days.end_ms // MILLISECONDS_PER_DAY)


def rollup_days_suffice(days: DateRange) -> bool:
    """Return whether the first and last event of a UTC day show if any event is in the range.

    They do not if the range starts and ends within one day, or is not contiguous.
    """
    is_within_a_day = days.start_ms // MILLISECONDS_PER_DAY == days.end_ms // MILLISECONDS_PER_DAY
    return is_contiguous(days) and not (is_within_a_day and days.start_ms % MILLISECONDS_PER_DAY)


def buckets_of(days: DateRange, granularity: Granularity) -> list[int]:
    """Return all buckets that exist on the zone's wall clock, as numbers: see `OutputKind`.

    An hour that a clock change skips is no bucket; an hour that it repeats is one bucket.
    """
    if granularity is Granularity.HOURLY:
        return _wall_clock_units(days, _HOUR_S)
    existing = _wall_clock_units(days, SECONDS_PER_DAY)
    return sorted({bucket_of_day(day, granularity) for day in existing})


def bucket_shift(days: DateRange, compared: DateRange, granularity: Granularity) -> int:
    """Return what to add to a bucket of `compared` for the bucket of the same number in `days`."""
    return bucket_of_day(days.first_day, granularity) - bucket_of_day(
        compared.first_day, granularity
    )


def bucket_of_day(day: int, granularity: Granularity) -> int:
    """Return the bucket in which a day, counted from 1970, begins."""
    match granularity:
        case Granularity.HOURLY:
            return day * (SECONDS_PER_DAY // _HOUR_S)
        case Granularity.DAILY:
            return day
        case Granularity.WEEKLY:
            return (day - _FIRST_MONDAY) // _DAYS_PER_WEEK
        case Granularity.MONTHLY:
            first = date_from_days(day)
            return _MONTHS_PER_YEAR * first.year + first.month
        case _:
            assert_never(granularity)


def first_date_of_week(week: int) -> date:
    """Return the Monday of a week's bucket."""
    return date_from_days(week * _DAYS_PER_WEEK + _FIRST_MONDAY)


def first_date_of_month(month: int) -> date:
    """Return the first day of a month's bucket."""
    year, months = divmod(month - 1, _MONTHS_PER_YEAR)
    return date(year, months + 1, 1)


def _wall_clock_units(days: DateRange, size_s: int) -> list[int]:
    """Return the units of time of this size that exist on the wall clock, counted from 1970."""
    first = days.first_day * SECONDS_PER_DAY // size_s
    last = ((days.last_day + 1) * SECONDS_PER_DAY - 1) // size_s
    buckets: set[int] = set()
    for start_s, end_s, offset in _offset_ranges(days.offsets, days.end_ms // 1000):
        begin, end = (start_s + offset) // size_s, (end_s + offset - 1) // size_s
        buckets.update(range(max(begin, first), min(end, last) + 1))
    return sorted(buckets)


def wall_clock_ms(wall: datetime, zone: ZoneInfo) -> int:
    """Return the epoch milliseconds of a wall-clock time in a zone.

    A time that occurs twice means the first. A skipped time is converted with the offset in force
    before the change.
    """
    offset = wall.replace(tzinfo=zone).utcoffset() or timedelta()
    return to_epoch_ms(wall.replace(tzinfo=UTC)) - offset // timedelta(milliseconds=1)


def _offset_ranges(offsets: tuple[OffsetChange, ...], end_s: int) -> list[OffsetRange]:
    ends = [start_s for start_s, _ in offsets[1:]] + [end_s]
    return [
        (start_s, stop_s, offset)
        for (start_s, offset), stop_s in zip(offsets, ends, strict=True)
        if start_s < stop_s
    ]
