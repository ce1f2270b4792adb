"""Backs up a data directory, whether the service runs or not, and restores one."""

import contextlib
import shutil
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

from headrace.adapters.backup.archive import BackupManifest, Progress, read_archive, write_archive
from headrace.adapters.backup.snapshots import Snapshot, Snapshots
from headrace.adapters.data_dir.files import sync_directory
from headrace.adapters.data_dir.lock import SERVE_COMMAND, DataDirLocked, lock_data_dir
from headrace.adapters.data_dir.paths import LOCK, DataDirPaths
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.engine.ipc.snapshot_client import live_snapshot
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.base.telemetry import get_logger
from headrace.wiring.data import locked_for_command, migrate_data_dir_if_idle, require_data
from headrace.wiring.store_address import clickhouse_address


def back_up(settings: Settings, target: Path, *, made: str, progress: Progress) -> BackupManifest:
    """Write a backup of the data directory. Raises `OperatorError`."""
    paths = DataDirPaths(data_path(settings))
    require_data(settings)
    if target.exists() or not target.parent.is_dir():
        reason = "it exists" if target.exists() else f"the directory {target.parent} is missing"
        raise OperatorError(f"cannot write the backup {target}: {reason}")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_for_command(settings, "headrace backup"))
        except DataDirLocked as locked:
            if locked.owner.command != SERVE_COMMAND:
                raise
            migrate_data_dir_if_idle(settings)
            with live_snapshot(Path(locked.owner.runtime) / ENGINE_SOCKET) as snapshot:
                return write_archive(snapshot, target, made=made, progress=progress)
        with _offline_snapshot(paths, has_store=clickhouse_address(settings) is None) as snapshot:
            return write_archive(snapshot, target, made=made, progress=progress)


def restore(settings: Settings, file: Path, *, progress: Progress) -> BackupManifest:
    """Unpack a backup to the data directory, which must be empty. Raises `OperatorError`.

    Empties the directory again when that fails. A restore that is killed leaves a marker file, and
    no service starts on the directory.
    """
    root = data_path(settings)
    with lock_data_dir(root, "headrace restore"):
        if any(path.name != LOCK for path in root.iterdir()):
            raise OperatorError(f"cannot restore to {root}: the directory is not empty")
        marker = DataDirPaths(root).unfinished_restore
        marker.touch()
        try:
            manifest = read_archive(file, root, progress=progress)
        except BaseException:
            _remove_contents(root)
            raise
        marker.unlink()
        sync_directory(root)
    return manifest


@contextlib.contextmanager
def _offline_snapshot(paths: DataDirPaths, *, has_store: bool) -> Generator[Snapshot]:
    """Take the snapshot that the engine process would take if it ran."""
    with ExitStack() as stack:
        ledger = SqliteLedger.open(paths.ledger)
        stack.callback(ledger.close)
        reader = SegmentReader(paths.log, damaged=paths.damaged)
        stack.callback(reader.close)
        chdb = ChdbInstance(paths.store, log=get_logger()) if has_store else None
        snapshots = Snapshots(paths, chdb=chdb, ledger=ledger, log_reader=reader)
        snapshots.clear()
        stack.callback(snapshots.clear)
        if chdb is not None:
            chdb.open()
        try:
            snapshot = snapshots.take()
        finally:
            if chdb is not None:
                chdb.close()
        yield snapshot


def _remove_contents(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink()
