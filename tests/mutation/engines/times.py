"""Ranges, clocks and buckets, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_DATES: Final = f"{QUERY}/validate/dates.py"
_DAY_RANGE: Final = f"{QUERY}/validate/day_range.py"
_TIMEZONES: Final = f"{QUERY}/validate/timezones.py"
_BUCKETS: Final = f"{QUERY}/sql/time_buckets.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Ranges
    WrongEngine(
        "custom",
        "the last day of the range is left out",
        _DAY_RANGE,
        "first_day * SECONDS_PER_DAY, (last_day + 1) * SECONDS_PER_DAY\n    window_s",
        "first_day * SECONDS_PER_DAY, last_day * SECONDS_PER_DAY\n    window_s",
    ),
    WrongEngine(
        "custom",
        "the last millisecond of the range is left out",
        _DAY_RANGE,
        "end_ms=end_s * 1000,",
        "end_ms=end_s * 1000 - 1,",
    ),
    WrongEngine(
        "custom",
        "all days have 24 hours",
        _DAY_RANGE,
        "end_ms=end_s * 1000,",
        "end_ms=(start_s + (last_day + 1 - first_day) * SECONDS_PER_DAY) * 1000,",
    ),
    WrongEngine(
        "custom",
        "the date of a repeated midnight is not compared",
        _BUCKETS,
        "dates=None if is_contiguous(days) else _bind_dates(days, parameters)",
        "dates=None",
    ),
    WrongEngine(
        "custom",
        "ranges reach beyond what the store can represent",
        _BUCKETS,
        "clamped_ms = min(max(epoch_ms, _EARLIEST_MS), _LATEST_MS)",
        "clamped_ms = epoch_ms",
    ),
    # Clocks
    WrongEngine(
        "custom",
        "the clock of the first day holds for all",
        _DAY_RANGE,
        "offsets=offsets_between(zone, start_s, end_s),",
        "offsets=offsets_between(zone, start_s, end_s)[:1],",
    ),
    WrongEngine(
        "custom",
        "offsets are whole hours",
        _TIMEZONES,
        "else offset.days * SECONDS_PER_DAY + offset.seconds",
        "else offset.days * SECONDS_PER_DAY + offset.seconds // 3600 * 3600",
    ),
    WrongEngine(
        "custom",
        "zones west of Greenwich are a day ahead",
        _TIMEZONES,
        "else offset.days * SECONDS_PER_DAY + offset.seconds",
        "else offset.seconds",
    ),
    WrongEngine(
        "custom",
        "clocks change a millisecond late",
        _BUCKETS,
        "(epoch_ms >= {change})",
        "(epoch_ms > {change})",
    ),
    WrongEngine(
        "custom",
        "clocks change at midnight",
        _TIMEZONES,
        "changes.append((_first_second_of(after, zone, day_s - SECONDS_PER_DAY, day_s), after))",
        "changes.append((day_s, after))",
    ),
    # Buckets
    WrongEngine(
        "custom",
        "hours are those of UTC",
        _BUCKETS,
        "toInt32(wall_ms / 3600000)",
        "toInt32(epoch_ms / 3600000)",
    ),
    WrongEngine(
        "custom",
        "weeks of filled results begin on Thursday",
        _DAY_RANGE,
        "_FIRST_MONDAY = -3\n",
        "_FIRST_MONDAY = 0\n",
    ),
    WrongEngine(
        "custom",
        "December is one of the next year",
        _DAY_RANGE,
        "= divmod(month - 1, _MONTHS_PER_YEAR)\n    return date(year, months + 1, 1)\n",
        "= divmod(month, _MONTHS_PER_YEAR)\n    return date(year, months or 12, 1)\n",
    ),
    WrongEngine(
        "custom",
        "hours that clocks skip are filled",
        _DAY_RANGE,
        "    return sorted(buckets)\n",
        "    return list(range(first, last + 1))\n",
    ),
    # Weeks and months
    WrongEngine("custom", "weeks begin on Sunday", _BUCKETS, "259200000", "345600000"),
    WrongEngine(
        "custom",
        "months of different years are one",
        _BUCKETS,
        "toRelativeMonthNum(toDate32(toInt32(wall_ms / 86400000)))",
        "24240 + toMonth(toDate32(toInt32(wall_ms / 86400000)))",
    ),
    # The last days
    WrongEngine(
        "days", "one day too many", _DATES, "timedelta(days=period - 1)", "timedelta(days=period)"
    ),
    WrongEngine(
        "days",
        "today is that of UTC",
        _DATES,
        "utc_datetime(now_ms).astimezone(zone)",
        "utc_datetime(now_ms)",
    ),
    WrongEngine(
        "days",
        "the dates win over the last days",
        _DATES,
        "    if last_days is None:\n",
        "    if last_days is None or start is not None:\n",
    ),
)
