"""Whole days of a timezone, compared with `zoneinfo` at many timestamps around clock changes."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.plan import DateRange, Granularity
from headrace.query.validate.day_range import (
    buckets_of,
    is_contiguous,
    range_of_days,
    wall_clock_ms,
)
from headrace.query.validate.timezones import find_zone, offset_at, offsets_between, zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
QUARTER_S = 900
ZONES = sorted(zone_names())


def epoch_s(timestamp: datetime) -> int:
    return (timestamp - EPOCH) // timedelta(seconds=1)


def local(zone: ZoneInfo, second: int) -> datetime:
    return (EPOCH + timedelta(seconds=second)).astimezone(zone)


def wall_second(days: DateRange, second: int) -> int:
    """Return the local time as the store computes it: by the last offset change before `second`."""
    return second + [offset for start, offset in days.offsets if start <= second][-1]


def belongs(days: DateRange, second: int) -> bool:
    """Return whether a timestamp is in the range, as the store computes it."""
    if not days.start_ms <= second * 1000 < days.end_ms:
        return False
    return days.first_day <= wall_second(days, second) // 86_400 <= days.last_day


def days_of(zone_name: str, first: str, last: str | None = None) -> DateRange:
    last = first if last is None else last
    return range_of_days(date.fromisoformat(first), date.fromisoformat(last), ZoneInfo(zone_name))


def utc(text: str) -> int:
    return epoch_s(datetime.fromisoformat(text).replace(tzinfo=UTC)) * 1000


# Chosen ranges.


def test_range_in_utc_is_whole_days_both_ends_included() -> None:
    assert days_of("UTC", "2026-01-05", "2026-01-06") == DateRange(
        first_day=20_458,
        last_day=20_459,
        start_ms=utc("2026-01-05"),
        end_ms=utc("2026-01-07"),
        offsets=((utc("2026-01-05") // 1000, 0),),
        timezone="UTC",
    )


ENDS = [
    pytest.param("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", "2026-03-29T22:00", id="23 h"),
    pytest.param("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", "2026-10-25T23:00", id="25 h"),
    pytest.param(
        "Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", "2026-04-05T13:30", id="24.5 h"
    ),
    pytest.param(
        "Pacific/Apia", "2011-12-29", "2011-12-29T10:00", "2011-12-30T10:00", id="before none"
    ),
    pytest.param(
        "Pacific/Apia", "2011-12-31", "2011-12-30T10:00", "2011-12-31T10:00", id="after none"
    ),
    pytest.param(
        "America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00", "2018-11-05T02:00", id="no midnight"
    ),
    pytest.param(
        "America/St_Johns", "2010-11-06", "2010-11-06T02:30", "2010-11-07T03:30", id="00:01 back"
    ),
    pytest.param(
        "America/St_Johns", "2010-11-07", "2010-11-07T02:30", "2010-11-08T03:30", id="00:00 twice"
    ),
]


@pytest.mark.parametrize(("zone", "day", "start", "end"), ENDS)
def test_range_covers_the_full_day(zone: str, day: str, start: str, end: str) -> None:
    days = days_of(zone, day)
    assert (days.start_ms, days.end_ms) == (utc(start), utc(end))


def test_skipped_day_is_an_empty_range() -> None:
    days = days_of("Pacific/Apia", "2011-12-30")
    assert (days.end_ms - days.start_ms, buckets_of(days, Granularity.DAILY)) == (0, [])


@pytest.mark.parametrize(
    ("zone", "day", "clean"),
    [
        ("America/St_Johns", "2010-11-05", True),
        ("America/St_Johns", "2010-11-06", False),  # goes back after one minute of the 7th
        ("America/St_Johns", "2010-11-07", False),
        ("America/St_Johns", "2010-11-08", True),
        ("Europe/Berlin", "2026-10-25", True),
        ("Pacific/Apia", "2011-12-30", True),
    ],
)
def test_range_is_contiguous_unless_clocks_go_back_across_midnight(
    zone: str, day: str, clean: bool
) -> None:
    assert is_contiguous(days_of(zone, day)) is clean


def test_two_days_around_a_repeated_midnight_are_contiguous() -> None:
    assert is_contiguous(days_of("America/St_Johns", "2010-11-06", "2010-11-07"))


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", [hour for hour in range(24) if hour != 2]),
        ("Europe/Berlin", "2026-10-25", list(range(24))),
        ("Australia/Lord_Howe", "2025-10-05", list(range(24))),
        ("America/Sao_Paulo", "2018-11-04", list(range(1, 24))),
        ("America/St_Johns", "2010-11-06", list(range(24))),
        ("America/St_Johns", "2010-11-07", list(range(24))),
    ],
)
def test_hours_are_in_local_time(zone: str, day: str, hours: list[int]) -> None:
    days = days_of(zone, day)
    assert buckets_of(days, Granularity.HOURLY) == [days.first_day * 24 + hour for hour in hours]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_first_and_last_day_of_all_have_24_hours(zone: str, day: str) -> None:
    days = days_of(zone, day)
    assert days.end_ms - days.start_ms == 86_400_000
    assert len(buckets_of(days, Granularity.HOURLY)) == 24


@pytest.mark.parametrize(
    ("wall", "zone", "timestamp"),
    [
        ("2026-01-05T00:00:00", "UTC", "2026-01-05T00:00"),
        ("2026-07-05T12:30:00", "Asia/Kathmandu", "2026-07-05T06:45"),
        ("2026-03-29T02:30:00", "Europe/Berlin", "2026-03-29T01:30"),
        ("2026-10-25T02:30:00", "Europe/Berlin", "2026-10-25T00:30"),
        ("2018-11-04T00:00:00", "America/Sao_Paulo", "2018-11-04T03:00"),
        ("2011-12-30T12:00:00", "Pacific/Apia", "2011-12-30T22:00"),
    ],
)
def test_ambiguous_local_time_is_the_first_instant(wall: str, zone: str, timestamp: str) -> None:
    assert wall_clock_ms(datetime.fromisoformat(wall), ZoneInfo(zone)) == utc(timestamp)


def test_local_time_is_truncated_to_milliseconds_also_before_1970() -> None:
    assert wall_clock_ms(datetime(1969, 12, 31, 23, 59, 59, 999_900), ZoneInfo("UTC")) == -1  # noqa: DTZ001 - a wall clock time


# All zones, on the days of their clock changes.


@pytest.fixture(scope="module")
def changes() -> list[tuple[str, date]]:
    """Return a zone and a day for each kind of clock change from 2000 to 2030.

    Kinds differ in local time and offsets; most zones share one of a few.
    """
    found: dict[tuple[object, ...], tuple[str, date]] = {}
    steps = range(epoch_s(datetime(2000, 1, 1, tzinfo=UTC)), 1_924_992_000, 20 * 86_400)
    known: set[tuple[int, ...]] = set()
    for name in ZONES:
        zone = ZoneInfo(name)
        offsets = tuple(offset_of(zone, second) for second in steps)
        if offsets in known:
            continue
        known.add(offsets)
        for second, (before, after) in zip(steps, pairwise(offsets), strict=False):
            if before != after:
                wall = local(zone, change_after(zone, second, before)).replace(tzinfo=None)
                found.setdefault((wall.time(), before, after), (name, wall.date()))
    assert len(found) > 60
    return list(found.values())


def offset_of(zone: ZoneInfo, second: int) -> int:
    offset = local(zone, second).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def change_after(zone: ZoneInfo, second: int, before: int) -> int:
    for step in (86_400, QUARTER_S):
        while offset_of(zone, second + step) == before:
            second += step
    return second + QUARTER_S


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_range_has_the_instants_of_the_local_day(
    changes: list[tuple[str, date]], shift: int
) -> None:
    for name, changed in changes:
        day = changed + shift * DAY
        zone, days = ZoneInfo(name), range_of_days(day, day, ZoneInfo(name))
        noon = epoch_s(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))
        quarter_hours = range(noon - 40 * 3600, noon + 40 * 3600, QUARTER_S)
        timestamps = [second + step for second in quarter_hours for step in (-1, 0, 60)]
        expected = [second for second in timestamps if local(zone, second).date() == day]
        assert [second for second in timestamps if belongs(days, second)] == expected, (name, day)
        between = [m for m in timestamps if days.start_ms <= m * 1000 < days.end_ms]
        assert is_contiguous(days) == (between == expected), (name, day)


def test_buckets_are_local_hours_and_days(
    changes: list[tuple[str, date]],
) -> None:
    for name, changed in changes:
        zone = ZoneInfo(name)
        days = range_of_days(changed - DAY, changed + DAY, zone)
        quarter_hours = range(days.start_ms // 1000, days.end_ms // 1000, 60)
        walls = [local(zone, second) for second in quarter_hours]
        hours = {(wall.date().toordinal() - 719_163) * 24 + wall.hour for wall in walls}
        assert buckets_of(days, Granularity.HOURLY) == sorted(hours), (name, changed)
        dates = {wall.date().toordinal() - 719_163 for wall in walls}
        assert buckets_of(days, Granularity.DAILY) == sorted(dates), (name, changed)


@given(
    name=st.sampled_from(ZONES),
    start=st.integers(-4_000_000_000, 8_000_000_000),
    length=st.integers(1, 4_000 * 86_400),
    share=st.floats(0, 1, exclude_max=True),
)
def test_offsets_match_zoneinfo_at_any_instant(
    name: str, start: int, length: int, share: float
) -> None:
    zone, second = ZoneInfo(name), start + int(length * share)
    offsets = offsets_between(zone, start, start + length)
    assert [offset for since, offset in offsets if since <= second][-1] == offset_of(zone, second)


def test_offset_outside_the_datetime_range_is_the_nearest_one() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    assert offset_at(tokyo, 10**12) == 32_400
    assert offset_at(tokyo, -(10**12)) == 33_539  # local mean time


# Names.


def test_every_listed_zone_can_be_found() -> None:
    assert [name for name in ZONES if find_zone(name) is None] == []
    assert len(ZONES) > 500


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../UTC", "/etc/localtime", "localtime", "posixrules", "Factory"),
        *("Europe", "europe/berlin", "Europe/Berlin ", "UTC\0", "tzdata.zi", "zone.tab"),
        *("a" * 5000, "🦆"),
    ],
)
def test_invalid_zone_name_is_not_found(name: str) -> None:
    assert find_zone(name) is None
