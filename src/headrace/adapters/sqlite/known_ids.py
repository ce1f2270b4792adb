"""The digests of event ids in the ledger's database: runs of blocks, with a filter in memory.

A commit adds its digests as one row of `recent_ids`, and in memory. When there are enough of them
they become a run: entries of a digest and its expiry, in 1,024 blocks by ten of the digest's bits.
So digests are written one after the other, whatever their values, and the runs of a plane of the
filter are merged by joining their blocks. Most look-ups end in the filter; what it may contain is
looked up in a block, so no answer is approximate. A run is deleted when all of it has expired.
"""

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.adapters.sqlite.digest_filter import (
    MIN_SLOTS,
    PLANES,
    SLOTS_PER_ID_OF_A_PLANE,
    DigestFilter,
    planes_in,
)
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES, known_among

KNOWN_IDS_SCHEMA: Final = """
    CREATE TABLE recent_ids (batch INTEGER PRIMARY KEY, entries BLOB NOT NULL);
    CREATE TABLE id_runs (run INTEGER PRIMARY KEY, level INTEGER NOT NULL, ids INTEGER NOT NULL,
        first_expiry_ms INTEGER NOT NULL, last_expiry_ms INTEGER NOT NULL);
    CREATE TABLE id_blocks (block INTEGER PRIMARY KEY, entries BLOB NOT NULL);
"""
RUN_IDS: Final = 65_536
"""Of a run at least; the digests that are not in one yet take 10 MiB."""

_RUNS_PER_MERGE = 8
_MAX_MERGED_IDS = 4_000_000
"""A commit that merges more would keep queries waiting for longer than a second."""

_MAX_PLANE_MS = MILLISECONDS_PER_DAY * 3 // 2
"""Eight planes then cover the nine days for which digests may be looked up."""

_MIN_SLOTS_PER_ID = 5
"""Of a new filter. With a third as many digests as slots it is full, and is replaced."""

_EXPIRY_BYTES = 8
_ENTRY_BYTES: Final = EVENT_ID_DIGEST_BYTES + _EXPIRY_BYTES
_PREFIX_BITS = 10
_BLOCKS_PER_RUN = 1 << _PREFIX_BITS
_LOW_SIX_BITS_FIRST = bytes(byte << 2 & 0xFF for byte in range(256))
_HIGH_TWO_BITS_LAST = bytes(byte >> 6 for byte in range(256))
_BLOCKS_READ_AT_ONCE = 256
_DELETED = -1
"""The level of runs whose blocks are being deleted."""

_DELETED_BLOCKS_PER_COMMIT = 64
_DELETED_BLOCKS_PER_RUN = 2 * _BLOCKS_PER_RUN
_SELECT_BLOCKS = "SELECT block, entries FROM id_blocks WHERE block >= ? AND block < ?"
_INSERT_BLOCK = "INSERT INTO id_blocks VALUES (?, ?)"
_DELETE_BLOCKS = """
    DELETE FROM id_blocks WHERE block IN
        (SELECT block FROM id_blocks WHERE block >= ? AND block < ? LIMIT ?)
"""


class _Run(NamedTuple):
    """A row of `id_runs`."""

    number: int
    level: int
    ids: int
    first_expiry_ms: int
    last_expiry_ms: int

    @property
    def first_block(self) -> int:
        return self.number << _PREFIX_BITS

    @property
    def end_block(self) -> int:
        return (self.number + 1) << _PREFIX_BITS


