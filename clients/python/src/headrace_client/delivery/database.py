"""The SQLite file of an outbox: one connection for all threads, closed around every fork.

A connection that is inherited by a forked process makes SQLite believe in locks that the process
does not have. It could then delete a write-ahead log that others still write.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace_client.errors import ClientClosed, OutboxFull, OutboxUnavailable

_FORMAT = 1
_PAGE_BYTES = 4096
_SPARE_PAGES = 64  # so that refused items can be moved in a full outbox
_WAL_TIMEOUT_S = 10.0
_WAL_PAUSE_S = 0.05
_CHECKPOINT_PAGES = 2000  # 8 MiB of log between two copies into the file, which flush the disk
_SPARE_DISK_BYTES = (_CHECKPOINT_PAGES + 256) * _PAGE_BYTES  # for a copy of the log, and to send
_SPARE_DISK_SHARE = 8  # at most an eighth of a small disk
_UNCHECKED_BYTES = 64 * 1024  # of the log between two looks at the disk
_TRANSACTION_BYTES = 2 * _PAGE_BYTES  # that a transaction adds to the log beside its items

_SCHEMA = """
CREATE TABLE items (id INTEGER PRIMARY KEY, path TEXT, website TEXT, body BLOB);
CREATE TABLE in_flight (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  path TEXT, website TEXT, first_id INTEGER, last_id INTEGER, since_ms INTEGER
);
CREATE TABLE refused (
  id INTEGER PRIMARY KEY, path TEXT, website TEXT, body BLOB,
  status INTEGER, code TEXT, message TEXT, refused_ms INTEGER
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
"""


class Database:
    """Opens the file when it is needed. Safe to use from many threads and after a fork."""

    def __init__(
        self,
        path: Path | None,
        *,
        synchronous: str,
        max_bytes: int,
        busy_timeout_s: float,
        disk_usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage,
    ) -> None:
        self.path = path
        self._disk_usage = disk_usage
        self._unchecked_bytes = _UNCHECKED_BYTES
        self._synchronous = synchronous
        self._max_pages = max(max_bytes // _PAGE_BYTES, 16)
        self._busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._is_closed = False

    @contextmanager
    def connect(self) -> Generator[sqlite3.Connection]:
        """Lend the connection, which is in no transaction; others wait meanwhile.

        A single statement is a transaction of its own. Raises `OutboxUnavailable`.
        """
        with self._lock:
            if self._is_closed:
                raise ClientClosed("the client was closed")
            with self._translating():
                if self._connection is None:
                    self._connection = self._open()
                yield self._connection

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Lend the connection within a transaction, which ends with the block.

        In a signal handler this may be a part of the transaction that was interrupted.
        """
        with self.connect() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def roomy_transaction(self) -> Generator[sqlite3.Connection]:
        """Lend it in a transaction that may use a few pages beyond the limit."""
        with self.connect() as connection:
            self._limit_pages(connection, _SPARE_PAGES)
            try:
                with self.transaction():
                    yield connection
            finally:
                self._limit_pages(connection, 0)

    def ensure_file(self) -> None:
        """Move to a new file where somebody has deleted or replaced this one.

        What is written to a file without a name does not survive the process.
        """
        with self._lock:
            old = self._connection
            if old is None or old.in_transaction or not self._is_deleted():
                return
            with self._translating():
                new = self._open()
                try:
                    _copy(old, new)
                except BaseException:
                    new.close()
                    raise
            self._connection = new
            old.close()

    def _is_deleted(self) -> bool:
        try:
            return self.path is not None and os.stat(self.path).st_ino != self._inode  # noqa: PTH116 - on the path of every call
        except OSError:
            return True

    @contextmanager
    def _translating(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._translated(error) from error

    def check_disk(self, added_bytes: int) -> None:
        """Raise `OutboxFull` where more items would take the room that is needed to send them.

        What has been sent is noted in the file: on a full disk nothing could leave the outbox.
        """
        self._unchecked_bytes += added_bytes + _TRANSACTION_BYTES
        if self._unchecked_bytes < _UNCHECKED_BYTES:
            return
        if self._is_disk_low():
            raise OutboxFull(f"cannot use {self.path}: the disk is nearly full")
        self._unchecked_bytes = 0

    def make_room(self) -> None:
        """Copy the log into the file and cut it where the disk is nearly full, if that succeeds."""
        if self._is_disk_low():
            with suppress(OutboxUnavailable), self.connect() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_disk_low(self) -> bool:
        if self.path is None:
            return False
        try:
            total, _, free = self._disk_usage(self.path.parent)
        except OSError:  # opening the file says what is wrong
            return False
        return free < min(_SPARE_DISK_BYTES, total // _SPARE_DISK_SHARE)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def close(self) -> None:
        """Close the file for good."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self.path is not None:
            self._inode = _ensure_writable(self.path)
        connection = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if _is_foreign(connection):
            raise OutboxUnavailable(f"cannot open {self.path}: it is a database of another program")
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        _switch_to_wal(connection)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self._limit_pages(connection, 0)
        if _format(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _format(connection) == 0:  # else another process was first
                for statement in _SCHEMA.split(";")[:-1]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")
        if _format(connection) != _FORMAT:
            raise OutboxUnavailable(
                f"cannot open {self.path}: it was written by another version of the client"
            )

    def _limit_pages(self, connection: sqlite3.Connection, spare: int) -> None:
        connection.execute(f"PRAGMA max_page_count = {self._max_pages + spare}")

    def _translated(self, error: Exception) -> OutboxUnavailable:
        kind = OutboxFull if "is full" in str(error) else OutboxUnavailable
        reason = error.strerror if isinstance(error, OSError) else error
        return kind(f"cannot use {self.path or 'the outbox in memory'}: {reason}")

    def before_fork(self) -> None:
        """Wait until no thread uses the connection, and close it. Items in memory stay."""
        self._lock.acquire()
        if self.path is not None:
            self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Let other threads go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin without connection; items in memory are those of the parent, which sends them."""
        self._lock = threading.RLock()
        if self._connection is not None:
            _ABANDONED.append(self._connection)
            self._connection = None


def _ensure_writable(path: Path) -> int:
    """Create a file where there is none, and return its inode. Raises `OSError`.

    A file that is there is not opened: to close it would free the locks that the system has for
    all connections of this process, and another process could remove the log under them.
    """
    with _CREATING, suppress(FileExistsError):
        # SQLite gives the mode of the file to its log, too.
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path.stat().st_ino


def _is_foreign(connection: sqlite3.Connection) -> bool:
    """Return whether there are tables without a format, which outboxes have from the beginning."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return tables > 0 and _format(connection) == 0


def _format(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _copy(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy items. Another process may copy the same ones: repeats have the same event ids."""
    new.execute("BEGIN IMMEDIATE")
    for table, columns in (("items", "id, path, website, body"), ("refused", "*")):
        rows = old.execute(f"SELECT {columns} FROM {table} ORDER BY id")  # noqa: S608 - constants
        marks = ", ".join("?" * len(rows.description))
        new.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - as above
    new.execute("COMMIT")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode; SQLite does not wait here for another process that does the same."""
    deadline = time.monotonic() + _WAL_TIMEOUT_S
    while not _sets_wal(connection):
        if time.monotonic() > deadline:
            raise OutboxUnavailable("another process does not let the outbox be opened")
        time.sleep(_WAL_PAUSE_S)


def _sets_wal(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


_CREATING = threading.Lock()
"""Held while a file is created: after that, another thread may have locks of it."""

_ABANDONED: list[sqlite3.Connection] = []
"""Connections in memory that a fork copied: nothing may use them, and they are not closed."""
