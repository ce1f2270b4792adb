"""Stores a batch the careful way: what was begun before, and what the store does not take whole."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.ingest.load import quarantine_entries
from headrace.ingest.load.batch import group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.bisect import BisectingInserter
from headrace.ingest.load.build_batch import EncodedBatch, oldest_receipt
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import DedupResult
from headrace.model.log_records import EventKind
from headrace.ports.ledger import Ledger
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.store import StoreWriter


class BatchResult(Struct, frozen=True):
    """What became of a batch: rows that are stored, items left out, and what is to be set aside.

    `new_digests` are digests to remember with the moment they expire, `oldest_ms` is the first
    moment of receipt.
    """

    rows: Mapping[EventKind, int]
    duplicates: Counter[EventKind]
    quarantined: Sequence[QuarantineEntry]
    new_digests: Mapping[bytes, int]
    oldest_ms: int | None


def stored_result(batch: EncodedBatch) -> BatchResult:
    """Return the outcome of a batch whose streams the store has taken."""
    return BatchResult(
        rows={encoded.event_kind: encoded.rows for encoded in batch.tables},
        duplicates=batch.duplicates,
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
) -> BatchResult:
    """Store all rows of a batch under way but those that the store refuses.

    They are the same rows with the same tokens as the whole streams of the batch had. Raises what
    the store raises for a while.
    """
    batches = group_by_kind(records, dedup.kept, identity=ledger.identity())
    inserter = BisectingInserter(store, ledger, token=token)
    rows: dict[EventKind, int] = {}
    entries = list(quarantine_entries.undecodable(records))
    for event_kind, batch in batches.items():
        rejected = inserter.store(TABLE_MAPPINGS[event_kind], batch)
        rows[event_kind] = len(batch.items) - len(rejected)
        entries += quarantine_entries.rejected(event_kind, batch, records, rejected)
    return BatchResult(rows, dedup.duplicates, entries, dedup.new_digests, oldest_receipt(records))
