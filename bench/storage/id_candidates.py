"""Three ways to remember event ids behind one small interface, for `bench/storage/dedup_ledger.py`.

Each makes what it remembers durable with one call, together with an offset as the ledger does.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from arro3.core import Array, DataType, Field, RecordBatch, Schema
from arro3.io import write_ipc_stream

from bench.baselines.chdb import BareChdb
from headrace.adapters.sqlite.ledger import SqliteLedger

LOOKUP_CHUNK = 500
CACHE_KIB = 65_536
SWEPT_PER_DIGEST = 8


class Candidate(Protocol):
    """What remembers digests of sixteen bytes. Its methods block."""

    def known(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return those of the digests that are remembered, with their expiries."""
        ...

    def remember(self, expiries: Mapping[bytes, int], forget_before_ms: int) -> None:
        """Remember digests durably; those that expired before a time may be forgotten."""
        ...


class Runs:
    """The product's own ledger: runs of blocks and a filter."""

    def __init__(self, folder: Path) -> None:
        self._ledger = SqliteLedger.open(folder / "ledger.sqlite")

    def known(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        return self._ledger.known_digests(digests)

    def remember(self, expiries: Mapping[bytes, int], forget_before_ms: int) -> None:
        batch = self._ledger.begin({}).batch
        self._ledger.commit(batch, new_digests=expiries, forget_before_ms=forget_before_ms)


class Tree:
    """A table of SQLite with the digest as its key: the ledger before its sixth version."""

    def __init__(self, folder: Path) -> None:
        self._connection = connection = sqlite3.connect(
            folder / "tree.sqlite", isolation_level=None
        )
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("CREATE TABLE IF NOT EXISTS batches (batch INTEGER)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS seen (digest BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )
        self._swept = b""

    def known(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        found: dict[bytes, int] = {}
        ordered = sorted(digests)
        for start in range(0, len(ordered), LOOKUP_CHUNK):
            chunk = ordered[start : start + LOOKUP_CHUNK]
            sql = f"SELECT * FROM seen WHERE digest IN ({','.join('?' * len(chunk))})"
            found.update(self._connection.execute(sql, chunk))
        return found

    def remember(self, expiries: Mapping[bytes, int], forget_before_ms: int) -> None:
        execute = self._connection.execute
        execute("INSERT INTO batches VALUES (1)")  # the beginning of a batch is a commit too
        execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT OR REPLACE INTO seen VALUES (?, ?)", sorted(expiries.items())
        )
        end = execute(
            "SELECT digest FROM seen WHERE digest > ? ORDER BY digest LIMIT 1 OFFSET ?",
            (self._swept, SWEPT_PER_DIGEST * len(expiries)),
        ).fetchone()
        last = b"\xff" * 16 if end is None else end[0]
        execute(
            "DELETE FROM seen WHERE digest > ? AND digest <= ? AND expires_ms < ?",
            (self._swept, last, forget_before_ms),
        )
        self._swept = b"" if end is None else last
        execute("UPDATE batches SET batch = batch + 1")
        execute("COMMIT")


class StoreTable:
    """A table of the embedded store, sorted by the digest. It commits nothing else."""

    def __init__(self, folder: Path) -> None:
        self._chdb = BareChdb(folder / "store", database="default")
        columns = "digest FixedString(16), expires_ms Int64"
        self._chdb.query_bytes(
            f"CREATE TABLE IF NOT EXISTS ids ({columns}) ENGINE = MergeTree ORDER BY digest "
            "SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"
        )
        self._chdb.query_bytes(f"CREATE TABLE IF NOT EXISTS wanted ({columns}) ENGINE = Memory")
        self._batches = count()

    def known(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        self._chdb.query_bytes("TRUNCATE TABLE wanted")
        self._chdb.insert("INSERT INTO wanted", _stream(dict.fromkeys(digests, 0)))
        rows: list[list[Any]] = self._chdb.query(
            "SELECT hex(digest), max(expires_ms) FROM ids "
            "WHERE digest IN (SELECT digest FROM wanted) GROUP BY digest"
        )
        return {bytes.fromhex(digest): expiry_ms for digest, expiry_ms in rows}

    def remember(self, expiries: Mapping[bytes, int], forget_before_ms: int) -> None:
        self._chdb.insert("INSERT INTO ids", _stream(expiries))
        if next(self._batches) == 0 and forget_before_ms:  # once a day would do
            self._chdb.query_bytes(f"DELETE FROM ids WHERE expires_ms < {forget_before_ms:d}")


def _stream(expiries: Mapping[bytes, int]) -> bytes:
    schema = Schema([Field("digest", DataType.binary(16)), Field("expires_ms", DataType.int64())])
    batch = RecordBatch.from_arrays(  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        [
            Array(list(expiries), DataType.binary(16)),
            Array(list(expiries.values()), DataType.int64()),
        ],
        schema=schema,
    )
    stream = BytesIO()
    write_ipc_stream(batch, stream, compression=None)
    return stream.getvalue()


CANDIDATES: Mapping[str, Callable[[Path], Candidate]] = {
    "tree": Tree,
    "runs": Runs,
    "store": StoreTable,
}
