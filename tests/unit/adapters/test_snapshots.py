"""A snapshot that cannot be taken takes no space in the data directory."""

import shutil
from collections.abc import Callable, Iterator
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


@pytest.fixture
def snapshots(paths: DataDirPaths) -> Iterator[Snapshots]:
    ledger, log_reader = SqliteLedger.open(paths.ledger), reader_of(paths.log)
    yield Snapshots(paths, chdb=None, ledger=ledger, log_reader=log_reader)
    log_reader.close()
    ledger.close()


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
