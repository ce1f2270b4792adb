"""Copies rows from one store to another until both have the same rows.

A comparison of both stores finds the rows to copy. The only state is the chunk being sent: it is
written to disk before it is sent, and after a crash the next run sends it again first, byte for
byte and with the same token.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import groupby
from typing import Protocol, cast

from arro3.core import Array, DataType, RecordBatch, Table
from arro3.io import read_ipc_stream, write_ipc_stream

from headrace.adapters.store_migration.copy_stores import CopyStore
from headrace.adapters.store_migration.migration_state import Chunk
from headrace.adapters.store_migration.plan import (
    ChunkLimits,
    DayToCopy,
    MinuteDigests,
    ReadRange,
    SizedDigest,
    plan_read_ranges,
)
from headrace.adapters.store_migration.selects import (
    RowRange,
    select_day_digests,
    select_ids,
    select_minute_digests,
    select_rows,
)
from headrace.formats.arrow_batch import BatchMetadata, RowKey, encode_batch_metadata
from headrace.model.catalog import STORED_TABLES
from headrace.model.catalog import Table as CatalogTable
from headrace.model.migration import DayKey, DayMismatch, Digest
from headrace.model.storage import STORAGE_TABLES, StoredTable

_TABLES: Mapping[str, CatalogTable] = {table.name: table for table in STORED_TABLES}


class ChunkJournal(Protocol):
    """Keeps the chunk being sent on disk."""

    def pending(self) -> Chunk | None:
        """Return the chunk that was begun and not ended; None without one."""
        ...

    def begin(self, table: str, stream: bytes) -> Chunk:
        """Assign a token to a chunk and write both to disk durably."""
        ...

    def end(self) -> None:
        """Remove the chunk: it is stored."""
        ...


class CopyProgress(Protocol):
    """Receives the progress of a copy."""

    def comparing(self) -> None:
        """Report that both stores are being read."""
        ...

    def copying(self, done: int, total: int) -> None:
        """Report how many of the missing rows are copied."""
        ...


class StoreCopier:
    """Copies rows; blocking. Nothing else may change the target meanwhile.

    Every method raises `OperatorError`, and may then be called again.
    """

    def __init__(
        self,
        *,
        source: CopyStore,
        target: CopyStore,
        journal: ChunkJournal,
        progress: CopyProgress,
        limits: ChunkLimits,
    ) -> None:
        self._source = source
        self._target = target
        self._journal = journal
        self._progress = progress
        self._limits = limits
        self._batches: list[RecordBatch] = []
        self.copied = 0

    def resend_pending_chunk(self) -> None:
        """Send the chunk that a killed run may have left behind."""
        chunk = self._journal.pending()
        if chunk is not None:
            self._send(chunk)

    def wait_for_source(self) -> None:
        """Wait until `copy` finds every row, once nothing adds rows to the source any more."""
        self._source.wait_until_consistent()

    def copy(self) -> None:
        """Copy the rows that the target lacks. Its additional rows stay: see `compare`."""
        self._progress.comparing()
        days, total = list[DayToCopy](), 0
        for day, source, target in self._mismatches():
            if source.digest.rows:
                days.append(DayToCopy(day, source, is_absent=not target.digest.rows))
                total += max(source.digest.rows - target.digest.rows, 0)
        self._progress.copying(0, total)
        for table, read_ranges in groupby(
            plan_read_ranges(days, self._digests_by_minute, self._limits),
            key=lambda read_range: read_range.table,
        ):
            for _ in self._copy_table(table, read_ranges):
                self._progress.copying(min(self.copied, total), total)

    def compare(self) -> Sequence[DayMismatch]:
        """Return the days that differ."""
        self._progress.comparing()
        self._target.wait_until_consistent()
        return [
            DayMismatch(day, source.digest, target.digest)
            for day, source, target in self._mismatches()
        ]

    def _mismatches(self) -> Iterator[tuple[DayKey, SizedDigest, SizedDigest]]:
        for table in STORAGE_TABLES.values():
            source = _read_day_digests(self._source, table)
            target = _read_day_digests(self._target, table)
            for day in sorted(source.keys() | target.keys()):
                pair = source.get(day, SizedDigest()), target.get(day, SizedDigest())
                if pair[0].digest != pair[1].digest:
                    yield day, *pair

    def _digests_by_minute(self, day: DayToCopy) -> MinuteDigests:
        table, row_range = STORAGE_TABLES[day.day.table], day.row_range()
        return MinuteDigests(
            source=_read_minute_digests(self._source, table, row_range),
            target={} if day.is_absent else _read_minute_digests(self._target, table, row_range),
        )

    def _copy_table(self, table: str, read_ranges: Iterable[ReadRange]) -> Iterator[None]:
        """Collect rows, of several websites if those are small, and send them in chunks."""
        for read_range in read_ranges:
            batch = self._read(STORAGE_TABLES[table], read_range)
            if batch is None:
                continue
            if _exceeds_limits([*self._batches, batch], self._limits):
                self._flush(table)
                yield
            self._batches.append(batch)
        self._flush(table)
        yield

    def _read(self, table: StoredTable, read_range: ReadRange) -> RecordBatch | None:
        row_range = read_range.row_range.parameters()
        stream = self._source.arrow(select_rows(table), row_range)
        existing_ids: frozenset[bytes] = frozenset()
        if not read_range.is_absent or self._target.is_eventually_consistent():
            found = self._target.rows(select_ids(self._target.id_source(table)), row_range)
            existing_ids = frozenset(bytes.fromhex(one) for (one,) in found)
        return _missing_rows(stream, existing_ids)

    def _flush(self, table: str) -> None:
        if not self._batches:
            return
        (batch,) = Table.from_batches(self._batches).combine_chunks().to_batches()
        self._batches = []
        self._send(self._journal.begin(table, _encode_chunk(batch)))
        self.copied += batch.num_rows

    def _send(self, chunk: Chunk) -> None:
        self._target.insert(_TABLES[chunk.table], chunk.stream, token=chunk.token)
        self._journal.end()


def _read_day_digests(store: CopyStore, table: StoredTable) -> Mapping[DayKey, SizedDigest]:
    return {
        DayKey(table.name, website_id, int(day)): _parse_digest(digest)
        for website_id, day, *digest in store.rows(select_day_digests(table), {})
    }


def _read_minute_digests(
    store: CopyStore, table: StoredTable, day: RowRange
) -> Mapping[int, SizedDigest]:
    rows = store.rows(select_minute_digests(table), day.parameters())
    return {int(minute): _parse_digest(digest) for minute, *digest in rows}


def _parse_digest(digest: Sequence[str]) -> SizedDigest:
    rows, checksum, size = map(int, digest)
    return SizedDigest(Digest(rows, checksum), size)


def _exceeds_limits(batches: Sequence[RecordBatch], limits: ChunkLimits) -> bool:
    rows = sum(batch.num_rows for batch in batches)
    return rows > limits.rows or sum(batch.nbytes for batch in batches) > limits.bytes


def _missing_rows(stream: bytes, existing_ids: frozenset[bytes]) -> RecordBatch | None:
    """Return the rows of a stream whose ids are missing, as one batch; None if there are none."""
    batches = read_ipc_stream(BytesIO(stream)).read_all().combine_chunks().to_batches()
    if not batches:
        return None
    (batch,) = batches
    if existing_ids:
        ids = cast("list[bytes]", batch["id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        kept = [index for index, one in enumerate(ids) if one not in existing_ids]
        batch = batch.take(  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
            Array(kept, DataType.uint64())
        )
    return batch if batch.num_rows else None


def _encode_chunk(batch: RecordBatch) -> bytes:
    """Encode a chunk with the metadata of the loader's batches; see `read_batch_metadata`."""
    first: bytes = batch["id"][0].as_py()
    website: bytes = batch["website_id"][0].as_py()
    time_ms: int = batch["time"].cast(DataType.int64())[0].as_py()
    websites = cast("list[bytes]", batch["website_id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    metadata = BatchMetadata(
        RowKey(website.decode(), time_ms, first), frozenset(one.decode() for one in set(websites))
    )
    stream = BytesIO()
    annotated = batch.with_schema(batch.schema.with_metadata(encode_batch_metadata(metadata)))
    write_ipc_stream(annotated, stream, compression=None)
    return stream.getvalue()
