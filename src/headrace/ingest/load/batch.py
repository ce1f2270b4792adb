"""The items of one batch that go into one table, and the ids of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from zlib import crc32

from headrace.ingest.load.batch_reader import GatheredRecord
from headrace.model.log_records import (
    ErrorEvent,
    ErrorRecord,
    Event,
    EventRecord,
    LogRecord,
    Stream,
    Visitor,
    Vital,
    VitalRecord,
)
from headrace.ports.event_log import LoggedRecord

ItemT = TypeVar("ItemT", bound=Event | Vital | ErrorEvent)

STREAM_OF: Mapping[type[LogRecord], Stream] = {
    EventRecord: Stream.EVENTS,
    VitalRecord: Stream.VITALS,
    ErrorRecord: Stream.ERRORS,
}


@dataclass(slots=True)
class Batch(Generic[ItemT]):
    """Items that are to be stored in one table, in parallel lists.

    `origins` are the numbers of the records that the items came in, `indexes` their places there.
    """

    items: list[ItemT] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    visitors: list[Visitor] = field(default_factory=list)
    received_ms: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)

    def part(self, first: int, last: int) -> "Batch[ItemT]":
        """Return the items from the first up to but not including the last."""
        here = slice(first, last)
        return Batch(
            self.items[here],
            self.ids[here],
            self.visitors[here],
            self.received_ms[here],
            self.origins[here],
            self.indexes[here],
        )


def collect(
    records: Sequence[GatheredRecord], kept: Sequence[Sequence[int]], *, identity: str
) -> Mapping[Stream, Batch[Any]]:
    """Lay the kept items of all records side by side, by stream.

    `kept` has the indexes of the items for each record; `identity` is the ledger's.
    """
    batches: dict[Stream, Batch[Any]] = {stream: Batch() for stream in Stream}
    batch_of = {record_type: batches[stream] for record_type, stream in STREAM_OF.items()}
    numbers = {log: log_number(identity, log) for log in {record.log for record in records}}
    for origin, (record, indexes) in enumerate(zip(records, kept, strict=True)):
        content, count = record.content, len(indexes)
        if content is None or not count:
            continue
        items: Sequence[Any] = content.items
        if count < len(items):
            items = [items[index] for index in indexes]
        visitor, received_ms = content.visitor, content.received_ms
        batch = batch_of[type(content)]
        batch.items += items
        batch.ids += row_ids(numbers[record.log], record.logged, received_ms, indexes)
        batch.visitors += [item.visitor or visitor for item in items]
        batch.received_ms += (received_ms,) * count
        batch.origins += (origin,) * count
        batch.indexes += indexes
    return batches


def log_number(identity: str, log: str) -> int:
    """Return two bytes for a log's name that differ between logs and between machines."""
    digits = log.rpartition("-")[2]
    number = int(digits) if digits.isdecimal() else crc32(log.encode())
    return (number ^ crc32(identity.encode())) & 0xFFFF


def row_ids(
    number: int, record: LoggedRecord, received_ms: int, indexes: Sequence[int]
) -> list[bytes]:
    """Return the ids of a record's items: they sort by arrival and depend on the place alone.

    Six bytes of receipt, two of the log, three of the segment, five of place and index. A record
    has more bytes than items, so place plus index is another number for every item.
    """
    start = record.start
    head_number = received_ms << 40 | number << 24 | start.segment & 0xFFFFFF
    if len(indexes) == 1:  # a record of one item is what most senders make
        return [(head_number << 40 | start.offset + indexes[0]).to_bytes(16, "big")]
    head, place = head_number.to_bytes(11, "big"), start.offset
    return [head + (place + index).to_bytes(5, "big") for index in indexes]
