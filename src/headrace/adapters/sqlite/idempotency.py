"""The idempotency keys of the last day, in an SQLite file that all workers of a machine share."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headrace.adapters.data_dir.files import create_file_durably
from headrace.adapters.data_dir.sqlite_files import close_durably
from headrace.base.clock import MILLISECONDS_PER_DAY, Clock
from headrace.base.errors import LogUnavailable, OperatorError
from headrace.ports.idempotency import Acquired, Replay

_CLAIM_TTL_MS = 60_000
"""No request takes this long: the worker of an older claim died and was not restarted."""

_POLL_INTERVAL_S = 0.02
_CLEANUP_INTERVAL_MS = 60_000

_WAL_ATTEMPTS = 1_000
_WAL_PAUSE_S = 0.01
"""The worker that is first needs some milliseconds, and seconds on a slow disk."""

_Result = TypeVar("_Result")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS claims (
    digest BLOB PRIMARY KEY,
    owner TEXT NOT NULL,
    claimed_ms INTEGER NOT NULL,
    reply BLOB
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claims_by_age ON claims (claimed_ms);
"""


class SqliteIdempotencyStore:
    """The `IdempotencyStore` of one worker. Its statements run in order on one thread.

    A power failure may lose the last commits (synchronous=NORMAL): the records of the log have the
    digests too, and the loader drops duplicates.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, owner: str, clock: Clock
    ) -> None:
        self._connection = connection
        self._path = path
        self._owner = owner
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="idempotency")
        self._next_cleanup_ms = 0
        self._to_release = set[bytes]()

    @classmethod
    def open(cls, path: Path, *, owner: str, clock: Clock) -> "SqliteIdempotencyStore":
        """Open or create the file, and release the claims that this owner left when it was killed.

        `owner` names the worker, uniquely among live ones. Raises `OperatorError`.
        """
        try:
            create_file_durably(path)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, owner)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(f"cannot open the idempotency keys in {path}: {error}") from error
        return cls(connection, path, owner=owner, clock=clock)

    async def acquire(self, digest: bytes) -> Acquired | Replay:
        """Claim a digest; waits while another request has the claim."""
        # Another process may have it, and SQLite notifies nobody: poll.
        while (result := await self._try_acquire(digest)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_INTERVAL_S)
        return result

    async def save_response(self, digest: bytes, response: bytes) -> None:
        """Save the response of an accepted request; on failure release the claim."""
        await self._run(self._save_in_thread, digest, response)

    async def release(self, digest: bytes) -> None:
        """Release the claim, later where the disk is full. A saved response remains."""
        self._to_release.add(digest)
        await self._run(self._release_in_thread)

    async def close(self) -> None:
        """Close the file. May be called twice."""
        self._thread.shutdown()
        close_durably(self._connection, self._path)

    async def _try_acquire(self, digest: bytes) -> Acquired | Replay | None:
        future = self._submit(self._acquire_in_thread, digest)
        try:
            return await _await_result(future)
        except asyncio.CancelledError:
            future.add_done_callback(partial(self._release_orphaned, digest))
            raise

    def _release_orphaned(
        self, digest: bytes, future: asyncio.Future[Acquired | Replay | None]
    ) -> None:
        """Release a claim whose caller was cancelled; not one that another request has."""
        if future.exception() is None and future.result() == Acquired():
            self._to_release.add(digest)
            with suppress(RuntimeError):  # closed: the next worker of this name releases it
                self._submit(self._release_in_thread)

    async def _run(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        """Run a transaction on the thread. Raises `LogUnavailable`: nothing is acknowledged yet."""
        return await _await_result(self._submit(work, *arguments))

    def _submit(self, work: Callable[..., _Result], *arguments: object) -> asyncio.Future[_Result]:
        """Start work on the thread. It completes also when the caller is cancelled."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        future.add_done_callback(_consume_exception)
        return future

    def _acquire_in_thread(self, digest: bytes) -> Acquired | Replay | None:
        """Claim in one transaction, so that one of two workers is first; None means: retry."""
        now_ms = self._clock.now_ms()
        with self._releasing_transaction():
            self._delete_expired(now_ms)
            row = self._connection.execute(
                "SELECT reply, claimed_ms FROM claims WHERE digest = ?", (digest,)
            ).fetchone()
            if row is None or _is_expired(row, now_ms):
                self._connection.execute(
                    "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, NULL)",
                    (digest, self._owner, now_ms),
                )
                return Acquired()
            return None if row[0] is None else Replay(row[0])

    def _save_in_thread(self, digest: bytes, response: bytes) -> None:
        try:
            self._execute("UPDATE claims SET reply = ? WHERE digest = ?", (response, digest))
        except sqlite3.Error:
            self._to_release.add(digest)
            raise

    def _release_in_thread(self) -> None:
        with self._releasing_transaction():
            pass

    @contextmanager
    def _releasing_transaction(self) -> Generator[None]:
        """Run a transaction that first releases the pending claims; roll it back on failure."""
        to_release = frozenset(self._to_release)  # the event loop may add more meanwhile
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for digest in to_release:
                self._delete_claim(digest)
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._to_release -= to_release

    def _delete_claim(self, digest: bytes) -> None:
        self._execute(
            "DELETE FROM claims WHERE digest = ? AND owner = ? AND reply IS NULL",
            (digest, self._owner),
        )

    def _delete_expired(self, now_ms: int) -> None:
        wait_ms = self._next_cleanup_ms - now_ms
        if not 0 < wait_ms <= _CLEANUP_INTERVAL_MS:  # also where the clock was set back
            self._next_cleanup_ms = now_ms + _CLEANUP_INTERVAL_MS
            self._execute(
                "DELETE FROM claims WHERE claimed_ms <= ?", (now_ms - MILLISECONDS_PER_DAY,)
            )

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        self._connection.execute(statement, values)


def _prepare(connection: sqlite3.Connection, owner: str) -> None:
    connection.execute("PRAGMA busy_timeout = 5000")
    _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(_SCHEMA)
    connection.execute("DELETE FROM claims WHERE owner = ? AND reply IS NULL", (owner,))


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode; SQLite does not wait here for another worker that does the same."""
    for attempts_left in reversed(range(_WAL_ATTEMPTS)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not attempts_left:
                raise
            time.sleep(_WAL_PAUSE_S)
        else:
            return


async def _await_result(future: asyncio.Future[_Result]) -> _Result:
    try:
        return await asyncio.shield(future)
    except sqlite3.Error as error:
        raise LogUnavailable(f"cannot write the idempotency keys: {error}") from error


def _consume_exception(done: asyncio.Future[Any]) -> None:
    done.exception()  # marks it as retrieved: the caller may have been cancelled


def _is_expired(row: tuple[bytes | None, int], now_ms: int) -> bool:
    response, claimed_ms = row
    ttl_ms = _CLAIM_TTL_MS if response is None else MILLISECONDS_PER_DAY
    return now_ms - claimed_ms >= ttl_ms
