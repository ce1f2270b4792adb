"""The contract of every ledger."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.ports.event_log import LOG_START, LogOffset
from headrace.ports.ledger import Ledger, LogRange, PartOutcome, RequeuedItem

FIRST = LogRange(LOG_START, LogOffset(1, 500))
SECOND = LogRange(LogOffset(1, 500), LogOffset(3, 40))

INDEXES = "SELECT name FROM sqlite_master WHERE name = 'seen_by_expiry'"


def key(name: str) -> bytes:
    """Return what stands for the digest of an idempotency key."""
    return name.encode().ljust(32, b"\0")


VERSION_1 = f"""
    CREATE TABLE ledger (identity TEXT NOT NULL, last_batch INTEGER NOT NULL, intent BLOB);
    INSERT INTO ledger VALUES ('first', 0, NULL);
    CREATE TABLE positions (log TEXT PRIMARY KEY, segment INTEGER NOT NULL, place INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE parts (token TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE seen (digest BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX seen_by_expiry ON seen (expires_ms);
    INSERT INTO seen VALUES (x'{key("known").hex()}', 100);
    PRAGMA user_version = 1;
"""
VERSION_2 = VERSION_1 + "DROP INDEX seen_by_expiry; PRAGMA user_version = 2;"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger.open(path)
    yield ledger
    ledger.close()


def commit(ledger: Ledger, ranges: dict[str, LogRange], **new_digests: int) -> None:
    digests = {key(name): expires_ms for name, expires_ms in new_digests.items()}
    batch = ledger.begin(ranges).batch
    ledger.commit(batch, new_digests=digests, forget_before_ms=0)


IDENTITIES = {"events": "a", "errors": "b"}


def test_bound_store_and_its_losses_are_known_until_accepted(
    ledger: SqliteLedger, path: Path
) -> None:
    commit(ledger, {"worker-0": FIRST}, known=100)
    ledger.bind_store({"events": "old"})
    ledger.bind_store(IDENTITIES, losses=["the table events is new"])
    assert (ledger.table_identities(), ledger.losses()) == (IDENTITIES, ["the table events is new"])
    assert ledger.stored_offsets() == {"worker-0": FIRST.end}
    ledger.close()
    with closing(SqliteLedger.open(path)) as again:
        assert again.losses() == ["the table events is new"]
        again.accept_losses()
        assert (again.table_identities(), again.losses()) == (IDENTITIES, [])


def test_reload_forgets_offsets_digests_and_the_pending_batch(ledger: SqliteLedger) -> None:
    commit(ledger, {"worker-0": FIRST}, known=100)
    pending = ledger.begin({"worker-0": SECOND})
    ledger.record_part("token", PartOutcome.STORED)
    ledger.bind_store(IDENTITIES, reload=True)
    assert (ledger.stored_offsets(), ledger.pending_batch(), ledger.parts()) == ({}, None, {})
    assert ledger.known_digests([key("known")]) == {}
    assert ledger.begin({"worker-0": FIRST}).batch == pending.batch + 1


def test_requeued_items_are_known_until_the_next_reload(ledger: SqliteLedger, path: Path) -> None:
    items = [
        RequeuedItem("worker-0", LogOffset(1, 30), 0, 100),
        RequeuedItem("worker-0", LogOffset(1, 30), 1, 100),
    ]
    ledger.bind_store(IDENTITIES, reload=True, requeued=[*items, items[0]])
    commit(ledger, {"worker-0": FIRST})
    ledger.bind_store(IDENTITIES)
    ledger.close()
    with closing(SqliteLedger.open(path)) as again:
        assert again.requeued_items() == items
        again.bind_store(IDENTITIES, reload=True)
        assert again.requeued_items() == []


def test_new_ledger_knows_nothing(ledger: Ledger) -> None:
    assert (ledger.stored_offsets(), ledger.pending_batch(), ledger.parts()) == ({}, None, {})
    assert ledger.requeued_items() == []


def test_commit_moves_the_offsets_to_the_ends_of_the_ranges(ledger: Ledger) -> None:
    commit(ledger, {"worker-0": FIRST, "worker-1": SECOND})
    commit(ledger, {"worker-0": SECOND})
    assert ledger.stored_offsets() == {"worker-0": SECOND.end, "worker-1": SECOND.end}
    assert ledger.pending_batch() is None


def test_commit_returns_the_new_offsets(ledger: Ledger) -> None:
    pending_batch = ledger.begin({"worker-0": FIRST})
    moved = ledger.commit(pending_batch.batch, new_digests={}, forget_before_ms=0)
    assert moved == {"worker-0": FIRST.end}


def test_pending_batch_survives_a_restart_and_moves_no_offset(path: Path) -> None:
    before = SqliteLedger.open(path)
    commit(before, {"worker-0": FIRST})
    pending_batch = before.begin({"worker-0": SECOND})
    before.close()
    after = SqliteLedger.open(path)
    assert after.pending_batch() == pending_batch
    assert after.stored_offsets() == {"worker-0": FIRST.end}
    after.close()


def test_batch_numbers_continue_after_a_restart(path: Path) -> None:
    numbers: list[int] = []
    for _ in range(3):
        ledger = SqliteLedger.open(path)
        numbers.append(ledger.begin({}).batch)
        ledger.close()
    assert numbers == [1, 2, 3]


def test_batch_that_is_not_pending_cannot_be_committed(ledger: Ledger) -> None:
    commit(ledger, {"worker-0": FIRST})
    with pytest.raises(ValueError, match="batch 1 is not pending"):
        ledger.commit(1, new_digests={}, forget_before_ms=0)


def test_known_digests_have_their_expiry(ledger: Ledger) -> None:
    commit(ledger, {}, one=100, two=200)
    assert ledger.known_digests([key("one"), key("two"), key("three")]) == {
        key("one"): 100,
        key("two"): 200,
    }


def test_digest_seen_again_expires_later(ledger: Ledger) -> None:
    commit(ledger, {}, one=100)
    commit(ledger, {}, one=300)
    assert ledger.known_digests([key("one")]) == {key("one"): 300}


def test_many_digests_are_found_in_one_lookup(ledger: Ledger) -> None:
    digests = {number.to_bytes(16, "big"): number for number in range(1, 2_001)}
    ledger.commit(ledger.begin({}).batch, new_digests=digests, forget_before_ms=0)
    sent_query = [number.to_bytes(16, "big") for number in range(4_000)]
    assert ledger.known_digests(sent_query) == digests


def test_empty_lookup_finds_nothing(ledger: Ledger) -> None:
    commit(ledger, {}, one=100)
    assert ledger.known_digests([]) == {}


def test_expired_digests_are_forgotten(ledger: Ledger) -> None:
    commit(ledger, {}, one=100, two=200)
    ledger.commit(ledger.begin({}).batch, new_digests={}, forget_before_ms=200)
    assert ledger.known_digests([key("one"), key("two")]) == {key("two"): 200}


def test_all_expired_digests_are_deleted_while_new_ones_arrive(ledger: Ledger) -> None:
    old = {number.to_bytes(32, "little"): 100 for number in range(1, 20_001)}
    kept = {number.to_bytes(32, "little"): 900 for number in range(20_001, 25_001)}
    ledger.commit(ledger.begin({}).batch, new_digests={**old, **kept}, forget_before_ms=0)
    for number in range(40):
        new = {f"new {number}".encode(): 900}
        ledger.commit(ledger.begin({}).batch, new_digests=new, forget_before_ms=500)
    assert ledger.known_digests([*old, *kept]) == kept


EVENT_ID, EVENT_ID_WITHOUT_KEY = b"known event id\0\0", b"known event id\0\1"
IDEMPOTENCY_KEY = b"k" * 32


@pytest.mark.parametrize("schema", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_event_ids_of_older_ledgers_are_known_with_and_without_a_key(
    path: Path, schema: str
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
        connection.execute(
            "INSERT INTO seen VALUES (?, 300), (?, 400)", (EVENT_ID, IDEMPOTENCY_KEY)
        )
        connection.commit()
    for _ in range(2):
        ledger = SqliteLedger.open(path)
        assert dict(ledger.all_known_digests()) == {
            key("known"): 100,
            EVENT_ID: 300,
            EVENT_ID_WITHOUT_KEY: 300,
            IDEMPOTENCY_KEY: 400,
        }
        ledger.close()


def test_ledger_of_the_first_version_keeps_its_digests(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
    ledger = SqliteLedger.open(path)
    assert ledger.known_digests([key("known")]) == {key("known"): 100}
    commit(ledger, {"worker-0": FIRST}, new=200)
    assert ledger.stored_offsets() == {"worker-0": FIRST.end}
    assert ledger.requeued_items() == []
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)
        assert connection.execute(INDEXES).fetchall() == []


def test_imported_offsets_are_recorded_when_a_batch_begins_and_only_grow(
    ledger: SqliteLedger, path: Path
) -> None:
    first = ledger.begin({"import": FIRST}, imported={7: b"\0" * 7 + b"5", 8: b"\0" * 8})
    assert ledger.imported_offsets() == {7: b"\0" * 7 + b"5", 8: b"\0" * 8}
    ledger.commit(first.batch, new_digests={}, forget_before_ms=0)
    ledger.begin({"import": FIRST}, imported={7: b"\0" * 7 + b"4", 8: b"\1" * 8})
    ledger.bind_store({}, reload=True)
    ledger.close()
    reopened = SqliteLedger.open(path)
    assert reopened.imported_offsets() == {7: b"\0" * 7 + b"5", 8: b"\1" * 8}
    reopened.close()


def test_parts_are_remembered_until_the_commit(ledger: Ledger) -> None:
    pending_batch = ledger.begin({"worker-0": FIRST})
    ledger.record_part("a", PartOutcome.REJECTED)
    ledger.record_part("b", PartOutcome.STORED)
    ledger.record_part("b", PartOutcome.STORED)
    assert ledger.parts() == {"a": PartOutcome.REJECTED, "b": PartOutcome.STORED}
    ledger.commit(pending_batch.batch, new_digests={}, forget_before_ms=0)
    assert ledger.parts() == {}


def test_identity_stays_with_the_file_and_differs_between_files(path: Path) -> None:
    identities: list[str] = []
    for name in ("ledger.sqlite", "ledger.sqlite", "another.sqlite"):
        ledger = SqliteLedger.open(path.with_name(name))
        identities.append(ledger.identity())
        ledger.close()
    assert identities[0] == identities[1] != identities[2]


def test_second_opener_gets_a_clear_error(ledger: Ledger, path: Path) -> None:
    assert ledger.pending_batch() is None
    with pytest.raises(OperatorError, match=r"ledger\.sqlite is in use by another process$"):
        SqliteLedger.open(path)


def test_file_that_is_not_a_ledger_gets_a_clear_error(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(OperatorError, match=r"ledger\.sqlite is damaged: "):
        SqliteLedger.open(path)


def test_ledger_of_a_newer_version_gets_a_clear_error(path: Path) -> None:
    SqliteLedger.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(OperatorError) as rejection:
        SqliteLedger.open(path)
    assert str(rejection.value) == (
        f"the ledger {path} was written by a newer version of Headrace (its schema is 99, this "
        "version supports 7): use that version"
    )


def test_closed_ledger_is_unavailable(path: Path) -> None:
    ledger = SqliteLedger.open(path)
    ledger.close()
    ledger.close()
    with pytest.raises(StoreUnavailable, match="cannot use the loader's ledger"):
        ledger.stored_offsets()


def test_all_known_digests_can_be_exported(ledger: SqliteLedger) -> None:
    commit(ledger, {"worker-0": FIRST}, a=5, b=7)
    commit(ledger, {"worker-0": SECOND}, b=9)
    assert dict(ledger.all_known_digests()) == {key("a"): 5, key("b"): 9}
