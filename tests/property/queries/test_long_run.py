"""A long run compares every area, and reports a difference with what repeats it."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from testing.chdb import FreshStore
from tests.long_run.areas import CUSTOM, DATA_KINDS, DataKind
from tests.long_run.rounds import Report, RoundName, Tally, new_rounds, parse_round, run_round
from tests.long_run.texts import description_of, summary_of
from tests.property.generators.chances import SeededRandom
from tests.property.generators.query_parts import DRAWN_PARTS, draw_body_with, parts_of
from tests.property.queries import test_results_in_process as custom

PROJECT = Path(__file__).parents[3]
FEW = 2


def wrong_result(*_: object) -> str:
    return "WRONG"


def few_of(kind: DataKind) -> DataKind:
    return kind._replace(areas=[(area, FEW) for area, _ in kind.areas])


def test_rounds_are_of_each_kind_or_of_one() -> None:
    assert {name.kind.name for name in islice(new_rounds(), 12)} == {"rows", "paths"}
    assert {name.kind.name for name in islice(new_rounds("paths"), 12)} == {"paths"}


@pytest.mark.parametrize("kind", DATA_KINDS, ids=lambda kind: kind.name)
def test_round_compares_each_of_its_areas_and_leaves_no_rows(
    kind: DataKind, chdb_store: FreshStore
) -> None:
    report = run_round(RoundName(few_of(kind), 5), chdb_store)

    assert {name: tally.pairs for name, tally in report.areas.items()} == {
        area.name: FEW for area, _ in kind.areas
    }
    assert report.differences == []
    assert chdb_store.rows("SELECT count() FROM events") == [[0]]


def test_round_stops_between_queries_when_the_run_ends(chdb_store: FreshStore) -> None:
    endings = iter((False, False, False, True))

    report = run_round(RoundName(few_of(DATA_KINDS[0]), 5), chdb_store, lambda: next(endings, True))

    assert {name: tally.pairs for name, tally in report.areas.items()} == {
        "custom": FEW,
        "daily rows": 1,
    }


@pytest.mark.slow
def test_command_ends_with_the_pairs_of_its_processes() -> None:
    command = (sys.executable, "-m", "tests.long_run", "--pairs", "1", "--processes", "2")

    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert "pairs, " in done.stdout
    assert ", 0 differences (" in done.stdout
    assert "ms of processor time a pair" in done.stdout
    assert "gave rows" in done.stdout


def test_wrong_result_is_a_difference_that_its_round_repeats(
    chdb_store: FreshStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom, "got_of", wrong_result)
    name = RoundName(DATA_KINDS[0]._replace(areas=[(CUSTOM, 1)]), 7)

    report = run_round(name, chdb_store)
    again = run_round(name, chdb_store)

    (difference,) = report.differences
    assert (difference.round, difference.area, difference.got) == ("rows:7", "custom", "WRONG")
    assert again.differences == report.differences
    assert "--store embedded --round rows:7" in description_of(difference, "embedded")
    assert parse_round("rows:7") == RoundName(DATA_KINDS[0], 7)


def test_new_rounds_have_fresh_seeds_and_parse() -> None:
    rounds = [name for name, _ in zip(new_rounds(), range(8), strict=False)]

    assert len({name.seed for name in rounds}) == 8
    assert {name.kind for name in rounds} == set(DATA_KINDS)
    assert [parse_round(str(name)) for name in rounds] == rounds


@pytest.mark.parametrize("part", DRAWN_PARTS)
def test_part_that_is_drawn_for_certain_is_in_the_body(part: str) -> None:
    assert part in parts_of(draw_body_with(SeededRandom(1), part))


def test_summary_adds_areas_up() -> None:
    report = Report()
    for area in ("custom", "values"):
        report.add(Report(areas={area: Tally(pairs=2, refused=1, with_rows=1, rows=3)}))

    lines = [line.split() for line in summary_of(report).splitlines()]

    assert ["custom", "2", "1", "1", "3", "0", "50.0%"] in lines
    assert ["all", "4", "2", "2", "6", "0", "50.0%"] in lines
