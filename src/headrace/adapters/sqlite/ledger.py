"""The loader's ledger in one SQLite file that only the engine process opens."""

import itertools
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.adapters.data_dir.files import create_file_durably, create_private_directory
from headrace.adapters.data_dir.sqlite_files import close_durably
from headrace.adapters.sqlite.copies import copy_open_sqlite
from headrace.adapters.sqlite.known_ids import RUN_IDS, KnownIds
from headrace.adapters.sqlite.ledger_schema import prepare_ledger
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES, are_event_ids
from headrace.ports.event_log import LogOffset
from headrace.ports.ledger import LogRange, PartOutcome, PendingBatch, RequeuedItem

_LOOKUP_CHUNK_SIZE = 500
_MIN_SWEPT_DIGESTS = 1000
_SWEPT_PER_NEW_DIGEST = 8
"""Each new digest has 8 others checked for expiry, in a circular scan in key order. So all expired
digests are gone after an eighth as many new ones. An index by expiry was larger than the table."""
_SWEEP_END = "SELECT digest FROM seen WHERE digest > ? ORDER BY digest LIMIT 1 OFFSET ?"
_DELETE_EXPIRED_BETWEEN = "DELETE FROM seen WHERE digest > ? AND digest <= ? AND expires_ms < ?"
_DELETE_EXPIRED_AFTER = "DELETE FROM seen WHERE digest > ? AND expires_ms < ?"
_SELECT_KNOWN = "SELECT digest, expires_ms FROM seen WHERE digest IN ({})"
_RECORD_IMPORTED = """
    INSERT INTO imported VALUES (?, ?) ON CONFLICT (log_number)
    DO UPDATE SET last_offset = max(last_offset, excluded.last_offset)
"""
_ENCODER = msgspec.msgpack.Encoder()
_INTENT_DECODER = msgspec.msgpack.Decoder(PendingBatch)


