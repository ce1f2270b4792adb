"""A store that was created again is loaded again, or what it lacks is recorded."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import structlog

from headrace.adapters.engine.store_recovery import StoreRecovery
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.files.metadata_copy import copy_path
from headrace.adapters.store.chdb.table_identity import IDENTITY_FILE, ensure_identities
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.ports.event_log import LOG_START, LogOffset
from headrace.ports.ledger import LogRange, RequeuedItem

TABLES: Sequence[str] = ("events", "errors", "performance")
LOADED = LogOffset(2, 300)
LOST_FOREVER = (
    "the table {} was missing and was created again without the events that the logs no longer "
    "have: restore a backup, or accept the loss with `headrace verify --accept-loss`"
)
LOST_EARLIER = LOST_FOREVER.replace(
    "the events that the logs no longer have", "the events stored earlier"
)


class FakeStore:
    """The tables of a store, each a directory; answers what the recovery asks chDB for."""

    def __init__(self, root: Path) -> None:
        self.root = self.directory = root
        self.rows = dict.fromkeys(TABLES, 0)
        self.is_away = False

    def create_tables(self) -> None:
        for table in TABLES:
            (self.root / table).mkdir(parents=True, exist_ok=True)
        ensure_identities({table: self.root / table for table in TABLES})

    def lose(self, *tables: str) -> None:
        """Delete tables, which are then created again."""
        for table in tables:
            (self.root / table / IDENTITY_FILE).unlink()
            self.rows[table] = 0
        self.create_tables()

    def execute(self, sql: str) -> list[list[Any]]:
        if self.is_away:
            raise ClickHouseError(210, "NETWORK_ERROR")
        if "system.tables" in sql:
            return [[table, str(self.root / table)] for table in TABLES]
        (table,) = (table for table in TABLES if f"`{table}`" in sql)
        if sql.startswith("DROP TABLE"):
            (self.root / table / IDENTITY_FILE).unlink()
            self.rows[table] = 0
            return []
        return [[1]] if self.rows[table] else []


class FakeLogs:
    """The logs of one worker: whole, or without their first segments."""

    def __init__(self) -> None:
        self.is_whole = True
        self.published: list[Mapping[str, LogOffset]] = []

    def has_whole_history(self, log: str) -> bool:
        assert log == "worker-0"
        return self.is_whole

    def publish_loaded_offsets(self, offsets: Mapping[str, LogOffset]) -> None:
        self.published.append(dict(offsets))


class Machine:
    """A store, its ledger and its logs, after a first start that loaded events."""

    def __init__(self, root: Path) -> None:
        self.store, self.logs = FakeStore(root / "store"), FakeLogs()
        self.store.create_tables()
        self.ledger = SqliteLedger.open(root / "ledger.sqlite")
        self.requeued: Sequence[RequeuedItem] | OSError = ()

    def load(self) -> None:
        batch = self.ledger.begin({"worker-0": LogRange(LOG_START, LOADED)}).batch
        self.ledger.commit(batch, new_digests={}, forget_before_ms=0)
        self.store.rows = dict.fromkeys(TABLES, 5)

    def start(self, *, can_reload: bool = True) -> StoreRecovery:
        recovery = StoreRecovery(
            self.store,  # type: ignore[arg-type]  # the part of chDB that the recovery uses
            ledger=self.ledger,
            logs=self.logs,
            read_requeued_items=self.read_requeued_items,
            can_reload=can_reload,
            log=get_logger(),
        )
        recovery.reconcile(self.store.create_tables)
        return recovery

    def read_requeued_items(self) -> Sequence[RequeuedItem]:
        if isinstance(self.requeued, OSError):
            raise self.requeued
        return self.requeued

    def identities(self) -> dict[str, str]:
        return {
            table: (self.store.root / table / IDENTITY_FILE).read_text().strip() for table in TABLES
        }


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with closing(machine.ledger):
        machine.start()
        machine.load()
        machine.logs.published.clear()
        yield machine


def test_tables_of_the_ledger_are_complete_and_nothing_is_loaded_again(machine: Machine) -> None:
    recovery = machine.start()
    recovery.check_complete()
    assert recovery.is_complete
    assert machine.ledger.table_identities() == machine.identities()
    assert machine.logs.published == [{"worker-0": LOADED}]


def test_store_created_again_is_loaded_from_whole_logs(machine: Machine) -> None:
    machine.store.lose(*TABLES)
    with structlog.testing.capture_logs() as lines:
        recovery = machine.start()
    assert recovery.is_complete
    assert machine.ledger.stored_offsets() == {}
    assert machine.ledger.table_identities() == machine.identities()
    assert machine.logs.published == [{}]
    assert lines == [
        {
            "event": "store_created_again",
            "log_level": "error",
            "tables": sorted(TABLES),
            "truncated_logs": [],
        }
    ]


def test_items_that_were_retried_are_passed_over_where_they_were_rejected(machine: Machine) -> None:
    machine.requeued = [RequeuedItem("worker-0", LogOffset(1, 30), 2, 1_750_000_000_000)]
    machine.start()
    assert machine.ledger.requeued_items() == []
    machine.store.lose(*TABLES)
    machine.start()
    assert machine.ledger.requeued_items() == machine.requeued


def test_nothing_is_loaded_again_until_the_log_of_retried_entries_can_be_read(
    machine: Machine,
) -> None:
    machine.store.lose(*TABLES)
    machine.requeued = OSError(errno.EIO, "Input/output error")
    with pytest.raises(StoreUnavailable, match=r"^cannot read the store: input/output error$"):
        machine.start()
    assert machine.ledger.stored_offsets() == {"worker-0": LOADED}
    machine.requeued = ()
    assert machine.start().is_complete
    assert machine.ledger.stored_offsets() == {}


def test_one_missing_table_makes_all_of_them_be_created_and_loaded_again(machine: Machine) -> None:
    before = machine.identities()
    machine.store.lose("errors")
    copy_path(machine.store.root).write_text("the definitions of tables that are dropped")
    assert machine.start().is_complete
    assert not copy_path(machine.store.root).exists()
    assert machine.ledger.stored_offsets() == {}
    assert machine.ledger.table_identities() == machine.identities()
    assert not set(before.values()) & set(machine.identities().values())
    assert machine.store.rows == dict.fromkeys(TABLES, 0)


def test_one_missing_table_is_a_loss_where_the_logs_were_truncated(machine: Machine) -> None:
    machine.store.lose("errors")
    machine.logs.is_whole = False
    recovery = machine.start()
    with pytest.raises(StoreUnavailable, match="the store lacks events"):
        recovery.check_complete()
    assert machine.ledger.losses() == [LOST_EARLIER.format("errors")]
    assert machine.ledger.stored_offsets() == {"worker-0": LOADED}
    assert machine.store.rows == {"events": 5, "errors": 0, "performance": 5}


def test_store_created_again_has_what_truncated_logs_still_have(machine: Machine) -> None:
    machine.store.lose(*TABLES)
    machine.logs.is_whole = False
    assert not machine.start().is_complete
    assert machine.ledger.losses() == [LOST_FOREVER.format(table) for table in sorted(TABLES)]
    assert machine.ledger.stored_offsets() == {}


def test_nothing_is_loaded_again_where_machines_share_claims(machine: Machine) -> None:
    machine.store.lose(*TABLES)
    assert not machine.start(can_reload=False).is_complete
    assert machine.ledger.losses() == [LOST_EARLIER.format(table) for table in sorted(TABLES)]
    assert machine.ledger.stored_offsets() == {"worker-0": LOADED}


def test_loss_is_reported_at_every_start_until_it_is_accepted(machine: Machine) -> None:
    machine.store.lose(*TABLES)
    machine.start(can_reload=False)
    assert not machine.start(can_reload=False).is_complete
    machine.ledger.accept_losses()
    assert machine.start(can_reload=False).is_complete


@pytest.mark.parametrize(("has_rows", "stored"), [(True, {"worker-0": LOADED}), (False, {})])
def test_store_without_rows_is_new_to_a_ledger_that_knows_no_tables(
    tmp_path: Path, *, has_rows: bool, stored: Mapping[str, LogOffset]
) -> None:
    machine = Machine(tmp_path)
    with closing(machine.ledger):
        machine.load()
        machine.store.rows["errors"] = 5 if has_rows else 0
        machine.store.rows["events"] = machine.store.rows["performance"] = 0
        assert machine.start().is_complete
        assert machine.ledger.stored_offsets() == stored
        assert machine.ledger.table_identities() == machine.identities()


def test_store_that_cannot_be_read_is_unavailable_and_changes_nothing(machine: Machine) -> None:
    before = machine.ledger.table_identities()
    machine.store.lose(*TABLES)
    machine.store.is_away = True
    with pytest.raises(StoreUnavailable):
        machine.start()
    assert machine.ledger.table_identities() == before
    assert machine.logs.published == []
