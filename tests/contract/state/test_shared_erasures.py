"""Erasures that machines share, for SQLite and PostgreSQL, and what each machine makes of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import delete

from headrace.adapters.directory.connection import open_database
from headrace.adapters.directory.sql_directory import SqlDirectory
from headrace.adapters.directory.tables import ERASURES
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.erasure.machines import (
    GONE_MS,
    MAX_CLOCK_SKEW_MS,
    RUNNING_MS,
    ErasingMachines,
    forget_machine,
)
from headrace.erasure.receipt import describe_gone_machine
from headrace.model.audit import AuditAction, AuditedChange
from headrace.model.erasure import SelectorKind, Subject
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.shared_erasures import ErasurePart, Machine

NOON = 1_700_000_000_000
HOUR_MS = 3_600_000
ERASURE = Erasure(
    id="era_1",
    website_id=WebsiteId("web_1"),
    kind=SelectorKind.ANONYMOUS_ID,
    subjects=(Subject(SelectorKind.ANONYMOUS_ID, "ab"), Subject(SelectorKind.PROPERTY, "cd")),
    by="cli ann",
    requested_ms=NOON,
)

MachineMaker = Callable[[str], tuple[ErasingMachines, FileErasures]]


def forget_erasures(location: str | Path) -> None:
    """Delete all erasures and parts, as a restored directory has none of them."""
    database = open_database(location)
    with database.write_engine.begin() as connection:
        connection.execute(delete(ERASURES))
    database.write_engine.dispose()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def make(directory: SqlDirectory, tmp_path: Path, clock: FixedClock) -> MachineMaker:
    """Makes machines with a data directory each."""

    def one(name: str) -> tuple[ErasingMachines, FileErasures]:
        files = FileErasures(tmp_path / name)
        shared = directory.shared_erasures
        return ErasingMachines(shared, files, machine_id=name, clock=clock), files

    return one


def test_the_first_key_is_that_of_all_machines(directory: SqlDirectory) -> None:
    assert directory.shared_erasures.agree_on_key(b"a" * 32) == b"a" * 32
    assert directory.shared_erasures.agree_on_key(b"b" * 32) == b"a" * 32


def test_an_erasure_is_announced_once_without_its_plan(directory: SqlDirectory) -> None:
    shared = directory.shared_erasures
    assert (shared.ids(), shared.get("era_1")) == (frozenset(), None)
    for _ in range(2):
        shared.announce(replace(ERASURE, answers_clean_ms=5, rows={"events": 2}))
    assert (shared.ids(), shared.get("era_1")) == (frozenset({"era_1"}), ERASURE)


def test_the_last_state_of_each_machine_counts(directory: SqlDirectory, clock: FixedClock) -> None:
    shared = directory.shared_erasures
    shared.announce(ERASURE)
    clean = ErasurePart(machine_id="a", clean_ms=1, rows={"events": 2})
    for part in (clean, ErasurePart(machine_id="b"), replace(clean, done_ms=3)):
        shared.put_part("era_1", part)
    assert sorted(shared.parts("era_1"), key=lambda part: part.machine_id) == [
        replace(clean, done_ms=3),
        ErasurePart(machine_id="b"),
    ]
    shared.note_seen("a")
    clock.advance(7)
    shared.note_seen("a")
    assert shared.machines() == (Machine("a", NOON, NOON + 7),)


def test_nothing_of_it_makes_workers_read_the_directory_again(directory: SqlDirectory) -> None:
    before = directory.revision()
    shared = directory.shared_erasures
    shared.agree_on_key(bytes(32))
    shared.note_seen("a")
    shared.announce(ERASURE)
    shared.put_part("era_1", ErasurePart(machine_id="a"))
    assert directory.revision() == before


def test_machines_use_one_key_and_adopt_what_others_announce_once(make: MachineMaker) -> None:
    (first, first_files), (second, second_files) = make("a"), make("b")
    first.join()
    second.join()
    assert second_files.key() == first_files.key()
    first_files.put(ERASURE)
    first.note_clean(ERASURE)
    assert (first.adopt(), second.adopt(), second.adopt()) == ([], [ERASURE], [])
    assert second_files.all() == [ERASURE]


def test_erasures_under_another_key_are_not_given_up(make: MachineMaker) -> None:
    (first, _), (second, second_files) = make("a"), make("b")
    second_files.key()
    second_files.put(ERASURE)
    first.join()
    with pytest.raises(StoreUnavailable, match="under another key"):
        second.join()


def test_a_machine_that_joins_later_knows_earlier_erasures_as_done(
    make: MachineMaker, clock: FixedClock
) -> None:
    (first, _), (later, later_files) = make("a"), make("b")
    first.join()
    first.note_clean(ERASURE)
    clock.advance(HOUR_MS)
    assert later.adopt() == []
    assert [one.is_done for one in later_files.all()] == [True]
    first.note_files_clean(ERASURE)
    assert first.are_files_clean(ERASURE)


@pytest.mark.parametrize(("behind_ms", "takes_part"), [(30_000, True), (HOUR_MS, False)])
def test_a_machine_takes_part_where_no_clock_is_far_ahead_of_its_own(
    behind_ms: int, takes_part: bool, make: MachineMaker, directory: SqlDirectory, tmp_path: Path
) -> None:
    (first, _) = make("a")
    first.join()
    behind = ErasingMachines(
        directory.shared_erasures,
        FileErasures(tmp_path / "b"),
        machine_id="b",
        clock=FixedClock(NOON - behind_ms),
    )
    if takes_part:
        behind.join()
        return
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refused:
            behind.join()
        reason = "the clock of the machine a is 3600 s ahead of this machine's clock"
        assert str(refused.value) == reason


def test_a_machine_that_is_gone_with_its_clock_ahead_delays_nothing_once_it_is_forgotten(
    make: MachineMaker, clock: FixedClock, directory: SqlDirectory
) -> None:
    (first, _), (gone, _) = make("a"), make("b")
    clock.advance(HOUR_MS)
    gone.join()
    clock.advance(-HOUR_MS)
    with pytest.raises(StoreUnavailable, match="the clock of the machine b is 3600 s ahead"):
        first.join()
    forget_machine(directory.shared_erasures, "b", clock=clock)
    first.note_clean(ERASURE)
    first.note_files_clean(ERASURE)
    assert (first.are_answers_clean(ERASURE), first.are_files_clean(ERASURE)) == (True, True)
    assert first.describe_absent(ERASURE) == ""
    (gone_text,) = first.with_all_parts(ERASURE).by_hand
    assert gone_text == (
        "The machine b was forgotten and has not erased: its data directory may contain the rows. "
        "It erases them when it is started again."
    )


@pytest.mark.parametrize("away_ms", [10, 2 * HOUR_MS])
@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS])
def test_a_forgotten_machine_that_is_started_again_erases_what_it_has(
    ahead_ms: int, away_ms: int, make: MachineMaker, clock: FixedClock, directory: SqlDirectory
) -> None:
    (first, _), (gone, _) = make("a"), make("b")
    clock.advance(ahead_ms)
    gone.join()
    clock.advance(RUNNING_MS + 1 - ahead_ms)
    forget_machine(directory.shared_erasures, "b", clock=clock)
    later = replace(ERASURE, requested_ms=clock.now_ms())
    first.note_clean(later)
    first.note_files_clean(later)
    assert first.are_files_clean(later)
    (back, _) = make("b")
    clock.advance(away_ms)
    assert back.adopt() == [later]
    assert not first.are_files_clean(later)


def test_forgetting_a_machine_has_one_line_in_the_audit_log(
    make: MachineMaker, clock: FixedClock, directory: SqlDirectory
) -> None:
    (gone, _) = make("b")
    gone.join()
    clock.advance(RUNNING_MS + 1)
    revision = directory.revision()
    shared = directory.acting_as("cli ann").shared_erasures
    for _ in range(2):
        forget_machine(shared, "b", clock=clock)
    assert shared.machines() == (Machine("b", 0, 0),)
    assert directory.revision() == revision
    (line,) = directory.audit_log.lines(limit=10)
    assert (line.by, line.change) == (
        "cli ann",
        AuditedChange(
            action=AuditAction.MACHINE_FORGET,
            object_id="b",
            before={
                "id": "b",
                "firstSeen": "2023-11-14T22:13:20.000Z",
                "lastSeen": "2023-11-14T22:13:20.000Z",
            },
        ),
    )


RUNNING = "the machine b runs, or has run in the last 20 seconds: stop it first"


@pytest.mark.parametrize(
    ("machine_id", "seen_ago_ms", "reason"),
    [
        ("c", RUNNING_MS + 1, "no machine has the name 'c'; known are: b"),
        ("b", RUNNING_MS, RUNNING),
        ("b", -MAX_CLOCK_SKEW_MS, RUNNING),
    ],
    ids=["unknown", "just seen", "clock a little ahead"],
)
def test_a_machine_that_is_unknown_or_runs_is_not_forgotten(
    machine_id: str, seen_ago_ms: int, reason: str, clock: FixedClock, directory: SqlDirectory
) -> None:
    directory.shared_erasures.note_seen("b")
    clock.advance(seen_ago_ms)
    before = directory.shared_erasures.machines()
    with pytest.raises(OperatorError) as refused:
        forget_machine(directory.shared_erasures, machine_id, clock=clock)
    assert str(refused.value) == reason
    assert directory.shared_erasures.machines() == before
    assert directory.audit_log.lines(limit=10) == ()


def test_a_machine_that_was_seen_meanwhile_is_not_forgotten(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    shared = directory.shared_erasures
    shared.note_seen("b")
    (read,) = shared.machines()
    clock.advance(HOUR_MS)
    shared.note_seen("b")
    assert not shared.forget_machine(read)
    assert shared.machines() == (Machine("b", NOON, NOON + HOUR_MS),)
    assert directory.audit_log.lines(limit=10) == ()


def test_a_machine_whose_clock_was_ahead_at_first_is_waited_for(
    make: MachineMaker, clock: FixedClock
) -> None:
    (first, _), (ahead, _) = make("a"), make("b")
    clock.advance(HOUR_MS)
    ahead.join()
    clock.advance(-HOUR_MS + RUNNING_MS)
    ahead.join()
    first.join()
    first.note_clean(ERASURE)
    first.note_files_clean(ERASURE)
    assert not first.are_files_clean(ERASURE)
    assert ahead.adopt() == [ERASURE]


def test_answers_are_clean_when_every_running_machine_says_so(
    make: MachineMaker, clock: FixedClock
) -> None:
    (first, _), (second, _), (away, _) = make("a"), make("b"), make("c")
    for machine in (second, away):
        machine.join()
    clock.advance(RUNNING_MS + 1)
    for machine in (first, second):
        machine.join()
    first.note_clean(ERASURE)
    assert not first.are_answers_clean(ERASURE)
    second.note_clean(ERASURE)
    assert first.are_answers_clean(ERASURE)


def test_files_are_clean_when_every_machine_says_so_but_those_that_are_gone(
    make: MachineMaker, clock: FixedClock
) -> None:
    (first, _), (second, _), (away, _) = make("a"), make("b"), make("c")
    for machine in (first, second, away):
        machine.join()
    first.note_clean(mine := replace(ERASURE, rows={"events": 2, "quarantine": 0}))
    first.note_files_clean(mine)
    second.note_files_clean(replace(ERASURE, rows={"events": 1, "quarantine": 3}))
    assert not first.are_files_clean(ERASURE)
    assert first.describe_absent(ERASURE) == ""
    clock.advance(RUNNING_MS + 1)
    assert first.describe_absent(ERASURE) == (
        "the machine c, seen last at 2023-11-14T22:13:20Z, has not erased yet"
    )
    clock.advance(GONE_MS)
    assert first.are_files_clean(ERASURE)
    assert first.with_all_parts(mine) == replace(
        ERASURE,
        rows={"events": 3, "quarantine": 3},
        by_hand=(describe_gone_machine("c", "2023-11-14T22:13:20Z"),),
    )


def test_what_a_restored_directory_lacks_of_an_erasure_is_announced_again(
    make: MachineMaker, location: str | Path
) -> None:
    (first, _), (second, _) = make("a"), make("b")
    for machine in (first, second):
        machine.join()
    first.note_clean(ERASURE)
    forget_erasures(location)
    assert not first.are_answers_clean(ERASURE)
    assert second.adopt() == [ERASURE]
    second.note_clean(ERASURE)
    assert first.are_answers_clean(ERASURE)
    forget_erasures(location)
    first.note_files_clean(ERASURE)
    second.note_files_clean(ERASURE)
    forget_erasures(location)
    assert not first.are_files_clean(ERASURE)
    assert second.are_files_clean(ERASURE)
    assert first.are_files_clean(ERASURE)
