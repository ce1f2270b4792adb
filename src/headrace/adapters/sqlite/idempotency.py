"""Idempotency keys of the last day in one SQLite file that all workers of a machine share."""

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headrace.base.clock import MILLISECONDS_PER_DAY, Clock
from headrace.base.errors import LogUnavailable, OperatorError
from headrace.ports.idempotency import Claimed, Remembered

REPEATS_FILE = "repeats.sqlite"
"""The file's name within the data directory."""

_ABANDONED_AFTER_MS = 60_000
"""No request holds a claim this long: its worker died and was not started again."""

_POLL_S = 0.02
_FORGET_EVERY_MS = 60_000

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


class SqliteRepeats:
    """The `Repeats` of one worker. Its statements run one after the other on a thread of its own.

    The file may lose its last moments in a power failure: the log's records carry the digests too,
    and the loader drops the second copy.
    """

    def __init__(self, connection: sqlite3.Connection, *, owner: str, clock: Clock) -> None:
        self._connection = connection
        self._owner = owner
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="repeats")
        self._forget_at_ms = 0
        self._to_release = set[bytes]()

    @classmethod
    def open(cls, path: Path, *, owner: str, clock: Clock) -> "SqliteRepeats":
        """Open the file, made where it is not there, and give back what this owner left behind.

        `owner` names the worker; no two live workers share a name. Raises `OperatorError`.
        """
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA busy_timeout = 5000")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
            connection.execute("DELETE FROM claims WHERE owner = ? AND reply IS NULL", (owner,))
        except sqlite3.Error as error:
            raise OperatorError(f"cannot open the idempotency keys in {path}: {error}") from error
        return cls(connection, owner=owner, clock=clock)

    async def claim(self, digest: bytes) -> Claimed | Remembered:
        """Claim a digest; waits while another request holds it."""
        # Who holds the claim may be another process, so there is nothing to wait for but time.
        while (outcome := await self._claim_once(digest)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        return outcome

    async def keep(self, digest: bytes, reply: bytes) -> None:
        """Remember the reply of an accepted request. Where that fails the claim is given back."""
        await self._run(self._keep_now, digest, reply)

    async def release(self, digest: bytes) -> None:
        """Give the claim back, later where the disk is full; a reply that was kept stays."""
        self._to_release.add(digest)
        await self._run(self._release_now)

    async def close(self) -> None:
        """Close the file. May be called twice."""
        self._thread.shutdown()
        self._connection.close()

    async def _claim_once(self, digest: bytes) -> Claimed | Remembered | None:
        claiming = self._begin(self._claim_now, digest)
        try:
            return await _outcome(claiming)
        except asyncio.CancelledError:
            claiming.add_done_callback(partial(self._give_back_unasked, digest))
            raise

    def _give_back_unasked(
        self, digest: bytes, claiming: asyncio.Future[Claimed | Remembered | None]
    ) -> None:
        """Release what was claimed for a caller that is gone; not what another one holds."""
        if claiming.exception() is None and claiming.result() == Claimed():
            self._to_release.add(digest)
            with suppress(RuntimeError):  # closed; the next worker of this name gives it back
                self._begin(self._release_now)

    async def _run(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        """Run one statement on the thread. Raises `LogUnavailable`: nothing was promised yet."""
        return await _outcome(self._begin(work, *arguments))

    def _begin(self, work: Callable[..., _Result], *arguments: object) -> asyncio.Future[_Result]:
        """Begin some work on the thread, which goes on whatever becomes of the caller."""
        begun = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        begun.add_done_callback(_look_at_failure)
        return begun

    def _claim_now(self, digest: bytes) -> Claimed | Remembered | None:
        """Claim in one transaction, so that of two workers one is first; None means: wait."""
        now_ms = self._clock.now_ms()
        with self._giving_back():
            self._forget_old(now_ms)
            row = self._connection.execute(
                "SELECT reply, claimed_ms FROM claims WHERE digest = ?", (digest,)
            ).fetchone()
            if row is None or _is_over(row, now_ms):
                self._connection.execute(
                    "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, NULL)",
                    (digest, self._owner, now_ms),
                )
                return Claimed()
            return None if row[0] is None else Remembered(row[0])

    def _keep_now(self, digest: bytes, reply: bytes) -> None:
        try:
            self._execute("UPDATE claims SET reply = ? WHERE digest = ?", (reply, digest))
        except sqlite3.Error:
            self._to_release.add(digest)
            raise

    def _release_now(self) -> None:
        with self._giving_back():
            pass

    @contextmanager
    def _giving_back(self) -> Generator[None]:
        """Run a transaction that first gives back what is to be released.

        It is over afterwards even where it failed.
        """
        to_release = frozenset(self._to_release)  # more may come meanwhile
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for digest in to_release:
                self._give_back(digest)
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._to_release -= to_release

    def _give_back(self, digest: bytes) -> None:
        self._execute(
            "DELETE FROM claims WHERE digest = ? AND owner = ? AND reply IS NULL",
            (digest, self._owner),
        )

    def _forget_old(self, now_ms: int) -> None:
        if now_ms >= self._forget_at_ms:
            self._forget_at_ms = now_ms + _FORGET_EVERY_MS
            self._execute(
                "DELETE FROM claims WHERE claimed_ms <= ?", (now_ms - MILLISECONDS_PER_DAY,)
            )

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        self._connection.execute(statement, values)


async def _outcome(begun: asyncio.Future[_Result]) -> _Result:
    try:
        return await asyncio.shield(begun)
    except sqlite3.Error as error:
        raise LogUnavailable(f"idempotency keys cannot be written: {error}") from error


def _look_at_failure(done: asyncio.Future[Any]) -> None:
    done.exception()  # whoever began it may be gone, and nobody else looks


def _is_over(row: tuple[bytes | None, int], now_ms: int) -> bool:
    reply, claimed_ms = row
    kept_ms = _ABANDONED_AFTER_MS if reply is None else MILLISECONDS_PER_DAY
    return now_ms - claimed_ms >= kept_ms
