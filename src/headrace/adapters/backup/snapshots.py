"""Consistent snapshots of a data directory, for backups.

The order makes a restored snapshot consistent. Loading is paused while store, ledger and logs are
copied, so ledger and store agree and no segment is deleted. Idempotency keys are copied before the
logs: the events of each key are in the logs or in the store. Websites are copied last: each
accepted event belongs to a website in the copy.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from headrace.adapters.data_dir.paths import UNFINISHED_SUFFIX, DataDirPaths
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.event_log.unreadable_logs import describe_unreadable
from headrace.adapters.quarantine.requeue_lock import requeue_locked
from headrace.adapters.sqlite.copies import (
    copy_directory_database,
    copy_sqlite,
    integrity_errors,
)
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.freeze import freeze_store, remove_frozen
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.ports.event_log import LogOffset
from headrace.ports.ledger import LogRange

_ResultT = TypeVar("_ResultT")


class Snapshot(Struct, frozen=True):
    """A snapshot's directory and number of entries; fewer means that it is being removed.

    `unreadable` are the logs whose unreadable rest, acknowledged events, is not in it.
    """

    path: Path
    entries: int
    unreadable: tuple[str, ...] = ()


def walk_entries(directory: Path) -> Iterator[Path]:
    """Yield all files, directories and links below a directory, in a deterministic order.

    Does not follow links. Raises `OSError` where a directory cannot be read.
    """
    for walked, directories, files in os.walk(directory, onerror=_raise):
        directories.sort()
        for name in sorted((*directories, *files)):
            yield Path(walked, name)


def _raise(error: OSError) -> None:
    raise error


class Snapshots:
    """Takes and removes snapshots of a data directory; blocking.

    Segments and parts are hard links, so a snapshot needs only the space of the SQLite files.
    Without `chdb` the store is a ClickHouse server, which has its own backups. With
    `include_unstored` the logs are copied up to their durable ends, else up to the stored offsets.
    Every method raises `OperatorError` with the reason: also where a log cannot be read, because
    the snapshot would lack acknowledged events. A partial one leaves out what cannot be read.
    """

    def __init__(
        self,
        paths: DataDirPaths,
        *,
        chdb: ChdbInstance | None,
        ledger: SqliteLedger,
        log_reader: SegmentReader,
        include_unstored: bool = True,
    ) -> None:
        self._paths = DataDirPaths(paths.root.absolute())  # the archiving process has another cwd
        self._chdb = chdb
        self._ledger = ledger
        self._log_reader = log_reader
        self._include_unstored = include_unstored

    def clear(self) -> None:
        """Remove the snapshots that a killed process left."""
        shutil.rmtree(self._paths.snapshots, ignore_errors=True)
        remove_frozen(self._paths.store)

    def begin(self) -> Path:
        """Create a snapshot with the idempotency keys, and return its directory."""
        snapshot = self._paths.snapshots / secrets.token_hex(8)
        try:
            with _translate_snapshot_errors():
                snapshot.mkdir(mode=0o700, parents=True)
                self._check_free_space()
                with _naming(self._paths.idempotency):
                    copy_sqlite(self._paths.idempotency, DataDirPaths(snapshot).idempotency)
        except BaseException:
            self.remove(snapshot)
            raise
        return snapshot

    def freeze(self, snapshot: Path, *, partial: bool) -> tuple[str, ...]:
        """Add store, ledger, logs, quarantine, damaged bytes and erasures.

        The caller has paused loading. Returns the logs that lack a part.
        """
        copy = DataDirPaths(snapshot)
        with _translate_snapshot_errors(), requeue_locked(self._paths):
            ends, unreadable = self._log_end_offsets(), tuple(self._log_reader.unreadable())
            if unreadable and not partial:
                raise OperatorError(
                    f"cannot take a snapshot: {describe_unreadable(unreadable)}, and a backup "
                    "would lack them; repair the disk, or back up the rest with --partial"
                )
            if self._chdb is not None:
                freeze_store(self._chdb, copy.store)
            self._ledger.copy_to(copy.ledger)
            for log, end in ends.items():
                _copy_log(self._paths.log / log, copy.log / log, end, partial=log in unreadable)
            _link_files(self._paths.quarantine, copy.quarantine)
            _link_files(self._paths.damaged, copy.damaged)
            _link_files(self._paths.erasures, copy.erasures)
        return unreadable

    def finish(self, snapshot: Path, *, unreadable: tuple[str, ...]) -> Snapshot:
        """Add websites, keys and the format marker, which completes the snapshot.

        Also checks the copies of the other databases, which SQLite copies page by page, damaged
        ones too.
        """
        copy = DataDirPaths(snapshot)
        with _translate_snapshot_errors():
            _check_copy(self._paths.ledger, copy.ledger)
            _check_copy(self._paths.idempotency, copy.idempotency)
            with _naming(self._paths.directory):
                copy_directory_database(self._paths.directory, copy.directory)
            shutil.copyfile(self._paths.format_marker, copy.format_marker)
            return Snapshot(snapshot, sum(1 for _ in walk_entries(snapshot)), unreadable)

    def take(self, *, partial: bool) -> Snapshot:
        """Take a snapshot where no loader runs, which would have found what cannot be read."""
        snapshot = self.begin()
        self._log_reader.find_unreadable(after=self._ledger.stored_offsets())
        return self.finish(snapshot, unreadable=self.freeze(snapshot, partial=partial))

    def remove(self, snapshot: Path) -> None:
        """Remove a snapshot. May be called twice."""
        shutil.rmtree(snapshot, ignore_errors=True)

    def _log_end_offsets(self) -> Mapping[str, LogOffset]:
        """Return the offsets up to which the logs belong to the snapshot.

        A service that stores in ClickHouse leaves out what is not stored: it goes on to store it
        there, and a restored copy would store it a second time, in other batches.
        """
        ends = self._log_reader.durable_offsets()
        if self._include_unstored:
            return ends
        batch = self._ledger.pending_batch()
        pending: Mapping[str, LogRange] = {} if batch is None else batch.ranges
        stored = {
            **self._ledger.stored_offsets(),
            **{log: log_range.end for log, log_range in pending.items()},
        }
        return {log: stored[log] for log in ends if log in stored}

    def _check_free_space(self) -> None:
        files = (self._paths.idempotency, self._paths.ledger, self._paths.directory)
        needed = sum(file.stat().st_size for file in files if file.exists())
        free = shutil.disk_usage(self._paths.root).free
        if needed > free:
            raise OperatorError(
                f"cannot take a snapshot: it needs {needed} bytes in {self._paths.root}, and "
                f"{free} are free"
            )


class ExclusiveRunner(Protocol):
    """Runs work between two loads: `LoadLoop`."""

    async def run_exclusive(self, work: Callable[[], _ResultT]) -> _ResultT:
        """Wait for the current load, run `work` in a thread, and block the next load until then."""
        ...


class LiveSnapshots:
    """Takes snapshots while the engine loads and runs queries; used from its event loop."""

    def __init__(self, snapshots: Snapshots, load_loop: ExclusiveRunner) -> None:
        self._snapshots = snapshots
        self._load_loop = load_loop

    async def take(self, *, partial: bool) -> Snapshot:
        """Take a snapshot. Raises `OperatorError`."""
        snapshot = await asyncio.to_thread(self._snapshots.begin)
        try:
            unreadable = await self._load_loop.run_exclusive(
                lambda: self._snapshots.freeze(snapshot, partial=partial)
            )
            return await asyncio.to_thread(self._snapshots.finish, snapshot, unreadable=unreadable)
        except BaseException:
            await self.remove(snapshot)
            raise

    async def remove(self, snapshot: Path) -> None:
        """Remove a snapshot. Never raises."""
        await asyncio.to_thread(self._snapshots.remove, snapshot)


def _check_copy(database: Path, copy: Path) -> None:
    """Raise `OperatorError` where a copied database is damaged, and so the database, too."""
    errors = integrity_errors(copy, quick=True) if copy.exists() else ()
    if errors:
        raise OperatorError(f"cannot take a snapshot: {database} {errors[0]}")


def _copy_log(log: Path, into: Path, end: LogOffset, *, partial: bool) -> None:
    """Link the segments up to `end`. The last one may grow: the copy's marker has the end.

    A partial copy has only segments that can be read up to `end`.
    """
    into.mkdir(mode=0o700, parents=True)
    source = LogDirectory(log, file_ops=FileOps())
    copy = LogDirectory(into, file_ops=FileOps())
    try:
        for sequence in source.sequences():
            segment = source.segment_path(sequence)
            size = end.offset if sequence == end.segment else None
            if sequence <= end.segment and not (partial and not _is_readable(segment, size)):
                _link(segment, copy.segment_path(sequence))
        copy.publish(end)
    finally:
        source.close()
        copy.close()


def _is_readable(segment: Path, size: int | None) -> bool:
    try:
        with segment.open("rb", buffering=0) as opened:
            opened.read(-1 if size is None else size)
    except OSError:
        return False
    return True


def _link_files(directory: Path, into: Path) -> None:
    if not directory.is_dir():
        return
    into.mkdir(mode=0o700)
    for file in directory.iterdir():
        if file.is_file() and file.suffix != UNFINISHED_SUFFIX:
            _link(file, into / file.name)


def _link(file: Path, into: Path) -> None:
    try:
        os.link(file, into)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(file, into)


@contextlib.contextmanager
def _translate_snapshot_errors() -> Generator[None]:
    try:
        yield
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        raise OperatorError(f"cannot take a snapshot: {named}{system_reason(error)}") from error
    except (ClickHouseError, StoreUnavailable) as error:
        raise OperatorError(f"cannot take a snapshot: {error}") from error


@contextlib.contextmanager
def _naming(database: Path) -> Generator[None]:
    """Name the file that is copied in errors of SQLite, which name none."""
    try:
        yield
    except sqlite3.Error as error:
        raise OperatorError(f"cannot take a snapshot: cannot copy {database}: {error}") from error
