"""What backs a data directory up, whether the service runs or not, and restores one."""

import contextlib
import shutil
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

from headrace.adapters.backup.archive import Contents, Progress, read_archive, write_archive
from headrace.adapters.backup.snapshots import Snapshot, Snapshots
from headrace.adapters.data_dir.files import sync_directory
from headrace.adapters.data_dir.lock import SERVE, DataHeld, hold_data
from headrace.adapters.data_dir.paths import LOCK, DataPlaces
from headrace.adapters.engine.ipc.snapshot_client import borrowed_snapshot
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.base.telemetry import get_logger
from headrace.wiring.data import ENGINE_SOCKET, check_data, check_there_is_data, held_for
from headrace.wiring.store_address import clickhouse_of


def back_up(settings: Settings, target: Path, *, made: str, progress: Progress) -> Contents:
    """Write a backup of the data directory. Raises `OperatorError`."""
    places = DataPlaces(data_path(settings))
    check_there_is_data(settings)
    if target.exists() or not target.parent.is_dir():
        reason = "it exists already" if target.exists() else f"there is no {target.parent}"
        raise OperatorError(f"cannot write the backup {target}: {reason}")
    with ExitStack() as held:
        try:
            held.enter_context(held_for(settings, "headrace backup"))
        except DataHeld as refusal:
            if refusal.holder.command != SERVE:
                raise
            check_data(settings)
            with borrowed_snapshot(Path(refusal.holder.runtime) / ENGINE_SOCKET) as snapshot:
                return write_archive(snapshot, target, made=made, progress=progress)
        with _own_snapshot(places, has_store=clickhouse_of(settings) is None) as snapshot:
            return write_archive(snapshot, target, made=made, progress=progress)


def restore(settings: Settings, file: Path, *, progress: Progress) -> Contents:
    """Unpack a backup as the data directory, which must be empty. Raises `OperatorError`.

    Where that fails the directory is empty again; a restore that was killed leaves a mark that
    keeps a service from starting.
    """
    root = data_path(settings)
    with hold_data(root, "headrace restore"):
        if any(path.name != LOCK for path in root.iterdir()):
            raise OperatorError(f"the directory {root} is not empty; nothing was restored")
        mark = DataPlaces(root).unfinished_restore
        mark.touch()
        try:
            contents = read_archive(file, root, progress=progress)
        except BaseException:
            _empty(root)
            raise
        mark.unlink()
        sync_directory(root)
    return contents


@contextlib.contextmanager
def _own_snapshot(places: DataPlaces, *, has_store: bool) -> Generator[Snapshot]:
    """Take a snapshot as the engine would, where there is none running."""
    with ExitStack() as opened:
        ledger = SqliteLedger.open(places.ledger)
        opened.callback(ledger.close)
        reader = SegmentReader(places.log, damaged=places.damaged)
        opened.callback(reader.close)
        engine = ChdbEngine(places.store, log=get_logger()) if has_store else None
        snapshots = Snapshots(places, engine=engine, ledger=ledger, log_reader=reader)
        snapshots.clear()
        opened.callback(snapshots.clear)
        if engine is not None:
            engine.open()
        try:
            snapshot = snapshots.take()
        finally:
            if engine is not None:
                engine.close()
        yield snapshot


def _empty(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink()
