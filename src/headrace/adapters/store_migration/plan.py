"""Plans the reads that copy the differing days: as few as the chunk limits allow."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from headrace.adapters.store_migration.selects import MINUTE_MS, RowRange
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.migration import DayKey, Digest

EMPTY_DIGEST: Final = Digest()


class ChunkLimits(Struct, frozen=True):
    """The most that one chunk contains. A chunk becomes one part of its table."""

    rows: int = 100_000
    bytes: int = 33_554_432


class SizedDigest(Struct, frozen=True):
    """A digest of rows, and the bytes that they take in memory."""

    digest: Digest = EMPTY_DIGEST
    bytes: int = 0


class DayToCopy(Struct, frozen=True):
    """A day whose rows the target lacks in part; `is_absent` if it has none of that day."""

    day: DayKey
    source: SizedDigest
    is_absent: bool

    def row_range(self) -> RowRange:
        """Return the range of the whole day."""
        return _row_range_of_days(self.day, self.day)


class MinuteDigests(Struct, frozen=True):
    """The digests of one day in both stores, by minute since the epoch."""

    source: Mapping[int, SizedDigest]
    target: Mapping[int, SizedDigest]


class ReadRange(Struct, frozen=True):
    """Rows that one select reads; `is_absent` if the target has no rows in the range."""

    table: str
    row_range: RowRange
    is_absent: bool


def plan_read_ranges(
    days: Iterable[DayToCopy],
    read_minutes: Callable[[DayToCopy], MinuteDigests],
    limits: ChunkLimits,
) -> Iterator[ReadRange]:
    """Combine consecutive absent days; compare the minutes of all other days.

    `days` are sorted. `read_minutes` is called for a day when the plan reaches it.
    """
    run: list[DayToCopy] = []
    for one in days:
        if run and not (
            _is_next_day(run[-1].day, one.day) and _fits_one_chunk([*run, one], limits)
        ):
            yield _read_range_of_days(run)
            run = []
        if one.is_absent and _fits_one_chunk([one], limits):
            run.append(one)
            continue
        if run:
            yield _read_range_of_days(run)
            run = []
        yield from _plan_minutes(one, read_minutes(one), limits)
    if run:
        yield _read_range_of_days(run)


def _is_next_day(day: DayKey, other: DayKey) -> bool:
    """Return whether the days are consecutive: the target might have rows of a day between."""
    return (day.table, day.website_id, day.day + 1) == (other.table, other.website_id, other.day)


def _fits_one_chunk(days: Sequence[DayToCopy], limits: ChunkLimits) -> bool:
    return _chunk_count([one.source for one in days], limits) <= 1


def _chunk_count(sizes: Sequence[SizedDigest], limits: ChunkLimits) -> int:
    rows = sum(one.digest.rows for one in sizes)
    size = sum(one.bytes for one in sizes)
    return max(-(-rows // limits.rows), -(-size // limits.bytes), 1)


def _read_range_of_days(run: Sequence[DayToCopy]) -> ReadRange:
    return ReadRange(run[0].day.table, _row_range_of_days(run[0].day, run[-1].day), is_absent=True)


def _row_range_of_days(first: DayKey, last: DayKey) -> RowRange:
    return RowRange(
        website_id=first.website_id,
        from_ms=first.day * MILLISECONDS_PER_DAY,
        until_ms=(last.day + 1) * MILLISECONDS_PER_DAY,
    )


def _plan_minutes(
    one: DayToCopy, minutes: MinuteDigests, limits: ChunkLimits
) -> Iterator[ReadRange]:
    missing = [
        number
        for number, minute in minutes.source.items()
        if minutes.target.get(number, SizedDigest()).digest != minute.digest
    ]
    for group in _group_minutes(missing, minutes.source, limits):
        parts = _chunk_count([minutes.source[number] for number in group], limits)
        is_absent = minutes.target.keys().isdisjoint(range(group[0], group[-1] + 1))
        for part in range(parts):
            row_range = RowRange(
                website_id=one.day.website_id,
                from_ms=group[0] * MINUTE_MS,
                until_ms=(group[-1] + 1) * MINUTE_MS,
                parts=parts,
                part=part,
            )
            yield ReadRange(one.day.table, row_range, is_absent)


def _group_minutes(
    numbers: Iterable[int], sizes: Mapping[int, SizedDigest], limits: ChunkLimits
) -> Iterator[Sequence[int]]:
    """Group minutes into chunks; a minute that exceeds the limits is a group of its own."""
    group: list[int] = []
    for number in numbers:
        if group and _chunk_count([sizes[one] for one in (*group, number)], limits) > 1:
            yield group
            group = []
        group.append(number)
    if group:
        yield group
