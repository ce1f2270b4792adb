"""The range of days and its buckets in SQL: integer arithmetic over epoch times and offsets.

The SQL never uses the store's own timezone tables, so every store agrees with `zoneinfo`.
"""

from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from headrace.model.plan import DateRange, Granularity, OutputKind
from headrace.query.sql.builder import Parameters
from headrace.query.validate.day_range import is_contiguous, utc_days

BUCKET_KINDS: Mapping[Granularity, OutputKind] = {
    Granularity.HOURLY: OutputKind.HOUR,
    Granularity.DAILY: OutputKind.DAY,
    Granularity.WEEKLY: OutputKind.WEEK,
    Granularity.MONTHLY: OutputKind.MONTH,
}

_BUCKETS: Mapping[Granularity, str] = {
    Granularity.HOURLY: "toInt32(wall_ms / 3600000)",
    Granularity.DAILY: "toInt32(wall_ms / 86400000)",
    Granularity.WEEKLY: "toInt32((wall_ms + 259200000) / 604800000)",  # 1970 began on a Thursday
    Granularity.MONTHLY: "toInt32(toRelativeMonthNum(toDate32(toInt32(wall_ms / 86400000))))",
}

_MAX_INLINED_CHANGES = 4
_EARLIEST_MS = 0
_LATEST_MS = 10_413_792_000_000  # 2300-01-01, just past the range of the store's DateTime64
"""Ranges are clamped to what the store can represent. No row is outside: rows date from 2000 on."""


class RangeParameters(Struct, frozen=True):
    """The SQL of a range: its ends, its first and last date, and the wall clock at `epoch_ms`.

    All values in it are bound. `dates` and `wall_ms` are None if the statement does not need them.
    """

    start: str
    end: str
    dates: tuple[str, str] | None
    wall_ms: str | None


def bind_range(days: DateRange, parameters: Parameters, *, is_bucketed: bool) -> RangeParameters:
    """Bind the values of a range.

    Whether the range is contiguous and whether there are buckets is part of the statement's shape:
    without a wall clock to compute, the engine saves a millisecond.
    """
    return bind_ranges(days, None, parameters, is_bucketed=is_bucketed)[0]


def bind_ranges(
    days: DateRange, compared: DateRange | None, parameters: Parameters, *, is_bucketed: bool
) -> tuple[RangeParameters, RangeParameters | None]:
    """Bind the values of a range and of the one that it is compared with: they share a clock."""
    bound = [_bind_ends(one, parameters) for one in (days, compared) if one is not None]
    clock = days if compared is None else replace(days, offsets=_joint_offsets(days, compared))
    if is_bucketed or any(one.dates is not None for one in bound):
        wall_ms = _bind_offsets(clock, parameters)
        bound = [replace(one, wall_ms=wall_ms) for one in bound]
    return bound[0], bound[1] if compared is not None else None


def _bind_ends(days: DateRange, parameters: Parameters) -> RangeParameters:
    return RangeParameters(
        start=_bind_timestamp(days.start_ms, parameters),
        end=_bind_timestamp(days.end_ms, parameters),
        dates=None if is_contiguous(days) else _bind_dates(days, parameters),
        wall_ms=None,
    )


def _joint_offsets(days: DateRange, compared: DateRange) -> tuple[tuple[int, int], ...]:
    """Return the offsets within two ranges of a zone; what lies between them does not matter."""
    first, *others = sorted({*days.offsets, *compared.offsets})
    return first, *(after for before, after in pairwise([first, *others]) if after[1] != before[1])


def _bind_dates(days: DateRange, parameters: Parameters) -> tuple[str, str]:
    return parameters.bind(days.first_day, "Int64"), parameters.bind(days.last_day, "Int64")


def inlined_offset_changes(days: DateRange) -> int | None:
    """Return the number of offset changes that a statement adds up; None if it has a table.

    A few changes are part of the statement's shape, because adding them up is faster than a table
    lookup. The time of a lookup does not depend on their number.
    """
    changes = len(days.offsets) - 1
    return changes if changes <= _MAX_INLINED_CHANGES else None


def _bind_offsets(days: DateRange, parameters: Parameters) -> str:
    """Return the SQL of the wall clock: the offset in force is that of the last change."""
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
    """The placeholders of the first and the last UTC day, counted from 1970."""

    first: str
    last: str


def bind_utc_days(days: DateRange, parameters: Parameters) -> DayParameters:
    """Bind the first and the last UTC day that the range touches."""
    first, end = utc_days(days)
    return DayParameters(parameters.bind(first, "Int64"), parameters.bind(end - 1, "Int64"))


def wall_clock_exprs(column: str, range_parameters: RangeParameters) -> list[str]:
    """Return the definition of `wall_ms`: the wall-clock time of a column, in milliseconds."""
    if range_parameters.wall_ms is None:
        return []
    return [
        f"toUnixTimestamp64Milli({column}) AS epoch_ms",
        f"{range_parameters.wall_ms} AS wall_ms",
    ]


def bucket_expr(granularity: Granularity) -> str:
    """Return the SQL of the bucket on the zone's wall clock, as a number: see `OutputKind`.

    The type is Int32, because grouping is faster by a short key. Dividing doubles takes two thirds
    of the time of integers and is exact here: timestamps are positive and below 2^53, and the last
    millisecond of a bucket differs from the start of the next by more than the rounding error.
    """
    return _BUCKETS[granularity]


def range_conditions(column: str, range_parameters: RangeParameters) -> list[str]:
    """Return the conditions for a column to be in the range; `wall_ms` must be defined.

    The primary key serves the first two. The date on the wall clock is compared only if clocks
    went back across midnight at an end of the range.
    """
    conditions = [f"{column} >= {range_parameters.start}", f"{column} < {range_parameters.end}"]
    if range_parameters.dates is not None:
        first, last = range_parameters.dates
        conditions.append(f"{bucket_expr(Granularity.DAILY)} BETWEEN {first} AND {last}")
    return conditions


def _bind_timestamp(epoch_ms: int, parameters: Parameters) -> str:
    clamped_ms = min(max(epoch_ms, _EARLIEST_MS), _LATEST_MS)
    return f"fromUnixTimestamp64Milli({parameters.bind(clamped_ms, 'Int64')}, 'UTC')"
