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
from headrace.ingest.load.batch import Batch, collect
from headrace.ingest.load.batch_reader import GatheredRecord, Gathering
from headrace.ingest.load.columns import SHAPES
from headrace.ingest.load.deduplicate import sift
from headrace.model.log_records import Stream
from headrace.model.storage import STORED
from headrace.ports.ledger import LogRange
from headrace.ports.quarantine import Quarantined

_CHUNK_ROWS = 2048

FindSeen = Callable[[Sequence[bytes]], Mapping[bytes, int]]


class ReadyStream(Struct, frozen=True):
    """The rows of one table. `arrow` is None where they cannot all be written as columns."""

    stream: Stream
    rows: int
    arrow: bytes | None


class ReadyBatch(Struct, frozen=True):
    """All that a batch brings.

    `seen` has digests to remember with the moment they expire, `repeated` counts what is left out,
    `undecodable` are records that are none of ours, `oldest_ms` is the first moment of receipt.
    """

    ranges: Mapping[str, LogRange]
    streams: Sequence[ReadyStream]
    seen: Mapping[bytes, int]
    repeated: Counter[Stream]
    undecodable: Sequence[Quarantined]
    oldest_ms: int | None


def prepare(gathering: Gathering, *, identity: str, find_seen: FindSeen) -> ReadyBatch:
    """Read a gathering and make its streams. `find_seen` knows what came before the batch."""
    seen: dict[bytes, int] = {}

    def find(digests: Sequence[bytes]) -> Mapping[bytes, int]:
        in_batch = {digest: seen[digest] for digest in digests if digest in seen}
        return {**find_seen(digests), **in_batch}

    tables = {stream: _Table(stream) for stream in Stream}
    repeated: Counter[Stream] = Counter()
    undecodable: list[Quarantined] = []
    oldest_ms: int | None = None
    for records in _chunks(gathering):
        sifting = sift(records, find)
        seen.update(sifting.seen)
        repeated.update(sifting.repeated)
        undecodable += quarantine_entries.undecodable(records)
        oldest_ms = oldest_receipt(records, oldest_ms)
        for stream, batch in collect(records, sifting.kept, identity=identity).items():
            tables[stream].add(batch)
    ready = [table.finish() for table in tables.values() if table.rows]
    return ReadyBatch(gathering.ranges, ready, seen, repeated, undecodable, oldest_ms)


def oldest_receipt(records: Sequence[GatheredRecord], before_ms: int | None = None) -> int | None:
    """Return the first moment of receipt among records and what is known of others before."""
    receipts = [record.received_ms for record in records if record.content is not None]
    if before_ms is not None:
        receipts.append(before_ms)
    return min(receipts, default=None)


def _chunks(gathering: Gathering) -> Iterator[list[GatheredRecord]]:
    records: list[GatheredRecord] = []
    rows = 0
    for record in gathering:
        records.append(record)
        rows += 1 if record.content is None else len(record.content.items)
        if rows >= _CHUNK_ROWS:
            yield records
            records, rows = [], 0
    if records:
        yield records


class _Table:
    """The rows of one table while they are gathered."""

    def __init__(self, stream: Stream) -> None:
        self.rows = 0
        self._stream = stream
        self._shape = SHAPES[stream]
        self._writer: StreamWriter | None = StreamWriter(STORED[self._shape.table.name])

    def add(self, batch: Batch[Any]) -> None:
        """Take rows. Where they cannot be written, the guilty ones are found when it is stored."""
        self.rows += len(batch.items)
        if batch.items and self._writer is not None:
            try:
                self._writer.add(self._shape.columns(batch))
            except Exception:  # noqa: BLE001 - no row may ever stop the loader
                self._writer = None

    def finish(self) -> ReadyStream:
        """Write the stream."""
        arrow = None if self._writer is None else self._writer.finish()
        return ReadyStream(self._stream, self.rows, arrow)
