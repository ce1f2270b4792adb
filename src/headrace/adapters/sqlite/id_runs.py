"""Runs of event ids in the ledger's database: rows of blocks, written in one piece and merged."""

import sqlite3
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.adapters.sqlite.id_entries import (
    BLOCKS_PER_RUN,
    PREFIX_BITS,
    latest_expiry,
    prefix_of,
)

ID_RUNS_SCHEMA: Final = """
    CREATE TABLE id_runs (run INTEGER PRIMARY KEY, level INTEGER NOT NULL, ids INTEGER NOT NULL,
        first_expiry_ms INTEGER NOT NULL, last_expiry_ms INTEGER NOT NULL);
    CREATE TABLE id_blocks (block INTEGER PRIMARY KEY, entries BLOB NOT NULL);
"""
DELETED_BLOCKS_PER_RUN: Final = 2 * BLOCKS_PER_RUN
"""So that runs which are merged or forgotten leave faster than others come."""

_BLOCKS_READ_AT_ONCE = 256
_DELETED = -1
"""The level of runs whose blocks are being deleted."""

_SELECT_BLOCKS = "SELECT block, entries FROM id_blocks WHERE block >= ? AND block < ?"
_INSERT_BLOCK = "INSERT INTO id_blocks VALUES (?, ?)"
_DELETE_BLOCKS = """
    DELETE FROM id_blocks WHERE block IN
        (SELECT block FROM id_blocks WHERE block >= ? AND block < ? LIMIT ?)
"""


class IdRun(NamedTuple):
    """A row of `id_runs`."""

    number: int
    level: int
    ids: int
    first_expiry_ms: int
    last_expiry_ms: int

    @property
    def first_block(self) -> int:
        """The number of its first block."""
        return self.number << PREFIX_BITS

    @property
    def end_block(self) -> int:
        """The number after that of its last block."""
        return (self.number + 1) << PREFIX_BITS


class IdRuns:
    """The tables of runs, over a connection on whose transactions the caller decides."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self) -> list[IdRun]:
        """Return all runs in the order of their expiry."""
        rows = self._connection.execute(
            "SELECT * FROM id_runs WHERE level >= 0 ORDER BY last_expiry_ms, run"
        )
        return [IdRun(*row) for row in rows]

    def entries_of(self, run: IdRun) -> Generator[bytes]:
        """Return the entries of a run, some hundred blocks at a time."""
        for first in range(run.first_block, run.end_block, _BLOCKS_READ_AT_ONCE):
            rows = self._connection.execute(_SELECT_BLOCKS, (first, first + _BLOCKS_READ_AT_ONCE))
            yield b"".join([entries for _, entries in rows])

    def expiry_of(self, digest: bytes, runs: Sequence[IdRun]) -> int:
        """Return the latest expiry of a digest in runs, or 0."""
        prefix = prefix_of(digest)
        blocks = [run.first_block + prefix for run in runs]
        marks = ",".join("?" * len(blocks))
        rows = self._connection.execute(
            f"SELECT entries FROM id_blocks WHERE block IN ({marks})",  # noqa: S608 - marks alone
            blocks,
        )
        return max((latest_expiry(entries, digest) for (entries,) in rows), default=0)

    def write(self, expiries: Mapping[bytes, int]) -> tuple[IdRun, bytes]:
        """Write a run of digests with their expiries; return it and its entries."""
        from headrace.adapters.sqlite.id_blocks import encode_blocks  # noqa: PLC0415 - as `IdIndex`

        different = set(expiries.values())
        run = IdRun(self._next_number(), 0, len(expiries), min(different), max(different))
        blocks = encode_blocks(expiries)
        self._insert(run, blocks)
        return run, b"".join(blocks.values())

    def merge(self, runs: Sequence[IdRun]) -> IdRun:
        """Replace runs by one, whose blocks are theirs one after the other."""
        merged = IdRun(
            self._next_number(),
            max(run.level for run in runs) + 1,
            ids_of(runs),
            min(run.first_expiry_ms for run in runs),
            max(run.last_expiry_ms for run in runs),
        )
        self._insert(merged, {})
        for first in range(0, BLOCKS_PER_RUN, _BLOCKS_READ_AT_ONCE):
            self._insert_blocks(merged, self._joined_blocks(runs, first))
        for run in runs:
            self.delete(run)
        return merged

    def delete(self, run: IdRun) -> None:
        """Delete a run; its blocks go by and by."""
        self._connection.execute(
            "UPDATE id_runs SET level = ? WHERE run = ?", (_DELETED, run.number)
        )

    def delete_blocks(self, count: int) -> None:
        """Delete some blocks of deleted runs: all of a large one would take a commit too long."""
        execute = self._connection.execute
        for row in execute("SELECT * FROM id_runs WHERE level = ?", (_DELETED,)).fetchall():
            run = IdRun(*row)
            deleted = execute(_DELETE_BLOCKS, (run.first_block, run.end_block, count)).rowcount
            if deleted == count:
                return
            count -= deleted
            execute("DELETE FROM id_runs WHERE run = ?", (run.number,))

    def _joined_blocks(self, runs: Sequence[IdRun], first: int) -> dict[int, bytes]:
        """Return blocks of runs from a prefix on, joined by prefix and in the order of those."""
        blocks: defaultdict[int, list[bytes]] = defaultdict(list)
        for run in runs:
            start = run.first_block + first
            for block, entries in self._connection.execute(
                _SELECT_BLOCKS, (start, start + _BLOCKS_READ_AT_ONCE)
            ):
                blocks[block - run.first_block].append(entries)
        return {prefix: b"".join(blocks[prefix]) for prefix in sorted(blocks)}

    def _next_number(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(run), 0) FROM id_runs").fetchone()
        return int(last) + 1

    def _insert(self, run: IdRun, blocks: Mapping[int, bytes]) -> None:
        self._connection.execute("INSERT INTO id_runs VALUES (?, ?, ?, ?, ?)", run)
        self._insert_blocks(run, blocks)

    def _insert_blocks(self, run: IdRun, blocks: Mapping[int, bytes]) -> None:
        self._connection.executemany(
            _INSERT_BLOCK,
            [(run.first_block + prefix, entries) for prefix, entries in blocks.items()],
        )


def ids_of(runs: Sequence[IdRun]) -> int:
    """Return the number of digests in runs."""
    return sum(run.ids for run in runs)
