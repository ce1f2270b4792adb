"""In which readings the rows of days that differ are copied: as few as the bounds allow."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from headrace.adapters.store_migration.selects import MINUTE_MS, Stretch
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.migration import Day, Figures

NOTHING: Final = Figures()


class PieceBounds(Struct, frozen=True):
    """How much is read and sent at once. A piece becomes one part of its table."""

    rows: int = 100_000
    bytes: int = 33_554_432


class Sized(Struct, frozen=True):
    """Figures, and the bytes that the rows take in memory."""

    figures: Figures = NOTHING
    bytes: int = 0


class WantedDay(Struct, frozen=True):
    """A day of which the target lacks rows; `is_new` where it has none of it."""

    day: Day
    source: Sized
    is_new: bool

    def stretch(self) -> Stretch:
        """Return the whole day."""
        return _days(self.day, self.day)


class Minutes(Struct, frozen=True):
    """A day in both stores, by the minute since the epoch."""

    source: Mapping[int, Sized]
    target: Mapping[int, Sized]


class Reading(Struct, frozen=True):
    """Rows that are read at once; the target has none of them where the stretch `is_new`."""

    table: str
    stretch: Stretch
    is_new: bool


def plan_readings(
    days: Iterable[WantedDay], minutes_of: Callable[[WantedDay], Minutes], bounds: PieceBounds
) -> Iterator[Reading]:
    """Put new days that follow each other together; look at the minutes of all others.

    `days` are in order. The minutes of a day are asked for when its turn has come.
    """
    run: list[WantedDay] = []
    for one in days:
        if run and not (_follows(run[-1].day, one.day) and _fits([*run, one], bounds)):
            yield _whole_days(run)
            run = []
        if one.is_new and _fits([one], bounds):
            run.append(one)
            continue
        if run:
            yield _whole_days(run)
            run = []
        yield from _by_minutes(one, minutes_of(one), bounds)
    if run:
        yield _whole_days(run)


def _follows(day: Day, other: Day) -> bool:
    """Tell whether no day lies between them: it might be one that the target has."""
    return (day.table, day.website_id, day.day + 1) == (other.table, other.website_id, other.day)


def _fits(days: Sequence[WantedDay], bounds: PieceBounds) -> bool:
    return _parts([one.source for one in days], bounds) <= 1


def _parts(sizes: Sequence[Sized], bounds: PieceBounds) -> int:
    rows = sum(one.figures.rows for one in sizes)
    size = sum(one.bytes for one in sizes)
    return max(-(-rows // bounds.rows), -(-size // bounds.bytes), 1)


def _whole_days(run: Sequence[WantedDay]) -> Reading:
    return Reading(run[0].day.table, _days(run[0].day, run[-1].day), is_new=True)


def _days(first: Day, last: Day) -> Stretch:
    return Stretch(
        website_id=first.website_id,
        from_ms=first.day * MILLISECONDS_PER_DAY,
        until_ms=(last.day + 1) * MILLISECONDS_PER_DAY,
    )


def _by_minutes(one: WantedDay, minutes: Minutes, bounds: PieceBounds) -> Iterator[Reading]:
    missing = [
        number
        for number, minute in minutes.source.items()
        if minutes.target.get(number, Sized()).figures != minute.figures
    ]
    for together in _together(missing, minutes.source, bounds):
        parts = _parts([minutes.source[number] for number in together], bounds)
        is_new = minutes.target.keys().isdisjoint(range(together[0], together[-1] + 1))
        for part in range(parts):
            stretch = Stretch(
                website_id=one.day.website_id,
                from_ms=together[0] * MINUTE_MS,
                until_ms=(together[-1] + 1) * MINUTE_MS,
                parts=parts,
                part=part,
            )
            yield Reading(one.day.table, stretch, is_new)


def _together(
    numbers: Iterable[int], sizes: Mapping[int, Sized], bounds: PieceBounds
) -> Iterator[Sequence[int]]:
    """Put minutes together to what fits; one that is more than that stands alone."""
    taken: list[int] = []
    for number in numbers:
        if taken and _parts([sizes[one] for one in (*taken, number)], bounds) > 1:
            yield taken
            taken = []
        taken.append(number)
    if taken:
        yield taken
