"""The items of one batch for one table, with the ids of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from headrace.formats.row_ids import EVENT_KIND_OF, log_number, record_row_ids
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.deduplicate import DedupResult
from headrace.model.log_records import (
    ErrorEvent,
    Event,
    EventKind,
    Visitor,
    Vital,
)

ItemT = TypeVar("ItemT", bound=Event | Vital | ErrorEvent)


@dataclass(slots=True)
class Batch(Generic[ItemT]):
    """Items for one table, in parallel lists.

    `digests` are those of the event ids, empty without one. `visitor_numbers` are those of the
    items' records in `visitors`, which has each visitor once with its number; an item may have a
    visitor of its own. `record_numbers` are the numbers of the items' records in the batch,
    `indexes` their indexes in those.
    """

    items: list[ItemT] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    visitors: dict[Visitor, int] = field(default_factory=dict)
    visitor_numbers: list[int] = field(default_factory=list)
    received_ms: list[int] = field(default_factory=list)
    record_numbers: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)

    def slice(self, first: int, last: int) -> "Batch[ItemT]":
        """Return the items from the first up to but not including the last."""
        span = slice(first, last)
        return Batch(
            self.items[span],
            self.ids[span],
            self.digests[span],
            self.visitors,
            self.visitor_numbers[span],
            self.received_ms[span],
            self.record_numbers[span],
            self.indexes[span],
        )

    def visitor(self, number: int) -> Visitor:
        """Return the visitor of an item: its own, or that of its record."""
        own = self.items[number].visitor
        return own or list(self.visitors)[self.visitor_numbers[number]]


def group_by_kind(
    records: Sequence[ReadRecord], dedup: DedupResult, *, identity: str
) -> Mapping[EventKind, Batch[Any]]:
    """Group the kept items of all records by kind. `identity` is the ledger's."""
    batches: dict[EventKind, Batch[Any]] = {event_kind: Batch() for event_kind in EventKind}
    batch_of = {
        record_type: batches[event_kind] for record_type, event_kind in EVENT_KIND_OF.items()
    }
    log_numbers = {log: log_number(identity, log) for log in {record.log for record in records}}
    for record_number, (record, indexes) in enumerate(zip(records, dedup.kept, strict=True)):
        content, count = record.content, len(indexes)
        if content is None or not count:
            continue
        items: Sequence[Any] = content.items
        digests = dedup.digests[record_number] or (b"",) * len(items)
        if count < len(items):
            items = [items[index] for index in indexes]
            digests = [digests[index] for index in indexes]
        received_ms = content.received_ms
        batch = batch_of[type(content)]
        batch.items += items
        batch.digests += digests
        batch.ids += record_row_ids(log_numbers[record.log], record.logged, content, indexes)
        visitor_number = batch.visitors.setdefault(content.visitor, len(batch.visitors))
        batch.visitor_numbers += (visitor_number,) * count
        if content.imported is None:
            batch.received_ms += (received_ms,) * count
        else:
            batch.received_ms += [content.imported.received_ms[index] for index in indexes]
        batch.record_numbers += (record_number,) * count
        batch.indexes += indexes
    return batches
