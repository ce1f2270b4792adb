"""Backs up a data directory, whether the service runs or not, and restores one."""

import asyncio
import contextlib
import shutil
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from headrace.adapters.backup.archive import (
    BackupManifest,
    Progress,
    check_archive,
    read_archive,
    write_archive,
)
from headrace.adapters.backup.snapshots import Snapshot, Snapshots
from headrace.adapters.data_dir.files import (
    remove_unfinished,
    sync_directory,
    write_atomically,
)
from headrace.adapters.data_dir.format import migrate_data_dir
from headrace.adapters.data_dir.lock import (
    SERVE_COMMAND,
    DataDirLocked,
    lock_data_dir,
    published_runtime,
)
from headrace.adapters.data_dir.paths import (
    ERASURES,
    LOCK,
    LOST_AND_FOUND,
    UNFINISHED_RESTORE,
    DataDirPaths,
)
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.engine.ipc.snapshot_client import live_snapshot
from headrace.adapters.erasures.erasure_set import (
    ErasureSet,
    merge_erasures,
    read_erasure_set,
)
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import get_logger
from headrace.base.settings import Settings, data_path
from headrace.formats.audited_changes import restore_change
from headrace.wiring.audit import record_changes
from headrace.wiring.commands.engine_access import EngineRuntime, connect_engine
from headrace.wiring.data import (
    create_data_dir,
    data_dir_paths,
    locked_for_command,
    migrate_data_dir_if_idle,
    require_data,
)
from headrace.wiring.directory_file import check_directory_file, is_directory_lost
from headrace.wiring.store_address import clickhouse_address

_POLL_S: Final = 0.2

_KEPT_BY_RESTORE: Final = frozenset({LOCK, UNFINISHED_RESTORE, LOST_AND_FOUND})
"""What may be in the directory before a restore, and stays when one fails."""


def back_up(
    settings: Settings, target: Path, *, made: str, partial: bool, progress: Progress
) -> BackupManifest:
    """Write a backup of the data directory. Raises `OperatorError`.

    Also where a log cannot be read; a partial backup leaves out what cannot be read.
    """
    require_data(settings)
    if target.exists() or not target.parent.is_dir():
        reason = "it exists" if target.exists() else f"the directory {target.parent} is missing"
        raise OperatorError(f"cannot write the backup {target}: {reason}")
    with _snapshot(settings, partial=partial) as snapshot:
        return write_archive(snapshot, target, made=made, progress=progress)


