"""Which rows must be in the store, as far as the logs can still tell."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from headrace.adapters.event_log.segment_check import loaded_records
from headrace.adapters.store.dialect.reports import ExpectedRows
from headrace.formats.row_ids import STREAM_OF, log_number, row_ids
from headrace.model.log_records import ErrorEvent, Event, Vital, decode_record
from headrace.model.storage import TABLE_OF_STREAM
from headrace.ports.event_log import LoggedRecord, LogPosition


def expected_rows(path: Path, *, identity: str, loaded: LogPosition) -> list[ExpectedRows]:
    """Return the rows, by table, of what a log still holds and the ledger has noted as stored.

    Items that may repeat others, by their event id or by an Idempotency-Key, are left out: whether
    they were stored cannot be known any more.
    """
    ids: defaultdict[str, set[bytes]] = defaultdict(set)
    number = log_number(identity, path.name)
    for record in loaded_records(path, loaded):
        for table, one in _rows_of(record, number):
            ids[table].add(one)
    return [ExpectedRows(path.name, table, frozenset(found)) for table, found in ids.items()]


def _rows_of(record: LoggedRecord, number: int) -> Iterator[tuple[str, bytes]]:
    try:
        content = decode_record(record.payload)
    except msgspec.MsgspecError:
        return  # it was set aside
    if content.repeat_key:
        return
    items: Sequence[Event | Vital | ErrorEvent] = content.items
    indexes = [index for index, item in enumerate(items) if not item.event_id]
    table = TABLE_OF_STREAM[STREAM_OF[type(content)]].name
    for one in row_ids(number, record, content.received_ms, indexes):
        yield table, one
