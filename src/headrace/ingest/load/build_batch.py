"""Makes a batch ready for the store: what is in the logs becomes one Arrow stream for each table.

The records are taken in chunks that fit a processor's cache, and are let go of once they are
columns: over whole batches every step cost half as much again, and the memory of all objects.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from headrace.formats.arrow_batch import StreamWriter
from headrace.ingest.load import quarantine_entries
from headrace.ingest.load.batch import Batch, group_by_kind
from headrace.ingest.load.batch_reader import BatchReader, ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import deduplicate
from headrace.model.log_records import EventKind
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.ledger import LogRange
from headrace.ports.quarantine import QuarantineEntry

_CHUNK_ROWS = 2048

FindKnown = Callable[[Sequence[bytes]], Mapping[bytes, int]]


class EncodedTable(Struct, frozen=True):
    """The rows of one table. `arrow` is None where they cannot all be written as columns."""

    event_kind: EventKind
    rows: int
    arrow: bytes | None


class EncodedBatch(Struct, frozen=True):
    """All that a batch brings.

    `new_digests` has digests to remember with the moment they expire, `duplicates` counts what is
    left out, `undecodable` are records that are none of ours, `oldest_ms` is the first moment of
    receipt.
    """

    ranges: Mapping[str, LogRange]
    tables: Sequence[EncodedTable]
    new_digests: Mapping[bytes, int]
    duplicates: Counter[EventKind]
    undecodable: Sequence[QuarantineEntry]
    oldest_ms: int | None


def build_batch(batch_reader: BatchReader, *, identity: str, find_known: FindKnown) -> EncodedBatch:
    """Read a gathering and make its streams. `find_known` knows what came before the batch."""
    new_digests: dict[bytes, int] = {}

    def find_including_batch(digests: Sequence[bytes]) -> Mapping[bytes, int]:
        in_batch = {digest: new_digests[digest] for digest in digests if digest in new_digests}
        return {**find_known(digests), **in_batch}

    encoders = {event_kind: _TableEncoder(event_kind) for event_kind in EventKind}
    duplicates: Counter[EventKind] = Counter()
    undecodable: list[QuarantineEntry] = []
    oldest_ms: int | None = None
    for records in _chunks(batch_reader):
        dedup = deduplicate(records, find_including_batch)
        new_digests.update(dedup.new_digests)
        duplicates.update(dedup.duplicates)
        undecodable += quarantine_entries.undecodable(records)
        oldest_ms = oldest_receipt(records, oldest_ms)
        for event_kind, batch in group_by_kind(records, dedup.kept, identity=identity).items():
            encoders[event_kind].add(batch)
    encoded = [table.finish() for table in encoders.values() if table.rows]
    return EncodedBatch(
        batch_reader.ranges, encoded, new_digests, duplicates, undecodable, oldest_ms
    )


def oldest_receipt(records: Sequence[ReadRecord], before_ms: int | None = None) -> int | None:
    """Return the first moment of receipt among records and what is known of others before."""
    receipts = [record.received_ms for record in records if record.content is not None]
    if before_ms is not None:
        receipts.append(before_ms)
    return min(receipts, default=None)


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
    """The rows of one table while they are gathered."""

    def __init__(self, event_kind: EventKind) -> None:
        self.rows = 0
        self._event_kind = event_kind
        self._mapping = TABLE_MAPPINGS[event_kind]
        self._writer: StreamWriter | None = StreamWriter(STORAGE_TABLES[self._mapping.table.name])

    def add(self, batch: Batch[Any]) -> None:
        """Take rows. Where they cannot be written, the guilty ones are found when it is stored."""
        self.rows += len(batch.items)
        if batch.items and self._writer is not None:
            try:
                self._writer.add(self._mapping.columns(batch))
            except Exception:  # noqa: BLE001 - no row may ever stop the loader
                self._writer = None

    def finish(self) -> EncodedTable:
        """Write the stream."""
        arrow = None if self._writer is None else self._writer.finish()
        return EncodedTable(self._event_kind, self.rows, arrow)
