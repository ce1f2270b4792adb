"""Stores a batch with bisection: a pending one after a crash, or one that the store rejected."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.ingest.load import quarantine_entries
from headrace.ingest.load.batch import group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.bisect import BisectingInserter
from headrace.ingest.load.build_batch import EncodedBatch, oldest_receipt
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import DedupResult, DroppedItems
from headrace.model.log_records import EventKind
from headrace.ports.ledger import Ledger
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.store import StoreWriter


class BatchResult(Struct, frozen=True):
    """The result of a batch: stored rows, dropped items, and entries to quarantine.

    `new_digests` are digests to remember with their expiries in epoch milliseconds, `oldest_ms` is
    the earliest time of receipt.
    """

    rows: Mapping[EventKind, int]
    dropped: Counter[DroppedItems]
    quarantined: Sequence[QuarantineEntry]
    new_digests: Mapping[bytes, int]
    oldest_ms: int | None


def stored_result(batch: EncodedBatch) -> BatchResult:
    """Return the result of a batch that was stored as a whole."""
    return BatchResult(
        rows={encoded.event_kind: encoded.rows for encoded in batch.tables},
        dropped=batch.dropped,
        quarantined=batch.undecodable,
        new_digests=batch.new_digests,
        oldest_ms=batch.oldest_ms,
    )


def insert_with_bisection(
    records: Sequence[ReadRecord],
    dedup: DedupResult,
    *,
    store: StoreWriter,
    ledger: Ledger,
    token: str,
    shards: int | None,
) -> BatchResult:
    """Store all rows of a pending batch but those that the store rejects.

    Rows, tokens and shards are the same as in the first attempt. Raises `StoreUnavailable`.
    """
    batches = group_by_kind(records, dedup, identity=ledger.identity())
    inserter = BisectingInserter(store, ledger, token=token, shards=shards)
    rows: dict[EventKind, int] = {}
    entries = list(quarantine_entries.undecodable(records))
    for event_kind, batch in batches.items():
        rejected = inserter.store(TABLE_MAPPINGS[event_kind], batch)
        rows[event_kind] = len(batch.items) - len(rejected)
        entries += quarantine_entries.rejected(event_kind, batch, records, rejected)
    return BatchResult(rows, dedup.dropped, entries, dedup.new_digests, oldest_receipt(records))
