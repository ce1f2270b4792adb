"""The range of days and its buckets in SQL: integer arithmetic over epoch seconds and offsets.

The store's own timezone tables are never asked, so every store agrees with `zoneinfo`.
"""

from collections.abc import Mapping

from msgspec import Struct

from millrace.model.plan import DateRange, Granularity, OutputKind
from millrace.query.parameters import Parameters
from millrace.query.ranges import BUCKET_SECONDS, is_clean, touched_days

BUCKET_KINDS: Mapping[Granularity, OutputKind] = {
    Granularity.HOURLY: OutputKind.HOUR,
    Granularity.DAILY: OutputKind.DAY,
}

_EARLIEST_MS = 0
_LATEST_MS = 10_413_792_000_000  # 2300-01-01, past what the store's DateTime64 can hold
"""No row is older than 2000 or newer than tomorrow: ranges are cut to what the store can hold."""


class RangeParameters(Struct, frozen=True):
    """The places of a range's bound values; None where the statement can do without them."""

    start: str
    end: str
    dates: tuple[str, str] | None
    offsets: tuple[str, str] | None


def bind_range(days: DateRange, parameters: Parameters, *, has_buckets: bool) -> RangeParameters:
    """Bind what the SQL of a range needs.

    Whether all of its moments are of its dates, and whether there are buckets, is part of the
    statement's shape: with no wall clock to read, the engine has a millisecond less to do.
    """
    clean = is_clean(days)
    return RangeParameters(
        start=_bind_moment(days.start_ms, parameters),
        end=_bind_moment(days.end_ms, parameters),
        dates=None if clean else _bind_dates(days, parameters),
        offsets=_bind_offsets(days, parameters) if has_buckets or not clean else None,
    )


def _bind_dates(days: DateRange, parameters: Parameters) -> tuple[str, str]:
    return parameters.bind(days.first_day, "Int64"), parameters.bind(days.last_day, "Int64")


def _bind_offsets(days: DateRange, parameters: Parameters) -> tuple[str, str]:
    starts, offsets = zip(*days.offsets, strict=True)
    return (
        parameters.bind([start * 1000 for start in starts], "Array(Int64)"),
        parameters.bind([offset * 1000 for offset in offsets], "Array(Int64)"),
    )


class DayParameters(Struct, frozen=True):
    """The places of the first and last of some days in UTC, which count from 1970."""

    first: str
    last: str


def bind_touched_days(days: DateRange, parameters: Parameters) -> DayParameters:
    """Bind the days in UTC that have a moment between the range's ends."""
    first, end = touched_days(days)
    return DayParameters(parameters.bind(first, "Int64"), parameters.bind(end - 1, "Int64"))


def wall_clock(column: str, places: RangeParameters) -> list[str]:
    """Return the definition of `wall_ms`: what a column's moment is called in the zone.

    The offset in force is that of the last change before the moment. A table of offsets takes no
    longer than one offset, or comparisons, over any number of changes.
    """
    if places.offsets is None:
        return []
    starts, offsets = places.offsets
    return [
        f"toUnixTimestamp64Milli({column}) AS epoch_ms",
        f"epoch_ms + transform(roundDown(epoch_ms, {starts}), {starts}, {offsets}, 0) AS wall_ms",
    ]


def bucket(granularity: Granularity) -> str:
    """Return the day or hour on the zone's wall clock, counted from 1970. Groups like it short."""
    return f"toInt32(intDiv(wall_ms, {BUCKET_SECONDS[granularity] * 1000}))"


def is_in_range(column: str, places: RangeParameters) -> list[str]:
    """Return the conditions for a moment to belong to the range; `wall_ms` must be defined.

    The primary key answers the first two. The date on the wall clock is looked at only where
    clocks went back across midnight at an end of the range.
    """
    conditions = [f"{column} >= {places.start}", f"{column} < {places.end}"]
    if places.dates is not None:
        first, last = places.dates
        conditions.append(f"{bucket(Granularity.DAILY)} BETWEEN {first} AND {last}")
    return conditions


def _bind_moment(epoch_ms: int, parameters: Parameters) -> str:
    within = min(max(epoch_ms, _EARLIEST_MS), _LATEST_MS)
    return f"fromUnixTimestamp64Milli({parameters.bind(within, 'Int64')}, 'UTC')"
