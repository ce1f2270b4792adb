"""The digests of event ids in the ledger's database: runs of blocks, with a filter in memory.

A commit adds its digests as one row of `recent_ids`, and in memory. When there are enough of them
they become a run: entries of a digest and its expiry, in 1,024 blocks by ten of the digest's bits.
So digests are written one after the other, whatever their values, and the runs of a plane of the
filter are merged by joining their blocks. Most look-ups end in the filter; what it may contain is
looked up in a block, so no answer is approximate. A run is deleted when all of it has expired.
"""

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from typing import Final

from headrace.adapters.sqlite.id_entries import ENTRY_BYTES, decode_entries, encode_entries
from headrace.adapters.sqlite.id_index import IdIndex
from headrace.adapters.sqlite.id_runs import (
    DELETED_BLOCKS_PER_RUN,
    ID_RUNS_SCHEMA,
    IdRun,
    IdRuns,
    ids_of,
)
from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES, known_among

KNOWN_IDS_SCHEMA: Final = f"""
    CREATE TABLE recent_ids (batch INTEGER PRIMARY KEY, entries BLOB NOT NULL);
    {ID_RUNS_SCHEMA}
"""
RUN_IDS: Final = 65_536
"""Of a run at least; the digests that are not in one yet take 10 MiB."""

_RUNS_PER_MERGE = 8
_MAX_MERGED_IDS = 4_000_000
"""A commit that merges more would keep queries waiting for longer than a second."""

_DELETED_BLOCKS_PER_COMMIT = 64


class KnownIds:
    """Digests with their expiries, over a connection on whose transactions the caller decides.

    What it has in memory is read when it is first needed, and after `reload`.
    """

    def __init__(self, connection: sqlite3.Connection, *, run_ids: int = RUN_IDS) -> None:
        self._connection = connection
        self._runs = IdRuns(connection)
        self._run_ids = run_ids
        self._index: IdIndex | None = None

    def find(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the known ones of the digests with their expiries in epoch ms."""
        index = self._loaded()
        found = dict(known_among(index.recent, digests))
        if not any(index.planes):
            return found
        for digest, planes in index.filter.candidates(digests, EVENT_ID_DIGEST_BYTES):
            expiry_ms = self._runs.expiry_of(digest, index.runs_of(planes))
            if expiry_ms > found.get(digest, 0):
                found[digest] = expiry_ms
        return found

    def every(self) -> Generator[tuple[bytes, int]]:
        """Return all digests with their expiries; some may be there twice."""
        yield from self._loaded().recent.items()
        for run in self._loaded().runs():
            for entries in self._runs.entries_of(run):
                yield from decode_entries(entries)

    def add(self, batch: int, expiries: Mapping[bytes, int]) -> None:
        """Add digests with their expiries, in a transaction. `batch` was never added before."""
        if not expiries:
            return
        index = self._loaded()
        if len(index.recent) + len(expiries) < self._run_ids:
            self._connection.execute(
                "INSERT INTO recent_ids VALUES (?, ?)", (batch, b"".join(encode_entries(expiries)))
            )
            index.recent.update(expiries)
            return
        self._write_run({**index.recent, **expiries} if index.recent else expiries)
        self._connection.execute("DELETE FROM recent_ids")
        index.recent.clear()
        self._runs.delete_blocks(DELETED_BLOCKS_PER_RUN)

    def forget(self, before_ms: int) -> None:
        """Delete the runs whose digests all expired before a time, in a transaction."""
        index = self._loaded()
        for run in index.runs():
            if run.last_expiry_ms < before_ms:
                self._runs.delete(run)
                index.remove(run)
        self._runs.delete_blocks(_DELETED_BLOCKS_PER_COMMIT)

    def forget_all(self) -> None:
        """Delete all digests, in a transaction."""
        for table in ("recent_ids", "id_runs", "id_blocks"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        self.reload()

    def reload(self) -> None:
        """Read the tables again at the next call: a transaction was rolled back."""
        self._index = None

    def _loaded(self) -> IdIndex:
        if self._index is None:
            self._index = self._read_index()
        return self._index

    def _read_index(self) -> IdIndex:
        recent: dict[bytes, int] = {}
        rows = self._connection.execute("SELECT entries FROM recent_ids ORDER BY batch")
        for (entries,) in rows:
            recent.update(decode_entries(entries))
        index = IdIndex(recent, self._runs.all())
        self._fill_filter(index)
        return index

    def _fill_filter(self, index: IdIndex) -> None:
        for plane, runs in enumerate(index.planes):
            for run in runs:
                for entries in self._runs.entries_of(run):
                    index.filter.add(entries, ENTRY_BYTES, plane)

    def _write_run(self, expiries: Mapping[bytes, int]) -> None:
        run, entries = self._runs.write(expiries)
        plane = self._plane_for(run)
        index = self._loaded()  # another one where the planes were distributed again
        index.filter.add(entries, ENTRY_BYTES, plane)
        index.planes[plane].append(run)
        level = [run for run in index.planes[plane] if run.level == 0]
        while len(level) >= _RUNS_PER_MERGE and ids_of(level) <= _MAX_MERGED_IDS:
            merged = self._merge(plane, level)
            level = [run for run in index.planes[plane] if run.level == merged.level]

    def _plane_for(self, run: IdRun) -> int:
        """Return the plane that a new run belongs to; begins another when the last one is full."""
        index = self._loaded()
        if index.has_room(run):
            return index.newest_plane
        finished = index.newest_plane
        runs = index.planes[finished]
        if len(runs) > 1 and ids_of(runs) <= _MAX_MERGED_IDS:
            self._merge(finished, list(runs))
        if not index.begin_plane():
            self._index = index = IdIndex(index.recent, index.runs())
            self._fill_filter(index)
            index.begin_plane()
        return index.newest_plane

    def _merge(self, plane: int, runs: Sequence[IdRun]) -> IdRun:
        """Replace runs of a plane by one."""
        index = self._loaded()
        merged = self._runs.merge(runs)
        kept = [run for run in index.planes[plane] if run not in runs]
        index.planes[plane] = [*kept, merged]
        return merged
