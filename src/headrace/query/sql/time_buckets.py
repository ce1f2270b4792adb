"""The range of days and its buckets in SQL: integer arithmetic over epoch seconds and offsets.

The store's own timezone tables are never asked, so every store agrees with `zoneinfo`.
"""

from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from headrace.model.plan import DateRange, Granularity, OutputKind
from headrace.query.sql.builder import Parameters
from headrace.query.validate.day_range import BUCKET_SECONDS, is_contiguous, utc_days

BUCKET_KINDS: Mapping[Granularity, OutputKind] = {
    Granularity.HOURLY: OutputKind.HOUR,
    Granularity.DAILY: OutputKind.DAY,
}

_MAX_INLINED_CHANGES = 4
_EARLIEST_MS = 0
_LATEST_MS = 10_413_792_000_000  # 2300-01-01, past what the store's DateTime64 can hold
"""No row is older than 2000 or newer than tomorrow: ranges are cut to what the store can hold."""


class RangeParameters(Struct, frozen=True):
    """A range's ends, its first and last date, and what `epoch_ms` is on the zone's wall clock.

    They are SQL of bound values; None where the statement can do without them.
    """

    start: str
    end: str
    dates: tuple[str, str] | None
    wall_ms: str | None


def bind_range(days: DateRange, parameters: Parameters, *, is_bucketed: bool) -> RangeParameters:
    """Bind what the SQL of a range needs.

    Whether all of its moments are of its dates, and whether there are buckets, is part of the
    statement's shape: with no wall clock to read, the engine has a millisecond less to do.
    """
    contiguous = is_contiguous(days)
    return RangeParameters(
        start=_bind_timestamp(days.start_ms, parameters),
        end=_bind_timestamp(days.end_ms, parameters),
        dates=None if contiguous else _bind_dates(days, parameters),
        wall_ms=_bind_offsets(days, parameters) if is_bucketed or not contiguous else None,
    )


def _bind_dates(days: DateRange, parameters: Parameters) -> tuple[str, str]:
    return parameters.bind(days.first_day, "Int64"), parameters.bind(days.last_day, "Int64")


def inlined_offset_changes(days: DateRange) -> int | None:
    """Return how many changes of offset a statement adds up; None where it has a table of them.

    That is part of its shape while they are few, because to add them up takes less time than to
    look in a table, which takes no longer for any number.
    """
    changes = len(days.offsets) - 1
    return changes if changes <= _MAX_INLINED_CHANGES else None


def _bind_offsets(days: DateRange, parameters: Parameters) -> str:
    """Write what the wall clock reads: the offset in force is that of the last change before."""
    starts, offsets = zip(*days.offsets, strict=True)
    if inlined_offset_changes(days) is None:
        table = parameters.bind([start * 1000 for start in starts], "Array(Int64)")
        values = parameters.bind([offset * 1000 for offset in offsets], "Array(Int64)")
        return f"epoch_ms + transform(roundDown(epoch_ms, {table}), {table}, {values}, 0)"
    terms = [parameters.bind(offsets[0] * 1000, "Int64")]
    for start, (before, after) in zip(starts[1:], pairwise(offsets), strict=True):
        change = parameters.bind(start * 1000, "Int64")
        terms.append(
            f"(epoch_ms >= {change}) * {parameters.bind((after - before) * 1000, 'Int64')}"
        )
    return f"epoch_ms + {' + '.join(terms)}"


class DayParameters(Struct, frozen=True):
    """The places of the first and last of some days in UTC, which count from 1970."""

    first: str
    last: str


def bind_utc_days(days: DateRange, parameters: Parameters) -> DayParameters:
    """Bind the days in UTC that have a moment between the range's ends."""
    first, end = utc_days(days)
    return DayParameters(parameters.bind(first, "Int64"), parameters.bind(end - 1, "Int64"))


def wall_clock_exprs(column: str, range_parameters: RangeParameters) -> list[str]:
    """Return the definition of `wall_ms`: what a column's moment is called in the zone."""
    if range_parameters.wall_ms is None:
        return []
    return [
        f"toUnixTimestamp64Milli({column}) AS epoch_ms",
        f"{range_parameters.wall_ms} AS wall_ms",
    ]


def bucket_expr(granularity: Granularity) -> str:
    """Return the day or hour on the zone's wall clock, counted from 1970. Groups like it short.

    Doubles are divided in two thirds of the time of integers, and they are exact here: a moment is
    positive and below 2^53, and the last millisecond of a bucket is far from the next one's first.
    """
    return f"toInt32(wall_ms / {BUCKET_SECONDS[granularity] * 1000})"


def range_conditions(column: str, range_parameters: RangeParameters) -> list[str]:
    """Return the conditions for a moment to belong to the range; `wall_ms` must be defined.

    The primary key answers the first two. The date on the wall clock is looked at only where
    clocks went back across midnight at an end of the range.
    """
    conditions = [f"{column} >= {range_parameters.start}", f"{column} < {range_parameters.end}"]
    if range_parameters.dates is not None:
        first, last = range_parameters.dates
        conditions.append(f"{bucket_expr(Granularity.DAILY)} BETWEEN {first} AND {last}")
    return conditions


def _bind_timestamp(epoch_ms: int, parameters: Parameters) -> str:
    clamped_ms = min(max(epoch_ms, _EARLIEST_MS), _LATEST_MS)
    return f"fromUnixTimestamp64Milli({parameters.bind(clamped_ms, 'Int64')}, 'UTC')"
