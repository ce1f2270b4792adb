"""The range of days and its buckets in SQL: integer arithmetic over epoch seconds and offsets.

The store's own timezone tables are never asked, so every store agrees with `zoneinfo`.
"""

from collections.abc import Mapping

from msgspec import Struct

from millrace.model.plan import DateRange, Granularity, OutputKind
from millrace.model.visits import DAY_MS
from millrace.query.parameters import Parameters
from millrace.query.ranges import BUCKET_SECONDS, is_clean, touched_days, whole_days

BUCKET_KINDS: Mapping[Granularity, OutputKind] = {
    Granularity.HOURLY: OutputKind.HOUR,
    Granularity.DAILY: OutputKind.DAY,
}

_EARLIEST_MS = 0
_LATEST_MS = 10_413_792_000_000  # 2300-01-01, past what the store's DateTime64 can hold
"""No row is older than 2000 or newer than tomorrow: ranges are cut to what the store can hold."""


class RangeParameters(Struct, frozen=True):
    """The places of a range's bound values."""

    start: str
    end: str
    is_clean: str
    first_day: str
    last_day: str
    offset_starts: str
    offsets: str


def bind_range(days: DateRange, parameters: Parameters) -> RangeParameters:
    """Bind everything that the SQL of a range needs."""
    return RangeParameters(
        start=_bind_moment(days.start_ms, parameters),
        end=_bind_moment(days.end_ms, parameters),
        is_clean=parameters.bind(is_clean(days), "Bool"),
        first_day=parameters.bind(days.first_day, "Int64"),
        last_day=parameters.bind(days.last_day, "Int64"),
        offset_starts=parameters.bind([start for start, _ in days.offsets], "Array(Int64)"),
        offsets=parameters.bind([offset for _, offset in days.offsets], "Array(Int64)"),
    )


class DayParameters(Struct, frozen=True):
    """The places of the first and last of some days in UTC, which count from 1970."""

    first: str
    last: str


def bind_touched_days(days: DateRange, parameters: Parameters) -> DayParameters:
    """Bind the days in UTC that have a moment between the range's ends."""
    first, end = touched_days(days)
    return DayParameters(parameters.bind(first, "Int64"), parameters.bind(end - 1, "Int64"))


class WholeDayParameters(DayParameters, frozen=True):
    """Days in UTC, and the moments from and up to which they last."""

    start: str
    end: str


def bind_whole_days(days: DateRange, parameters: Parameters) -> WholeDayParameters:
    """Bind the days in UTC of which every moment is in the range."""
    first, end = whole_days(days)
    return WholeDayParameters(
        first=parameters.bind(first, "Int64"),
        last=parameters.bind(end - 1, "Int64"),
        start=_bind_moment(first * DAY_MS, parameters),
        end=_bind_moment(end * DAY_MS, parameters),
    )


def wall_clock(column: str, places: RangeParameters) -> list[str]:
    """Return the definition of `wall_second`: what a column's moment is called in the zone.

    The offset in force is that of the last change before the moment.
    """
    starts, offsets = places.offset_starts, places.offsets
    return [
        f"intDiv(toUnixTimestamp64Milli({column}), 1000) AS epoch_second",
        f"roundDown(epoch_second, {starts}) AS offset_start",
        f"epoch_second + transform(offset_start, {starts}, {offsets}, 0) AS wall_second",
    ]


def bucket(granularity: Granularity) -> str:
    """Return the day or hour on the zone's wall clock, counted from 1970."""
    return f"intDiv(wall_second, {BUCKET_SECONDS[granularity]})"


def is_in_range(column: str, places: RangeParameters) -> list[str]:
    """Return the conditions for a moment to belong to the range; `wall_second` must be defined.

    The primary key answers the first two. The date on the wall clock is looked at only where
    clocks went back across midnight at an end of the range: the store folds the last condition
    into nothing otherwise.
    """
    day = bucket(Granularity.DAILY)
    return [
        f"{column} >= {places.start}",
        f"{column} < {places.end}",
        f"({places.is_clean} OR {day} BETWEEN {places.first_day} AND {places.last_day})",
    ]


def _bind_moment(epoch_ms: int, parameters: Parameters) -> str:
    within = min(max(epoch_ms, _EARLIEST_MS), _LATEST_MS)
    return f"fromUnixTimestamp64Milli({parameters.bind(within, 'Int64')}, 'UTC')"
