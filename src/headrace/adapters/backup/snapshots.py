"""Snapshots of a data directory: everything in it as of one moment, for a backup.

The order is what makes a restored snapshot right. Nothing is loaded while store, ledger and logs
are taken, so ledger and store agree and no log is removed. The idempotency keys come before the
logs: what a key answers for is in the logs, or in the store. Websites come last: what was accepted
belongs to one that is there.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.event_log.segment_directory import Disk, LogDirectory, create_directory
from headrace.adapters.event_log.segment_log import lock_log
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.quarantine.requeuer import RETRY_LOG
from headrace.adapters.sqlite.copies import copy_directory_database, copy_sqlite
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.chdb.freeze import freeze_store, remove_frozen
from headrace.adapters.store.dialect.errors import EngineFailure
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.ports.event_log import LogPosition
from headrace.ports.ledger import LogRange


class Snapshot(Struct, frozen=True):
    """Where it is, and how many entries it has: one that is being removed has fewer."""

    path: Path
    entries: int


def entries_below(directory: Path) -> Iterator[Path]:
    """Go through all files, directories and links below a directory, in one order always.

    Links are not followed. Raises `OSError` where a directory cannot be read.
    """
    for walked, directories, files in os.walk(directory, onerror=_raise):
        directories.sort()
        for name in sorted((*directories, *files)):
            yield Path(walked, name)


def _raise(error: OSError) -> None:
    raise error


_RETRY_PATIENCE_S = 10.0
_UNFINISHED = ".unfinished"


class Snapshots:
    """Takes and removes snapshots of a data directory; blocking.

    Segments and parts are hard links: a snapshot takes the room of the SQLite files. Without an
    `engine` the store is elsewhere, and has backups of its own. With `has_unstored` the logs are
    in it up to their ends, else as far as they are stored. Every method raises `OperatorError` with
    the reason.
    """

    def __init__(
        self,
        places: DataPlaces,
        *,
        engine: ChdbEngine | None,
        ledger: SqliteLedger,
        log_reader: SegmentReader,
        has_unstored: bool = True,
    ) -> None:
        self._places = DataPlaces(places.root.absolute())  # who archives it may be elsewhere
        self._engine = engine
        self._ledger = ledger
        self._log_reader = log_reader
        self._has_unstored = has_unstored

    def clear(self) -> None:
        """Remove what a killed process left behind."""
        shutil.rmtree(self._places.snapshots, ignore_errors=True)
        remove_frozen(self._places.store)

    def begin(self) -> Path:
        """Make a snapshot with the idempotency keys in it, and return its directory."""
        snapshot = self._places.snapshots / secrets.token_hex(8)
        with _told():
            snapshot.mkdir(mode=0o700, parents=True)
            self._check_room()
            copy_sqlite(self._places.repeats, DataPlaces(snapshot).repeats)
        return snapshot

    def freeze(self, snapshot: Path) -> None:
        """Add store, ledger, logs and what was set aside. Nothing may be loaded meanwhile."""
        copy = DataPlaces(snapshot)
        with _told(), self._no_retry():
            if self._engine is not None:
                freeze_store(self._engine, copy.store)
            self._ledger.copy_to(copy.ledger)
            for log, end in self._log_ends().items():
                _copy_log(self._places.log / log, copy.log / log, end)
            _link_files(self._places.quarantine, copy.quarantine)
            _link_files(self._places.damaged, copy.damaged)

    def finish(self, snapshot: Path) -> Snapshot:
        """Add websites and keys, and the format of the directory; the snapshot is whole then."""
        copy = DataPlaces(snapshot)
        with _told():
            copy_directory_database(self._places.directory, copy.directory)
            shutil.copyfile(self._places.version, copy.version)
            return Snapshot(snapshot, sum(1 for _ in entries_below(snapshot)))

    def take(self) -> Snapshot:
        """Do all of it, where nothing is loaded anyway."""
        snapshot = self.begin()
        self.freeze(snapshot)
        return self.finish(snapshot)

    def remove(self, snapshot: Path) -> None:
        """Remove a snapshot. May be called twice."""
        shutil.rmtree(snapshot, ignore_errors=True)

    def _log_ends(self) -> Mapping[str, LogPosition]:
        """Return up to where the logs belong to the snapshot.

        What is not stored is left out where who takes the snapshot goes on to store it elsewhere:
        whoever restored it would store it again, in other batches.
        """
        ends = self._log_reader.durable_ends()
        if self._has_unstored:
            return ends
        intent = self._ledger.intent()
        begun: Mapping[str, LogRange] = {} if intent is None else intent.ranges
        stored = {**self._ledger.positions(), **{log: part.end for log, part in begun.items()}}
        return {log: stored[log] for log in ends if log in stored}

    def _check_room(self) -> None:
        files = (self._places.repeats, self._places.ledger, self._places.directory)
        needed = sum(file.stat().st_size for file in files if file.exists())
        free = shutil.disk_usage(self._places.root).free
        if needed > free:
            raise OperatorError(
                f"a snapshot needs {needed} bytes in {self._places.root}, where {free} are free"
            )

    @contextlib.contextmanager
    def _no_retry(self) -> Generator[None]:
        """Keep `quarantine retry` waiting: it moves entries from the quarantine to a log."""
        if not self._places.quarantine.exists():
            yield
            return
        path = self._places.log / RETRY_LOG
        create_directory(path, disk=Disk())
        log = LogDirectory(path, disk=Disk())
        try:
            lock_log(log, _RETRY_PATIENCE_S)
            yield
        finally:
            log.close()


class BetweenLoads(Protocol):
    """What runs something while nothing is loaded: `LoadLoop`."""

    async def between_loads(self, work: Callable[[], None]) -> None:
        """Run it when the running load is done, and begin no other before it has ended."""
        ...


class LiveSnapshots:
    """Takes snapshots while the engine loads and answers; used from its event loop."""

    def __init__(self, snapshots: Snapshots, loading: BetweenLoads) -> None:
        self._snapshots = snapshots
        self._loading = loading

    async def take(self) -> Snapshot:
        """Take one. Raises `OperatorError`."""
        snapshot = await asyncio.to_thread(self._snapshots.begin)
        try:
            await self._loading.between_loads(partial(self._snapshots.freeze, snapshot))
            return await asyncio.to_thread(self._snapshots.finish, snapshot)
        except BaseException:
            await self.remove(snapshot)
            raise

    async def remove(self, snapshot: Path) -> None:
        """Remove one. Never raises."""
        await asyncio.to_thread(self._snapshots.remove, snapshot)


def _copy_log(log: Path, into: Path, end: LogPosition) -> None:
    """Link the segments up to the end. The last one may grow; its copy's mark says how far."""
    into.mkdir(mode=0o700, parents=True)
    source = LogDirectory(log, disk=Disk())
    copy = LogDirectory(into, disk=Disk())
    try:
        for sequence in source.sequences():
            if sequence <= end.segment:
                _link(source.segment_path(sequence), copy.segment_path(sequence))
        copy.publish(end)
    finally:
        source.close()
        copy.close()


def _link_files(directory: Path, into: Path) -> None:
    if not directory.is_dir():
        return
    into.mkdir(mode=0o700)
    for file in directory.iterdir():
        if file.is_file() and file.suffix != _UNFINISHED:
            _link(file, into / file.name)


def _link(file: Path, into: Path) -> None:
    try:
        os.link(file, into)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(file, into)


@contextlib.contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"no snapshot can be taken: {error.strerror}: {error.filename}"
        ) from error
    except (EngineFailure, StoreUnavailable, sqlite3.Error) as error:
        raise OperatorError(f"no snapshot can be taken: {error}") from error
