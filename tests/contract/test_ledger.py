"""What every ledger must do."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.ports.event_log import LOG_START, LogPosition
from headrace.ports.ledger import Ledger, LogRange, PartOutcome

FIRST = LogRange(LOG_START, LogPosition(1, 500))
SECOND = LogRange(LogPosition(1, 500), LogPosition(3, 40))

INDEXES = "SELECT name FROM sqlite_master WHERE name = 'seen_by_expiry'"
VERSION_1 = """
    CREATE TABLE ledger (identity TEXT NOT NULL, last_batch INTEGER NOT NULL, intent BLOB);
    INSERT INTO ledger VALUES ('first', 0, NULL);
    CREATE TABLE positions (log TEXT PRIMARY KEY, segment INTEGER NOT NULL, place INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE parts (token TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE seen (digest BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX seen_by_expiry ON seen (expires_ms);
    INSERT INTO seen VALUES (CAST('known' AS BLOB), 100);
    PRAGMA user_version = 1;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger.open(path)
    yield ledger
    ledger.close()


def commit(ledger: Ledger, ranges: dict[str, LogRange], **seen: int) -> None:
    digests = {name.encode(): expires_ms for name, expires_ms in seen.items()}
    batch = ledger.begin(ranges).batch
    ledger.commit(batch, seen=digests, forget_before_ms=0)


def test_new_ledger_knows_nothing(ledger: Ledger) -> None:
    assert (ledger.positions(), ledger.intent(), ledger.parts()) == ({}, None, {})


def test_commit_moves_the_positions_to_the_ends_of_the_ranges(ledger: Ledger) -> None:
    commit(ledger, {"worker-0": FIRST, "worker-1": SECOND})
    commit(ledger, {"worker-0": SECOND})
    assert ledger.positions() == {"worker-0": SECOND.end, "worker-1": SECOND.end}
    assert ledger.intent() is None


def test_commit_returns_the_new_positions(ledger: Ledger) -> None:
    intent = ledger.begin({"worker-0": FIRST})
    moved = ledger.commit(intent.batch, seen={}, forget_before_ms=0)
    assert moved == {"worker-0": FIRST.end}


def test_intent_outlives_the_process_and_moves_nothing(path: Path) -> None:
    before = SqliteLedger.open(path)
    commit(before, {"worker-0": FIRST})
    intent = before.begin({"worker-0": SECOND})
    before.close()
    after = SqliteLedger.open(path)
    assert after.intent() == intent
    assert after.positions() == {"worker-0": FIRST.end}
    after.close()


def test_batches_are_numbered_on_over_restarts(path: Path) -> None:
    numbers: list[int] = []
    for _ in range(3):
        ledger = SqliteLedger.open(path)
        numbers.append(ledger.begin({}).batch)
        ledger.close()
    assert numbers == [1, 2, 3]


def test_batch_that_is_not_under_way_cannot_be_committed(ledger: Ledger) -> None:
    commit(ledger, {"worker-0": FIRST})
    with pytest.raises(ValueError, match="batch 1 is not under way"):
        ledger.commit(1, seen={}, forget_before_ms=0)


def test_seen_digests_come_back_with_their_expiry(ledger: Ledger) -> None:
    commit(ledger, {}, one=100, two=200)
    assert ledger.seen([b"one", b"two", b"three"]) == {b"one": 100, b"two": 200}


def test_digest_seen_again_expires_later(ledger: Ledger) -> None:
    commit(ledger, {}, one=100)
    commit(ledger, {}, one=300)
    assert ledger.seen([b"one"]) == {b"one": 300}


def test_many_digests_are_found_at_once(ledger: Ledger) -> None:
    digests = {number.to_bytes(16, "big"): number for number in range(1, 2_001)}
    ledger.commit(ledger.begin({}).batch, seen=digests, forget_before_ms=0)
    asked = [number.to_bytes(16, "big") for number in range(4_000)]
    assert ledger.seen(asked) == digests


def test_nothing_asked_is_nothing_found(ledger: Ledger) -> None:
    commit(ledger, {}, one=100)
    assert ledger.seen([]) == {}


def test_expired_digests_are_forgotten(ledger: Ledger) -> None:
    commit(ledger, {}, one=100, two=200)
    ledger.commit(ledger.begin({}).batch, seen={}, forget_before_ms=200)
    assert ledger.seen([b"one", b"two"]) == {b"two": 200}


def test_of_many_digests_all_that_expired_are_forgotten_while_as_many_come(ledger: Ledger) -> None:
    old = {number.to_bytes(16, "little"): 100 for number in range(1, 20_001)}
    kept = {number.to_bytes(16, "little"): 900 for number in range(20_001, 25_001)}
    ledger.commit(ledger.begin({}).batch, seen={**old, **kept}, forget_before_ms=0)
    for number in range(40):
        new = {f"new {number}".encode(): 900}
        ledger.commit(ledger.begin({}).batch, seen=new, forget_before_ms=500)
    assert ledger.seen([*old, *kept]) == kept


def test_ledger_of_the_first_version_keeps_what_it_remembers(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
    ledger = SqliteLedger.open(path)
    assert ledger.seen([b"known"]) == {b"known": 100}
    commit(ledger, {"worker-0": FIRST}, new=200)
    assert ledger.positions() == {"worker-0": FIRST.end}
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute(INDEXES).fetchall() == []


def test_parts_are_remembered_until_the_commit(ledger: Ledger) -> None:
    intent = ledger.begin({"worker-0": FIRST})
    ledger.note_part("a", PartOutcome.REFUSED)
    ledger.note_part("b", PartOutcome.STORED)
    ledger.note_part("b", PartOutcome.STORED)
    assert ledger.parts() == {"a": PartOutcome.REFUSED, "b": PartOutcome.STORED}
    ledger.commit(intent.batch, seen={}, forget_before_ms=0)
    assert ledger.parts() == {}


def test_identity_stays_with_the_file_and_differs_between_files(path: Path) -> None:
    identities: list[str] = []
    for name in ("ledger.sqlite", "ledger.sqlite", "another.sqlite"):
        ledger = SqliteLedger.open(path.with_name(name))
        identities.append(ledger.identity())
        ledger.close()
    assert identities[0] == identities[1] != identities[2]


def test_second_opener_is_refused_with_a_sentence(ledger: Ledger, path: Path) -> None:
    assert ledger.intent() is None
    with pytest.raises(OperatorError, match=r"ledger\.sqlite is in use by another process\.$"):
        SqliteLedger.open(path)


def test_file_that_is_no_ledger_is_refused_with_a_sentence(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(OperatorError, match=r"ledger\.sqlite is damaged: "):
        SqliteLedger.open(path)


def test_ledger_of_a_newer_version_is_refused_with_a_sentence(path: Path) -> None:
    SqliteLedger.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(OperatorError, match=r"was written by a newer version of Headrace\.$"):
        SqliteLedger.open(path)


def test_closed_ledger_is_unavailable(path: Path) -> None:
    ledger = SqliteLedger.open(path)
    ledger.close()
    ledger.close()
    with pytest.raises(StoreUnavailable, match="ledger failed"):
        ledger.positions()


def test_everything_that_is_remembered_can_be_told_to_others(ledger: SqliteLedger) -> None:
    commit(ledger, {"worker-0": FIRST}, a=5, b=7)
    commit(ledger, {"worker-0": SECOND}, b=9)
    assert dict(ledger.all_seen()) == {b"a": 5, b"b": 9}
