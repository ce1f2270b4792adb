"""Builds a batch for the store: records of the logs become one Arrow stream per table.

Records are processed in chunks that fit a processor's cache, and are freed once they are columns:
with whole batches every step took half as long again, and all objects were in memory at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from headrace.formats.arrow_batch import StreamWriter
from headrace.formats.row_ids import last_offsets, split_row_ids
from headrace.ingest.load import quarantine_entries
from headrace.ingest.load.batch import Batch, group_by_kind
from headrace.ingest.load.batch_reader import BatchReader, ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import DroppedItems, deduplicate
from headrace.ingest.load.new_digests import NewDigests
from headrace.model.log_records import EventKind
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.ledger import LogRange
from headrace.ports.quarantine import QuarantineEntry

_CHUNK_ROWS = 2048

FindKnown = Callable[[Sequence[bytes]], Mapping[bytes, int]]


class EncodedTable(Struct, frozen=True):
    """The rows of one table. `arrow` is None where some row cannot be encoded."""

    event_kind: EventKind
    rows: int
    arrow: bytes | None


class EncodedBatch(Struct, frozen=True):
    """A batch that is ready to insert.

    `new_digests` are digests to remember with their expiries in epoch milliseconds, `dropped`
    counts the items that are not stored, `undecodable` are records that cannot be decoded,
    `oldest_ms` is the earliest time of receipt. `imported` is what `Ledger.begin` records of
    imported rows.
    """

    ranges: Mapping[str, LogRange]
    tables: Sequence[EncodedTable]
    new_digests: Mapping[bytes, int]
    dropped: Counter[DroppedItems]
    undecodable: Sequence[QuarantineEntry]
    oldest_ms: int | None
    imported: Mapping[int, bytes] = {}


def build_batch(batch_reader: BatchReader, *, identity: str, find_known: FindKnown) -> EncodedBatch:
    """Read a batch and encode it. `find_known` returns the digests known before the batch."""
    new_digests = NewDigests()
    encoders = {event_kind: _TableEncoder(event_kind) for event_kind in EventKind}
    dropped: Counter[DroppedItems] = Counter()
    undecodable: list[QuarantineEntry] = []
    oldest_ms: int | None = None
    imported: dict[int, bytes] = {}
    for records in _chunks(batch_reader):
        dedup = deduplicate(records, find_known, new_digests)
        dropped.update(dedup.dropped)
        undecodable += quarantine_entries.undecodable(records)
        oldest_ms = oldest_receipt(records, oldest_ms)
        _note_imported(records, imported)
        for event_kind, batch in group_by_kind(records, dedup, identity=identity).items():
            encoders[event_kind].add(batch)
    encoded = [table.finish() for table in encoders.values() if table.rows]
    expiries = new_digests.expiries
    return EncodedBatch(
        batch_reader.ranges, encoded, expiries, dropped, undecodable, oldest_ms, imported
    )


def oldest_receipt(records: Sequence[ReadRecord], before_ms: int | None = None) -> int | None:
    """Return the earliest time of receipt among records and `before_ms`."""
    receipts = [record.received_ms for record in records if record.content is not None]
    if before_ms is not None:
        receipts.append(before_ms)
    return min(receipts, default=None)


def _note_imported(records: Sequence[ReadRecord], imported: dict[int, bytes]) -> None:
    """Add the greatest log offsets in the ids of imported rows."""
    for record in records:
        if record.content is not None and record.content.imported is not None:
            ids = split_row_ids(record.content.imported.row_ids)
            for number, offset in last_offsets(ids).items():
                imported[number] = max(imported.get(number, b""), offset)


def _chunks(batch_reader: BatchReader) -> Iterator[list[ReadRecord]]:
    records: list[ReadRecord] = []
    rows = 0
    for record in batch_reader:
        records.append(record)
        rows += 1 if record.content is None else len(record.content.items)
        if rows >= _CHUNK_ROWS:
            yield records
            records, rows = [], 0
    if records:
        yield records


class _TableEncoder:
    """Collects and encodes the rows of one table."""

    def __init__(self, event_kind: EventKind) -> None:
        self.rows = 0
        self._event_kind = event_kind
        self._mapping = TABLE_MAPPINGS[event_kind]
        self._writer: StreamWriter | None = StreamWriter(STORAGE_TABLES[self._mapping.table.name])

    def add(self, batch: Batch[Any]) -> None:
        """Append rows. Where some cannot be encoded, the bisection isolates them later."""
        self.rows += len(batch.items)
        if batch.items and self._writer is not None:
            try:
                self._writer.add(self._mapping.columns(batch))
            except MemoryError:
                raise  # no fault of a row: the load is repeated
            except Exception:  # noqa: BLE001 - no row may ever stop the loader
                self._writer = None

    def finish(self) -> EncodedTable:
        """Return the encoded table."""
        arrow = None if self._writer is None else self._writer.finish()
        return EncodedTable(self._event_kind, self.rows, arrow)
