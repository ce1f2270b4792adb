"""Three durable logs behind one small interface, for `bench/storage/event_log.py`.

Each makes a group of records durable with one call, as the thread of `SegmentLog` requires.
"""

import importlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from headrace.adapters.event_log import segment_files
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import frame_header
from headrace.adapters.event_log.segment_log import SEGMENT_BYTES
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.base.clock import SystemClock
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LogChunk, LoggedRecord, LogOffset

SQLITE_WAL_HEADER_BYTES = 32
SQLITE_WAL_SALT = slice(16, 24)
SQLITE_FRAME_BYTES = 24 + 4096
LMDB_MAP_BYTES = 4 * 1024**3
LMDB_PAGE_BYTES = 4096
LMDB_PAGE_HEADER_BYTES = 16
LMDB_META_BYTES = 152  # of version 0.9 on a 64-bit machine, header included
LMDB_TRANSACTION = slice(144, 152)
REMOVE_RECORDS = 10_000  # per transaction: the writer waits for it
_LOG = "log"


class Candidate(Protocol):
    """A log that is open for one writer and one reader. Its methods block."""

    def append(self, pieces: list[bytes]) -> str | None:
        """Make records durable. `pieces` alternates frame headers and records."""
        ...

    def end(self) -> LogOffset:
        """Return the offset behind the last record."""
        ...

    def read(self, after: LogOffset, max_bytes: int) -> LogChunk:
        """Read the next whole records as the loader does."""
        ...

    def truncate_before(self, position: LogOffset) -> None:
        """Delete loaded records."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


def framed(records: Sequence[bytes]) -> list[bytes]:
    """Return the pieces that `SegmentLog` passes for these records."""
    return [piece for record in records for piece in (frame_header(record), record)]


def unframed(records: Sequence[bytes]) -> list[bytes]:
    """Return pieces for a store that delimits records itself: empty headers, which cost nothing."""
    return [piece for record in records for piece in (b"", record)]


class SegmentFiles:
    """The product's own files."""

    def __init__(self, root: Path) -> None:
        (root / _LOG).mkdir(parents=True, exist_ok=True)
        file_ops = FileOps()
        directory = LogDirectory(root / _LOG, file_ops=file_ops)
        assert directory.try_lock()
        self._reader = SegmentReader(root, damaged=root.with_suffix(".damaged"))
        end = directory.recover()
        directory.set_recovered()
        self._files = segment_files.SegmentFiles(
            directory,
            end=end,
            metrics=Metrics(),
            clock=SystemClock(),
            segment_bytes=SEGMENT_BYTES,
            file_ops=file_ops,
        )

    @staticmethod
    def tear(root: Path) -> None:
        """Cut the end of the last record, and delete the marker of the durable offset."""
        (root / _LOG / "durable").unlink()
        _cut(max((root / _LOG).glob("*.segment")), 100)

    def append(self, pieces: list[bytes]) -> str | None:
        failure = self._files.append(pieces)
        return None if failure is None else str(failure)

    def end(self) -> LogOffset:
        return self._reader.durable_offsets()[_LOG]

    def read(self, after: LogOffset, max_bytes: int) -> LogChunk:
        return self._reader.read(_LOG, after=after, until=self.end(), max_bytes=max_bytes)

    def truncate_before(self, position: LogOffset) -> None:
        self._reader.truncate_before(_LOG, position)

    def close(self) -> None:
        self._reader.close()
        self._files.close()


