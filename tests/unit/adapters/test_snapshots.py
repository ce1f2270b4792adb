"""A snapshot that cannot be taken takes no space in the data directory."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.adapters.backup.snapshots import Snapshots
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.errors import OperatorError
from testing.event_logs import reader_of


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` returns, in bytes."""

    total: int
    used: int
    free: int


@pytest.fixture
def paths(tmp_path: Path) -> DataDirPaths:
    return DataDirPaths(tmp_path)


@contextmanager
def opened(paths: DataDirPaths) -> Generator[Snapshots]:
    ledger, log_reader = SqliteLedger.open(paths.ledger), reader_of(paths.log)
    yield Snapshots(paths, chdb=None, ledger=ledger, log_reader=log_reader)
    log_reader.close()
    ledger.close()


@pytest.fixture
def snapshots(paths: DataDirPaths) -> Iterator[Snapshots]:
    with opened(paths) as made:
        yield made


def damage_idempotency(paths: DataDirPaths, _patch: pytest.MonkeyPatch) -> None:
    paths.idempotency.write_bytes(b"no database" * 1000)


def fill_disk(_paths: DataDirPaths, patch: pytest.MonkeyPatch) -> None:
    def full(_path: Path) -> DiskUsage:
        return DiskUsage(10, 10, 0)

    patch.setattr(shutil, "disk_usage", full)


@pytest.mark.parametrize(
    ("obstruct", "reason"),
    [
        (damage_idempotency, "repeats.sqlite: file is not a database$"),
        (fill_disk, "cannot take a snapshot: it needs"),
    ],
    ids=["damaged", "full"],
)
def test_snapshot_that_fails_at_its_beginning_is_removed(
    paths: DataDirPaths,
    snapshots: Snapshots,
    monkeypatch: pytest.MonkeyPatch,
    obstruct: Callable[[DataDirPaths, pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    obstruct(paths, monkeypatch)
    with pytest.raises(OperatorError, match=reason):
        snapshots.begin()
    assert list(paths.snapshots.iterdir()) == []


def test_database_that_cannot_be_copied_is_named(paths: DataDirPaths, snapshots: Snapshots) -> None:
    paths.directory.write_bytes(b"no database" * 1000)
    snapshot = snapshots.begin()
    with pytest.raises(OperatorError) as refused:
        snapshots.finish(snapshot, unreadable=())
    assert str(refused.value) == (
        f"cannot take a snapshot: cannot copy {paths.directory}: file is not a database"
    )


def damage_page(database: Path) -> None:
    """Fill a database until it has many pages, and overwrite one of them."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE filler (number INTEGER PRIMARY KEY, content BLOB)")
        connection.executemany("INSERT INTO filler (content) VALUES (?)", [(bytes(1000),)] * 200)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        file.seek(-10 * page_bytes, os.SEEK_END)
        file.write(b"\xff" * page_bytes)


@pytest.mark.parametrize("name", ["ledger", "idempotency"])
def test_damaged_page_of_a_database_is_not_copied_unnoticed(paths: DataDirPaths, name: str) -> None:
    SqliteLedger.open(paths.ledger).close()
    database: Path = getattr(paths, name)
    damage_page(database)
    with opened(paths) as snapshots:
        snapshot = snapshots.begin()
        unreadable = snapshots.freeze(snapshot, partial=False)
        with pytest.raises(OperatorError) as refused:
            snapshots.finish(snapshot, unreadable=unreadable)
    assert str(refused.value).startswith(f"cannot take a snapshot: {database} is damaged: ")