class SqliteLedger:
    """A `Ledger`. Commits are durable (WAL, synchronous=FULL). Only one process can open the file.

    In the database, `seen` are the known digests of idempotency keys (`KnownIds` has those of event
    ids), `positions.place` is the offset within a segment, `ledger.intent` the pending batch,
    `store` the identities of the embedded store's tables, `losses` what is known to be missing in
    them, `imported` the greatest log offset in the ids of imported rows, which are those of other
    logs, and `requeued` the items that a reload must not store from where they were rejected.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, run_ids: int = RUN_IDS
    ) -> None:
        self._connection = connection
        self._path = path
        self._known_ids = KnownIds(connection, run_ids=run_ids)
        # Random, so that frequent restarts do not leave the end of the table unswept.
        (self._sweep_cursor,) = self._row("SELECT randomblob(16)")

    @classmethod
    def open(cls, path: Path, *, run_ids: int = RUN_IDS) -> "SqliteLedger":
        """Open or create the file. Raises `OperatorError` when it is locked, damaged or too new.

        `run_ids` is how many event ids are written together at least; see `KnownIds`.
        """
        try:
            create_private_directory(path.parent)
            create_file_durably(path)
            connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(f"cannot open the ledger {path}: {error}") from error
        try:
            prepare_ledger(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path, run_ids=run_ids)

    def identity(self) -> str:
        """Return the unique name of this ledger; see `ports.ledger.Ledger`."""
        return str(self._row("SELECT identity FROM ledger")[0])

    def stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return the stored offset of each log; see `ports.ledger.Ledger`."""
        with self._translate_ledger_errors():
            rows = self._connection.execute("SELECT log, segment, place FROM positions").fetchall()
        return {log: LogOffset(segment, offset) for log, segment, offset in rows}

    def pending_batch(self) -> PendingBatch | None:
        """Return the batch that was begun and not committed; see `ports.ledger.Ledger`."""
        encoded = self._row("SELECT intent FROM ledger")[0]
        return None if encoded is None else _INTENT_DECODER.decode(encoded)

    def begin(
        self,
        ranges: Mapping[str, LogRange],
        *,
        shards: int | None = None,
        imported: Mapping[int, bytes] | None = None,
    ) -> PendingBatch:
        """Begin a batch; see `ports.ledger.Ledger`."""
        with self._transaction() as connection:
            batch = self._row("SELECT last_batch FROM ledger")[0] + 1
            pending_batch = PendingBatch(batch=batch, ranges=ranges, shards=shards)
            connection.execute(
                "UPDATE ledger SET last_batch = ?, intent = ?",
                (batch, _ENCODER.encode(pending_batch)),
            )
            connection.executemany(_RECORD_IMPORTED, (imported or {}).items())
        return pending_batch

    def parts(self) -> Mapping[str, PartOutcome]:
        """Return the outcomes of the pending batch's parts; see `ports.ledger.Ledger`."""
        with self._translate_ledger_errors():
            rows = self._connection.execute("SELECT token, outcome FROM parts").fetchall()
        return {token: PartOutcome(outcome) for token, outcome in rows}

    def record_part(self, token: str, outcome: PartOutcome) -> None:
        """Record the outcome of a part; see `ports.ledger.Ledger`."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (token, outcome.value))

    def known_digests(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return those of the digests that are known; see `ports.ledger.Ledger`."""
        with self._translate_ledger_errors():
            if are_event_ids(b"".join(digests), len(digests)):
                return self._known_ids.find(digests)
            others = [digest for digest in digests if len(digest) != EVENT_ID_DIGEST_BYTES]
            event_ids = [digest for digest in digests if len(digest) == EVENT_ID_DIGEST_BYTES]
            return {**self._known_ids.find(event_ids), **self._known_others(others)}

    def _known_others(self, digests: Iterable[bytes]) -> Mapping[bytes, int]:
        found: dict[bytes, int] = {}
        remaining = iter(sorted(digests))  # sorted is a seventh faster: neighbours share pages
        while chunk := tuple(itertools.islice(remaining, _LOOKUP_CHUNK_SIZE)):
            sql = _SELECT_KNOWN.format(",".join("?" * len(chunk)))
            found.update(self._connection.execute(sql, chunk))
        return found

    def all_known_digests(self) -> Generator[tuple[bytes, int]]:
        """Return every known digest with its expiry in epoch ms.

        May be iterated while a batch is pending, but not during `commit`. A digest that was
        remembered again after its expiry may be returned with both.
        """
        with self._translate_ledger_errors():
            yield from self._known_ids.every()
            yield from self._connection.execute("SELECT digest, expires_ms FROM seen")

    def commit(
        self, batch: int, *, new_digests: Mapping[bytes, int], forget_before_ms: int
    ) -> Mapping[str, LogOffset]:
        """Commit the pending batch; see `ports.ledger.Ledger`."""
        pending_batch = self.pending_batch()
        if pending_batch is None or pending_batch.batch != batch:
            raise ValueError(f"batch {batch} is not pending")
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)",
                [(log, r.end.segment, r.end.offset) for log, r in pending_batch.ranges.items()],
            )
            event_ids, others = new_digests, dict[bytes, int]()
            if not are_event_ids(b"".join(new_digests), len(new_digests)):
                others = {d: ms for d, ms in new_digests.items() if len(d) != EVENT_ID_DIGEST_BYTES}
                event_ids = {d: ms for d, ms in new_digests.items() if d not in others}
            self._known_ids.add(batch, event_ids)
            self._known_ids.forget(forget_before_ms)
            connection.executemany(
                "INSERT OR REPLACE INTO seen VALUES (?, ?)", sorted(others.items())
            )
            next_cursor = self._sweep(
                forget_before_ms, digests=_MIN_SWEPT_DIGESTS + _SWEPT_PER_NEW_DIGEST * len(others)
            )
            connection.execute("DELETE FROM parts")
            connection.execute("UPDATE ledger SET intent = NULL")
        self._sweep_cursor = next_cursor
        return self.stored_offsets()

    def _sweep(self, forget_before_ms: int, *, digests: int) -> bytes:
        """Delete the expired ones of the next `digests` digests; return the next cursor."""
        execute = self._connection.execute
        end = execute(_SWEEP_END, (self._sweep_cursor, digests)).fetchone()
        if end is not None:
            execute(_DELETE_EXPIRED_BETWEEN, (self._sweep_cursor, *end, forget_before_ms))
            return bytes(end[0])
        execute(_DELETE_EXPIRED_AFTER, (self._sweep_cursor, forget_before_ms))
        end = execute(_SWEEP_END, (b"", digests)).fetchone()  # from the first digest again
        if end is None:
            execute(_DELETE_EXPIRED_AFTER, (b"", forget_before_ms))
            return b""
        execute(_DELETE_EXPIRED_BETWEEN, (b"", *end, forget_before_ms))
        return bytes(end[0])

    def table_identities(self) -> Mapping[str, str]:
        """Return the identity of each table that batches were committed to; empty where unknown."""
        with self._translate_ledger_errors():
            return dict(self._connection.execute("SELECT name, identity FROM store").fetchall())

    def imported_offsets(self) -> Mapping[int, bytes]:
        """Return the greatest log offset in the ids of imported rows, by the log's number."""
        with self._translate_ledger_errors():
            return dict(
                self._connection.execute("SELECT log_number, last_offset FROM imported").fetchall()
            )

    def requeued_items(self) -> Sequence[RequeuedItem]:
        """Return the items that must not be stored again; see `ports.ledger.Ledger`."""
        with self._translate_ledger_errors():
            rows = self._connection.execute(
                "SELECT log, segment, place, item, received_ms FROM requeued"
            ).fetchall()
        return [
            RequeuedItem(log, LogOffset(segment, offset), index, received_ms)
            for log, segment, offset, index, received_ms in rows
        ]

    def losses(self) -> Sequence[str]:
        """Return what the tables lack, one sentence each; empty once an operator accepted it."""
        with self._translate_ledger_errors():
            rows = self._connection.execute("SELECT what FROM losses ORDER BY what").fetchall()
        return [what for (what,) in rows]

    def bind_store(
        self,
        identities: Mapping[str, str],
        *,
        losses: Sequence[str] = (),
        reload: bool = False,
        requeued: Iterable[RequeuedItem] = (),
    ) -> None:
        """Bind the ledger to the tables of a store, and record what they lack.

        With `reload` nothing counts as loaded and no digest is known: the loader starts again at
        the beginning of every log, and passes over the `requeued` items where they were rejected.
        """
        with self._transaction() as connection:
            if reload:
                self._known_ids.forget_all()
                for table in ("positions", "parts", "seen", "requeued"):
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
                connection.execute("UPDATE ledger SET intent = NULL")
            connection.executemany(
                "INSERT OR REPLACE INTO requeued VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        each.log,
                        each.offset.segment,
                        each.offset.offset,
                        each.index,
                        each.received_ms,
                    )
                    for each in requeued
                ],
            )
            connection.execute("DELETE FROM store")
            connection.executemany("INSERT INTO store VALUES (?, ?)", identities.items())
            connection.executemany(
                "INSERT OR REPLACE INTO losses VALUES (?)", [(what,) for what in losses]
            )

    def accept_losses(self) -> None:
        """Forget what the tables lack, because an operator accepts it."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM losses")

    def copy_to(self, path: Path) -> None:
        """Copy the ledger into a new file, for a snapshot. Raises `StoreUnavailable`."""
        with self._translate_ledger_errors():
            copy_open_sqlite(self._connection, path)

    def close(self) -> None:
        """Close the file; see `ports.ledger.Ledger`."""
        close_durably(self._connection, self._path)

    def _row(self, sql: str) -> tuple[Any, ...]:
        with self._translate_ledger_errors():
            row = self._connection.execute(sql).fetchone()
        return cast("tuple[Any, ...]", row)  # the schema inserts the one row of `ledger`

    @contextmanager
    def _translate_ledger_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot use the loader's ledger: {error}") from error

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._translate_ledger_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._known_ids.reload()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
