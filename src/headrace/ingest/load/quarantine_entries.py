"""Describes for the quarantine what cannot be stored. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from headrace.ingest.load.batch import Batch
from headrace.ingest.load.batch_reader import GatheredRecord
from headrace.ingest.load.bisect import RefusedRow
from headrace.model.log_records import Stream
from headrace.ports.quarantine import Quarantined


def undecodable(records: Sequence[GatheredRecord]) -> Iterator[Quarantined]:
    """Yield an entry for each record that is not one of ours."""
    for record in records:
        if record.content is None:
            yield Quarantined(
                log=record.log,
                position=record.logged.start,
                reason=f"It cannot be decoded: {record.fault}",
                payload=record.logged.payload,
            )


def refused(
    stream: Stream,
    batch: Batch[Any],
    records: Sequence[GatheredRecord],
    rows: Sequence[RefusedRow],
) -> Iterator[Quarantined]:
    """Yield an entry for each item whose row was refused."""
    for row in rows:
        record = records[batch.origins[row.number]]
        yield Quarantined(
            log=record.log,
            position=record.logged.start,
            reason=row.reason,
            stream=stream.value,
            index=batch.indexes[row.number],
            item=_described(batch, row.number),
        )


def _described(batch: Batch[Any], number: int) -> Mapping[str, Any]:
    item = batch.items[number]
    fields = msgspec.structs.asdict(item)
    visitor = msgspec.structs.asdict(batch.visitors[number])
    return {**fields, "visitor": visitor, "received_ms": batch.received_ms[number]}
