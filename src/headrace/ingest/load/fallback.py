"""Stores a batch the careful way: what was begun before, and what the store does not take whole."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.ingest.load import quarantine_entries
from headrace.ingest.load.batch import collect
from headrace.ingest.load.batch_reader import GatheredRecord
from headrace.ingest.load.bisect import PartStorer
from headrace.ingest.load.build_batch import ReadyBatch, oldest_receipt
from headrace.ingest.load.columns import SHAPES
from headrace.ingest.load.deduplicate import Sifting
from headrace.model.log_records import Stream
from headrace.ports.ledger import Ledger
from headrace.ports.quarantine import Quarantined
from headrace.ports.store import StoreWriter


class Outcome(Struct, frozen=True):
    """What became of a batch: rows that are stored, items left out, and what is to be set aside.

    `seen` are digests to remember with the moment they expire, `oldest_ms` is the first moment of
    receipt.
    """

    rows: Mapping[Stream, int]
    repeated: Counter[Stream]
    set_aside: Sequence[Quarantined]
    seen: Mapping[bytes, int]
    oldest_ms: int | None


def stored_whole(batch: ReadyBatch) -> Outcome:
    """Return the outcome of a batch whose streams the store has taken."""
    return Outcome(
        rows={ready.stream: ready.rows for ready in batch.streams},
        repeated=batch.repeated,
        set_aside=batch.undecodable,
        seen=batch.seen,
        oldest_ms=batch.oldest_ms,
    )


def store_by_parts(
    records: Sequence[GatheredRecord],
    sifting: Sifting,
    *,
    store: StoreWriter,
    ledger: Ledger,
    token: str,
) -> Outcome:
    """Store all rows of a batch under way but those that the store refuses.

    They are the same rows with the same tokens as the whole streams of the batch had. Raises what
    the store raises for a while.
    """
    batches = collect(records, sifting.kept, identity=ledger.identity())
    parts = PartStorer(store, ledger, token=token)
    rows: dict[Stream, int] = {}
    entries = list(quarantine_entries.undecodable(records))
    for stream, batch in batches.items():
        refused = parts.store(SHAPES[stream], batch)
        rows[stream] = len(batch.items) - len(refused)
        entries += quarantine_entries.refused(stream, batch, records, refused)
    return Outcome(rows, sifting.repeated, entries, sifting.seen, oldest_receipt(records))