@contextlib.contextmanager
def _snapshot(settings: Settings, *, partial: bool) -> Generator[Snapshot]:
    """Take a snapshot of the data directory: by its service where one runs, else here."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_for_command(settings, "headrace backup"))
        except DataDirLocked as locked:
            if locked.owner.command != SERVE_COMMAND:
                raise
            migrate_data_dir_if_idle(settings)
            engine_socket = published_runtime(locked.owner) / ENGINE_SOCKET
            snapshot = live_snapshot(engine_socket, partial=partial)
        else:
            has_store = clickhouse_address(settings) is None
            paths = data_dir_paths(settings)
            snapshot = _offline_snapshot(paths, has_store=has_store, partial=partial)
        yield stack.enter_context(snapshot)


class Restored(NamedTuple):
    """The manifest of a restored backup, and the number of erasures that were applied to it.

    None says that no erasures were given, so those made after the backup are not known.
    """

    manifest: BackupManifest
    erasures: int | None


def restore(
    settings: Settings, file: Path, *, by: str, erasures: Path | None = None, progress: Progress
) -> Restored:
    """Unpack a backup to the data directory, and erase in it what was erased after the backup.

    Creates the directory, unless the file is no backup, or the given erasures cannot be read. It
    must be empty, or have erasures alone, which are used then; `erasures` is another place of some,
    which are used beside them. `by` is who restores, for the audit log. Raises `OperatorError`.
    Empties the directory again when that fails, but for its erasures. A restore that is killed, or
    whose machine loses power, leaves a marker file, and no service starts on the directory. The
    marker has the erasures of the directory, and the next restore uses them.
    """
    check_archive(file)
    given = None if erasures is None else read_erasure_set(erasures)
    create_data_dir(settings)
    root = data_path(settings)
    with lock_data_dir(root, "headrace restore"):
        _require_empty(root)
        kept = _kept_erasures(DataDirPaths(root))
        with _marked_as_unfinished(DataDirPaths(root), kept):
            manifest = read_archive(file, root, progress=progress)
            known = [one for one in (kept, given) if one is not None]
            applied = _bring_up_to_date(settings, manifest, known, by)
    return Restored(manifest, applied)


def _require_empty(root: Path) -> None:
    """Raise `OperatorError` where a directory has more than what may be in it before a restore."""
    for name in (LOCK, UNFINISHED_RESTORE):
        remove_unfinished(root, name)  # of a restore that was killed before it began
    found = {path.name for path in root.iterdir()} - {ERASURES} - _KEPT_BY_RESTORE
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        reason = f"the directory is not empty: it has {min(found)}{more}"
        raise OperatorError(f"cannot restore to {root}: {reason}")


@contextlib.contextmanager
def _marked_as_unfinished(paths: DataDirPaths, kept: ErasureSet | None) -> Generator[None]:
    """Let no service start on the directory until the block has restored it.

    Where the block fails, the directory is as before: empty, or with the kept erasures alone.
    """
    _write_marker(paths.unfinished_restore, kept)
    try:
        shutil.rmtree(paths.erasures, ignore_errors=True)
        yield
    except BaseException:
        _remove_contents(paths.root)
        if kept is not None:
            _put_back(kept, paths.erasures)
        _remove_marker(paths.unfinished_restore)
        raise
    _remove_marker(paths.unfinished_restore)


def _bring_up_to_date(
    settings: Settings, manifest: BackupManifest, known: Sequence[ErasureSet], by: str
) -> int | None:
    """Erase what must not be in the directory any more, and write the line of the audit log.

    Returns the number of erasures that were applied; None where none are known.
    """
    has_directory = not is_directory_lost(settings)
    if known and not has_directory:
        check_directory_file(settings)
    applied = _apply_erasures(settings, known) if known else None
    if has_directory:
        record_changes(settings, by, [restore_change(manifest.made, applied or 0)])
    return applied


def _kept_erasures(paths: DataDirPaths) -> ErasureSet | None:
    """Return the erasures of the directory, or those that an interrupted restore found there."""
    own, marker = paths.erasures, paths.unfinished_restore
    if marker.exists() and marker.stat().st_size:
        return read_erasure_set(marker)
    return read_erasure_set(own) if own.exists() else None


def _write_marker(marker: Path, kept: ErasureSet | None) -> None:
    """Write the marker durably, before any restored file can be. Raises `OperatorError`."""
    try:
        write_atomically(marker, b"" if kept is None else msgspec.json.encode(kept))
    except OSError as error:
        reason = system_reason(error)
        raise OperatorError(f"cannot restore to {marker.parent}: {reason}") from error


def _remove_marker(marker: Path) -> None:
    """Let services start on the directory: everything else in it is as it should be on disk."""
    sync_directory(marker.parent)
    marker.unlink()
    sync_directory(marker.parent)


def _apply_erasures(settings: Settings, known: Sequence[ErasureSet]) -> int:
    """Erase what a restored backup has and must not have; return the number of erasures."""
    paths = data_dir_paths(settings)
    erasures = FileErasures(paths.erasures)
    for one in known:
        merge_erasures(erasures, paths.erasures, one)
    migrate_data_dir(paths.root, is_restoring=True)
    pending = sum(not erasure.is_done for erasure in erasures.all())
    if pending:
        with TemporaryDirectory(prefix="headrace-") as runtime:
            own_runtime = EngineRuntime(Path(runtime), is_own=True, erases_alone=True)
            asyncio.run(_until_all_done(settings, own_runtime, erasures))
    return pending


async def _until_all_done(
    settings: Settings, runtime: EngineRuntime, erasures: FileErasures
) -> None:
    async with connect_engine(settings, runtime):
        while not all(  # noqa: ASYNC110 - the engine notifies nobody
            one.is_done for one in await asyncio.to_thread(erasures.all)
        ):
            await asyncio.sleep(_POLL_S)


def _put_back(kept: ErasureSet, path: Path) -> None:
    if kept.erasures:
        erasures = FileErasures(path)
        erasures.set_key(bytes.fromhex(kept.key))
        for erasure in kept.erasures:
            erasures.put(erasure)


@contextlib.contextmanager
def _offline_snapshot(
    paths: DataDirPaths, *, has_store: bool, partial: bool
) -> Generator[Snapshot]:
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
            snapshot = snapshots.take(partial=partial)
        finally:
            if chdb is not None:
                chdb.close()
        yield snapshot


def _remove_contents(root: Path) -> None:
    """Remove everything but what a restore keeps; without the marker the rest would look whole."""
    for path in root.iterdir():
        if path.name in _KEPT_BY_RESTORE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
