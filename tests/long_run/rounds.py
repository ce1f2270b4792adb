"""One round: a drawn data set in a store, and queries of several areas over it."""

import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from testing.tables import Tables
from tests.e2e.query.queries import alike
from tests.long_run.areas import CUSTOM, DATA_KINDS, Area, Case, DataKind
from tests.oracle import Stored
from tests.property.generators.chances import SeededRandom
from tests.property.generators.query_cases import Body
from tests.property.generators.query_parts import parts_of
from tests.property.generators.shrink import minimize
from tests.property.queries.test_results_in_process import insert, remaining

_SEEDS = 2**64


class RoundName(NamedTuple):
    """What repeats a round: the kind of its data, and the seed of all draws."""

    kind: DataKind
    seed: int

    def __str__(self) -> str:
        return f"{self.kind.name}:{self.seed}"


class Difference(NamedTuple):
    """A query whose result is not the oracle's."""

    round: str
    area: str
    number: int
    body: Body
    case: Case
    got: Any
    expected: Any


@dataclass
class Tally:
    """Counts of the pairs of an area or of a part of custom queries."""

    pairs: int = 0
    refused: int = 0
    with_rows: int = 0
    rows: int = 0
    differences: int = 0

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


@dataclass
class Report:
    """What rounds have found: tallies by area, and by part of custom queries."""

    areas: dict[str, Tally] = field(default_factory=dict[str, Tally])
    parts: dict[str, Tally] = field(default_factory=dict[str, Tally])
    codes: Counter[str] = field(default_factory=Counter[str])
    differences: list[Difference] = field(default_factory=list[Difference])
    rounds: int = 0

    @property
    def pairs(self) -> int:
        """The number of compared pairs."""
        return sum(tally.pairs for tally in self.areas.values())

    def add(self, other: "Report") -> None:
        """Add what other rounds have found."""
        for mine, others in ((self.areas, other.areas), (self.parts, other.parts)):
            for name, tally in others.items():
                mine.setdefault(name, Tally()).add(tally)
        self.codes += other.codes
        self.differences += other.differences
        self.rounds += other.rounds


def new_rounds(only: str | None = None) -> Iterator[RoundName]:
    """Yield rounds with fresh seeds without end, of one kind or of all.

    The kind with more areas comes more often.
    """
    seeds = random.SystemRandom()
    rows, paths = DATA_KINDS
    while True:
        for kind in (*[rows] * 5, paths):
            if only in (None, kind.name):
                yield RoundName(kind, seeds.randrange(_SEEDS))


def parse_round(text: str) -> RoundName:
    """Return the round of a text that `str` gave. Raises `ValueError`."""
    name, _, seed = text.partition(":")
    kinds = {kind.name: kind for kind in DATA_KINDS}
    if name not in kinds or not seed.isdecimal():
        raise ValueError(f"no round: {text!r}")
    return RoundName(kinds[name], int(seed))


def run_round(
    name: RoundName, tables: Tables, is_ending: Callable[[], bool] = lambda: False
) -> Report:
    """Store the data set of a round in empty tables, compare its queries, and empty them.

    Once `is_ending` returns true, no more of them are run.
    """
    random_source = SeededRandom(name.seed)
    stored = name.kind.draw(random_source)
    insert(tables, stored)
    report = Report(rounds=1)
    for area, count in name.kind.areas:
        for number in range(count):
            if is_ending():
                break
            case = area.draw(random_source, stored)
            _compare(
                report, _Pair(area, case, tables, remaining(stored, case.cutoffs)), name, number
            )
    tables.empty()
    return report


class _Pair(NamedTuple):
    """A query, and what it is run over."""

    area: Area
    case: Case
    tables: Tables
    left: Stored

    def got(self, body: Body) -> Any:
        return _result(lambda: self.area.got(self.tables, self.case._replace(body=body)))

    def expected(self, body: Body) -> Any:
        return _result(lambda: self.area.expected(self.left, self.case._replace(body=body)))

    def is_wrong(self, body: Body) -> bool:
        return not alike(self.got(body), self.expected(body))


class _Failed(str):
    """The traceback of what should have returned a result."""

    __slots__ = ()


def _result(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception:  # noqa: BLE001 - whatever the engine or the oracle raises is a difference
        return _Failed(traceback.format_exc())


def _compare(report: Report, pair: _Pair, name: RoundName, number: int) -> None:
    body = pair.case.body
    got, expected = pair.got(body), pair.expected(body)
    is_wrong = isinstance(expected, _Failed) or not alike(got, expected)
    tally = _tally(pair.area, expected, is_wrong=is_wrong)
    report.areas.setdefault(pair.area.name, Tally()).add(tally)
    if isinstance(expected, str):
        report.codes[f"{pair.area.name}: {expected}"] += 1
    if pair.area is CUSTOM:
        for part in parts_of(body):
            report.parts.setdefault(part, Tally()).add(_of_part(part, tally, expected))
    if is_wrong:
        shown = _minimized(pair)
        report.differences.append(
            Difference(
                str(name),
                pair.area.name,
                number,
                shown,
                pair.case,
                pair.got(shown),
                pair.expected(shown),
            )
        )


def _tally(area: Area, expected: Any, *, is_wrong: bool) -> Tally:
    if isinstance(expected, str):
        return Tally(pairs=1, refused=1, differences=int(is_wrong))
    rows = area.count_rows(expected)
    return Tally(pairs=1, with_rows=int(rows > 0), rows=rows, differences=int(is_wrong))


def _of_part(part: str, tally: Tally, expected: Any) -> Tally:
    """Count for `others` only the rows over other groups."""
    if part != "others" or tally.refused:
        return tally
    rows: Sequence[Any] = expected[4] or ()
    return Tally(1, 0, int(bool(rows)), len(rows), tally.differences)


def _minimized(pair: _Pair) -> Body:
    """Return a smaller body that is wrong, too; without parts it may be none for the oracle."""

    def is_still_wrong(body: Body) -> bool:
        return not isinstance(pair.expected(body), _Failed) and pair.is_wrong(body)

    is_valid = not isinstance(pair.expected(pair.case.body), _Failed)
    return minimize(pair.case.body, is_still_wrong) if is_valid else pair.case.body