class KnownIds:
    """Digests with their expiries, over a connection on whose transactions the caller decides.

    What it has in memory is read when it is first needed, and after `reload`.
    """

    def __init__(self, connection: sqlite3.Connection, *, run_ids: int = RUN_IDS) -> None:
        self._connection = connection
        self._run_ids = run_ids
        self._index: _Index | None = None

    def find(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the known ones of the digests with their expiries in epoch ms."""
        index = self._loaded()
        found = dict(known_among(index.recent, digests))
        if not any(index.planes):
            return found
        for digest, planes in index.filter.candidates(digests, EVENT_ID_DIGEST_BYTES):
            expiry_ms = self._expiry_in_runs(digest, index.runs_of(planes))
            if expiry_ms > found.get(digest, 0):
                found[digest] = expiry_ms
        return found

    def every(self) -> Generator[tuple[bytes, int]]:
        """Return all digests with their expiries; some may be there twice."""
        yield from self._loaded().recent.items()
        for run in self._loaded().runs():
            for entries in self._blocks_of(run):
                yield from _decode(entries)

    def add(self, batch: int, expiries: Mapping[bytes, int]) -> None:
        """Add digests with their expiries, in a transaction. `batch` was never added before."""
        if not expiries:
            return
        index = self._loaded()
        if len(index.recent) + len(expiries) < self._run_ids:
            self._connection.execute(
                "INSERT INTO recent_ids VALUES (?, ?)", (batch, b"".join(_encode(expiries)))
            )
            index.recent.update(expiries)
            return
        self._write_run({**index.recent, **expiries} if index.recent else expiries)
        self._connection.execute("DELETE FROM recent_ids")
        index.recent.clear()
        self._delete_blocks(_DELETED_BLOCKS_PER_RUN)

    def forget(self, before_ms: int) -> None:
        """Delete the runs of which all digests expired before a time, in a transaction."""
        index = self._loaded()
        for run in index.runs():
            if run.last_expiry_ms < before_ms:
                self._delete_run(run)
                index.remove(run)
        self._delete_blocks(_DELETED_BLOCKS_PER_COMMIT)

    def forget_all(self) -> None:
        """Delete all digests, in a transaction."""
        for table in ("recent_ids", "id_runs", "id_blocks"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        self.reload()

    def reload(self) -> None:
        """Read the tables again at the next call: a transaction was rolled back."""
        self._index = None

    def _loaded(self) -> "_Index":
        if self._index is None:
            self._index = self._read_index()
        return self._index

    def _read_index(self) -> "_Index":
        execute = self._connection.execute
        recent: dict[bytes, int] = {}
        for (entries,) in execute("SELECT entries FROM recent_ids ORDER BY batch"):
            recent.update(_decode(entries))
        rows = execute("SELECT * FROM id_runs WHERE level >= 0 ORDER BY last_expiry_ms, run")
        index = _Index(recent, [_Run(*row) for row in rows])
        self._fill_filter(index)
        return index

    def _fill_filter(self, index: "_Index") -> None:
        for plane, runs in enumerate(index.planes):
            for run in runs:
                for entries in self._blocks_of(run):
                    index.filter.add(entries, _ENTRY_BYTES, plane)

    def _blocks_of(self, run: _Run) -> Generator[bytes]:
        """Return the entries of a run, some hundred blocks at a time."""
        for first in range(run.first_block, run.end_block, _BLOCKS_READ_AT_ONCE):
            rows = self._connection.execute(_SELECT_BLOCKS, (first, first + _BLOCKS_READ_AT_ONCE))
            yield b"".join([entries for _, entries in rows])

    def _expiry_in_runs(self, digest: bytes, runs: Sequence[_Run]) -> int:
        """Return the latest expiry of a digest in runs, or 0."""
        prefix = _prefixes(digest)[0]
        blocks = [run.first_block + prefix for run in runs]
        marks = ",".join("?" * len(blocks))
        rows = self._connection.execute(
            f"SELECT entries FROM id_blocks WHERE block IN ({marks})",  # noqa: S608 - marks alone
            blocks,
        )
        return max((_expiry_in(entries, digest) for (entries,) in rows), default=0)

    def _write_run(self, expiries: Mapping[bytes, int]) -> None:
        run = _Run(
            self._next_run(), 0, len(expiries), min(expiries.values()), max(expiries.values())
        )
        blocks = _blocks(expiries)
        self._insert_run(run, blocks)
        plane = self._plane_for(run)
        index = self._loaded()  # another one where the planes were distributed again
        index.filter.add(b"".join(blocks.values()), _ENTRY_BYTES, plane)
        index.planes[plane].append(run)
        level = [run for run in index.planes[plane] if run.level == 0]
        while len(level) >= _RUNS_PER_MERGE and _ids(level) <= _MAX_MERGED_IDS:
            merged = self._merge(plane, level)
            level = [run for run in index.planes[plane] if run.level == merged.level]

    def _plane_for(self, run: _Run) -> int:
        """Return the plane that a new run belongs to; begins another when the last one is full."""
        index = self._loaded()
        if index.has_room(run):
            return index.newest_plane
        finished = index.newest_plane
        runs = index.planes[finished]
        if len(runs) > 1 and _ids(runs) <= _MAX_MERGED_IDS:
            self._merge(finished, list(runs))
        if not index.begin_plane():
            self._index = index = _Index(index.recent, index.runs())
            self._fill_filter(index)
            index.begin_plane()
        return index.newest_plane

    def _merge(self, plane: int, runs: Sequence[_Run]) -> _Run:
        """Replace runs of a plane by one, whose blocks are theirs one after the other."""
        index = self._loaded()
        merged = _Run(
            self._next_run(),
            max(run.level for run in runs) + 1,
            _ids(runs),
            min(run.first_expiry_ms for run in runs),
            max(run.last_expiry_ms for run in runs),
        )
        self._insert_run(merged, {})
        for first in range(0, _BLOCKS_PER_RUN, _BLOCKS_READ_AT_ONCE):
            blocks: defaultdict[int, list[bytes]] = defaultdict(list)
            for run in runs:
                start = run.first_block + first
                for block, entries in self._connection.execute(
                    _SELECT_BLOCKS, (start, start + _BLOCKS_READ_AT_ONCE)
                ):
                    blocks[block - run.first_block].append(entries)
            self._insert_blocks(
                merged, {prefix: b"".join(blocks[prefix]) for prefix in sorted(blocks)}
            )
        for run in runs:
            self._delete_run(run)
        kept = [run for run in index.planes[plane] if run not in runs]
        index.planes[plane] = [*kept, merged]
        return merged

    def _next_run(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(run), 0) FROM id_runs").fetchone()
        return int(last) + 1

    def _insert_run(self, run: _Run, blocks: Mapping[int, bytes]) -> None:
        self._connection.execute("INSERT INTO id_runs VALUES (?, ?, ?, ?, ?)", run)
        self._insert_blocks(run, blocks)

    def _insert_blocks(self, run: _Run, blocks: Mapping[int, bytes]) -> None:
        self._connection.executemany(
            _INSERT_BLOCK,
            [(run.first_block + prefix, entries) for prefix, entries in blocks.items()],
        )

    def _delete_run(self, run: _Run) -> None:
        self._connection.execute(
            "UPDATE id_runs SET level = ? WHERE run = ?", (_DELETED, run.number)
        )

    def _delete_blocks(self, count: int) -> None:
        """Delete some blocks of deleted runs: all of a large one would take a commit too long."""
        execute = self._connection.execute
        for row in execute("SELECT * FROM id_runs WHERE level = ?", (_DELETED,)).fetchall():
            run = _Run(*row)
            deleted = execute(_DELETE_BLOCKS, (run.first_block, run.end_block, count)).rowcount
            if deleted == count:
                return
            count -= deleted
            execute("DELETE FROM id_runs WHERE run = ?", (run.number,))


class _Index:
    """What is in memory: digests that are in no run, the filter, and the runs of its planes."""

    def __init__(self, recent: dict[bytes, int], runs: Sequence[_Run]) -> None:
        """Distribute runs, in the order of their expiry, to planes that leave one empty."""
        ids = _ids(runs)
        slots = MIN_SLOTS
        while slots < ids * _MIN_SLOTS_PER_ID:
            slots *= 2
        self.recent = recent
        self.filter = DigestFilter(slots)
        self.planes: list[list[_Run]] = [[] for _ in range(PLANES)]
        self.newest_plane = 0
        for run in runs:
            if _ids(self.planes[self.newest_plane]) * (PLANES - 2) > ids:
                self.newest_plane += 1
            self.planes[self.newest_plane].append(run)

    def runs(self) -> list[_Run]:
        """Return all runs in the order of their expiry."""
        return sorted((run for runs in self.planes for run in runs), key=_by_expiry)

    def runs_of(self, planes: int) -> list[_Run]:
        """Return the runs of planes, which are bits."""
        return [run for plane in planes_in(planes) for run in self.planes[plane]]

    def has_room(self, run: _Run) -> bool:
        """Return whether a new run fits into the newest plane."""
        runs = [*self.planes[self.newest_plane], run]
        span_ms = max(one.last_expiry_ms for one in runs) - min(one.first_expiry_ms for one in runs)
        is_small = _ids(runs) * SLOTS_PER_ID_OF_A_PLANE <= self.filter.slots
        return len(runs) == 1 or (is_small and span_ms <= _MAX_PLANE_MS)

    def begin_plane(self) -> bool:
        """Make an empty plane the newest one; return whether there is one."""
        for plane, runs in enumerate(self.planes):
            if not runs:
                self.newest_plane = plane
                return True
        return False

    def remove(self, run: _Run) -> None:
        """Remove a run; the filter forgets the digests of a plane that has no other."""
        for plane, runs in enumerate(self.planes):
            if run in runs:
                runs.remove(run)
                if not runs:
                    self.filter.clear(plane)


def _ids(runs: Sequence[_Run]) -> int:
    return sum(run.ids for run in runs)


def _by_expiry(run: _Run) -> tuple[int, int]:
    return run.last_expiry_ms, run.number


def _blocks(expiries: Mapping[bytes, int]) -> dict[int, bytes]:
    """Return the entries of digests in blocks, by their prefixes and in the order of those."""
    blocks: list[list[bytes]] = [[] for _ in range(_BLOCKS_PER_RUN)]
    appends = [block.append for block in blocks]
    for prefix, entry in zip(_prefixes(b"".join(expiries)), _encode(expiries), strict=True):
        appends[prefix](entry)
    return {prefix: b"".join(block) for prefix, block in enumerate(blocks) if block}


def _encode(expiries: Mapping[bytes, int]) -> list[bytes]:
    """Return an entry for each digest."""
    encoded = {
        expiry_ms: expiry_ms.to_bytes(_EXPIRY_BYTES, "little")
        for expiry_ms in set(expiries.values())
    }
    return [digest + encoded[expiry_ms] for digest, expiry_ms in expiries.items()]


def _decode(entries: bytes) -> Generator[tuple[bytes, int]]:
    for start in range(0, len(entries), _ENTRY_BYTES):
        end = start + EVENT_ID_DIGEST_BYTES
        expiry_ms = int.from_bytes(entries[end : start + _ENTRY_BYTES], "little")
        yield entries[start:end], expiry_ms


def _expiry_in(entries: bytes, digest: bytes) -> int:
    """Return the latest expiry of a digest in entries, or 0."""
    latest_ms = 0
    start = entries.find(digest)
    while start >= 0:
        if start % _ENTRY_BYTES == 0:
            end = start + EVENT_ID_DIGEST_BYTES
            expiry_ms = int.from_bytes(entries[end : start + _ENTRY_BYTES], "little")
            latest_ms = max(latest_ms, expiry_ms)
        start = entries.find(digest, start + 1)
    return latest_ms


def _prefixes(digests: bytes) -> "array[int]":
    """Return ten bits of each of the joined digests: the numbers of their blocks in a run.

    They are the leading bits of positions in the filter, so what is added block by block is added
    to neighbouring positions: that takes half the time of adding it in another order.
    """
    leading, next_bits = digests[2::EVENT_ID_DIGEST_BYTES], digests[1::EVENT_ID_DIGEST_BYTES]
    low = int.from_bytes(leading.translate(_LOW_SIX_BITS_FIRST), "little")
    low |= int.from_bytes(next_bits.translate(_HIGH_TWO_BITS_LAST), "little")
    pairs = bytearray(2 * len(leading))
    pairs[0::2] = low.to_bytes(len(leading), "little")
    pairs[1::2] = leading.translate(_HIGH_TWO_BITS_LAST)
    return array("H", bytes(pairs))