class SqliteTable:
    """One table in WAL mode; a commit is one fsync of the WAL."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._writer = _connect(root)
        self._writer.execute(
            "CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, record BLOB NOT NULL)"
        )
        self._reader = _connect(root)
        self._next = self.end().offset

    @staticmethod
    def tear(root: Path) -> None:
        """Cut the end of the last commit in the WAL and delete its index, as after a power cut."""
        (root / "log.sqlite-shm").unlink()
        wal = root / "log.sqlite-wal"
        content = wal.read_bytes()
        salt = content[SQLITE_WAL_SALT]
        frames = range(SQLITE_WAL_HEADER_BYTES, len(content), SQLITE_FRAME_BYTES)
        # behind the frames of this pass over the WAL are older ones, with a different salt
        size = sum(SQLITE_FRAME_BYTES for at in frames if content[at + 8 : at + 16] == salt)
        _cut(wal, len(content) - SQLITE_WAL_HEADER_BYTES - size + SQLITE_FRAME_BYTES // 2)

    def append(self, pieces: list[bytes]) -> str | None:
        records = pieces[1::2]
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.executemany(
            "INSERT INTO log VALUES (?, ?)", enumerate(records, start=self._next)
        )
        self._writer.execute("COMMIT")
        self._next += len(records)
        return None

    def end(self) -> LogOffset:
        (last,) = self._reader.execute("SELECT max(id) FROM log").fetchone()
        return LogOffset(0, 0 if last is None else last + 1)

    def read(self, after: LogOffset, max_bytes: int) -> LogChunk:
        rows = self._reader.execute(
            "SELECT id, record FROM log WHERE id >= ? ORDER BY id", (after.offset,)
        )
        return _chunk(rows, after, max_bytes)

    def truncate_before(self, position: LogOffset) -> None:
        for behind in range(0, position.offset + REMOVE_RECORDS, REMOVE_RECORDS):
            last = min(behind, position.offset)
            self._writer.execute("DELETE FROM log WHERE id < ?", (last,))

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class LmdbTree:
    """A tree with integer keys and appends at its end; a commit is two synchronous writes."""

    def __init__(self, root: Path) -> None:
        lmdb: Any = importlib.import_module("lmdb")
        self._env = lmdb.open(str(root), map_size=LMDB_MAP_BYTES, max_dbs=1, metasync=True)
        self._tree = self._env.open_db(b"log", integerkey=True)
        self._next = self.end().offset

    @staticmethod
    def tear(root: Path) -> None:
        """Keep the pages of the last commit but not the meta page that makes them valid.

        There are two meta pages, written alternately: the newer one becomes a copy of the older.
        """
        with (root / "data.mdb").open("r+b") as file:
            metas = [
                os.pread(file.fileno(), LMDB_META_BYTES, page * LMDB_PAGE_BYTES) for page in (0, 1)
            ]
            newer = max((0, 1), key=lambda page: _number(metas[page][LMDB_TRANSACTION]))
            body = metas[1 - newer][LMDB_PAGE_HEADER_BYTES:]
            os.pwrite(file.fileno(), body, newer * LMDB_PAGE_BYTES + LMDB_PAGE_HEADER_BYTES)

    def append(self, pieces: list[bytes]) -> str | None:
        records = pieces[1::2]
        with self._env.begin(write=True, db=self._tree) as transaction:
            for number, record in enumerate(records, start=self._next):
                transaction.put(_key(number), record, append=True)
        self._next += len(records)
        return None

    def end(self) -> LogOffset:
        with self._env.begin(db=self._tree) as transaction, transaction.cursor() as cursor:
            last = _number(cursor.key()) + 1 if cursor.last() else 0
        return LogOffset(0, last)

    def read(self, after: LogOffset, max_bytes: int) -> LogChunk:
        with self._env.begin(db=self._tree) as transaction, transaction.cursor() as cursor:
            found = cursor.set_range(_key(after.offset))
            rows = ((_number(key), record) for key, record in cursor) if found else iter(())
            return _chunk(rows, after, max_bytes)

    def truncate_before(self, position: LogOffset) -> None:
        for behind in range(0, position.offset + REMOVE_RECORDS, REMOVE_RECORDS):
            last = min(behind, position.offset)
            with self._env.begin(write=True, db=self._tree) as transaction:
                cursor = transaction.cursor()
                while cursor.first() and _number(cursor.key()) < last:
                    cursor.delete()

    def close(self) -> None:
        self._env.close()


def _connect(root: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(root / "log.sqlite", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _chunk(rows: Iterator[tuple[int, bytes]], after: LogOffset, max_bytes: int) -> LogChunk:
    records: list[LoggedRecord] = []
    size, start = 0, after
    for number, record in rows:
        end = LogOffset(0, number + 1)
        records.append(LoggedRecord(record, start, end))
        start = end
        size += len(record)
        if size >= max_bytes:
            break
    return LogChunk(records, start)


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - size)


def _key(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _number(key: bytes) -> int:
    return int.from_bytes(key, "little")
