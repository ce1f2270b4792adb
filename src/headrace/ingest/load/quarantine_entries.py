"""Builds the quarantine entries of records and items that cannot be stored. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from headrace.ingest.load.batch import Batch
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.bisect import RejectedRow
from headrace.model.log_records import EventKind
from headrace.ports.quarantine import QuarantineEntry


def undecodable(records: Sequence[ReadRecord]) -> Iterator[QuarantineEntry]:
    """Yield an entry for each record that cannot be decoded."""
    for record in records:
        if record.content is None:
            yield QuarantineEntry(
                log=record.log,
                position=record.logged.start,
                reason=f"It cannot be decoded: {record.decode_error}",
                payload=record.logged.payload,
            )


def rejected(
    event_kind: EventKind,
    batch: Batch[Any],
    records: Sequence[ReadRecord],
    rows: Sequence[RejectedRow],
) -> Iterator[QuarantineEntry]:
    """Yield an entry for each item whose row was rejected."""
    for row in rows:
        record = records[batch.record_numbers[row.number]]
        yield QuarantineEntry(
            log=record.log,
            position=record.logged.start,
            reason=row.reason,
            stream=event_kind.value,
            index=batch.indexes[row.number],
            item=_item_fields(batch, row.number, record),
        )


def _item_fields(batch: Batch[Any], number: int, record: ReadRecord) -> Mapping[str, Any]:
    item = batch.items[number]
    fields = msgspec.structs.asdict(item)
    visitor = msgspec.structs.asdict(batch.visitor(number))
    kept = {**fields, "visitor": visitor, "received_ms": batch.received_ms[number]}
    is_imported = record.content is not None and record.content.imported is not None
    return {**kept, "row_id": batch.ids[number].hex()} if is_imported else kept
