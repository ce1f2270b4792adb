"""Derives the rows that must be in the store from the loaded records still in a log."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from headrace.adapters.event_log.segment_check import loaded_records
from headrace.adapters.store.dialect.reports import ExpectedRows
from headrace.formats.row_ids import EVENT_KIND_OF, log_number, row_ids
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.log_records import ErrorEvent, Event, Vital, decode_record
from headrace.model.storage import TABLE_OF_KIND
from headrace.ports.event_log import LoggedRecord, LogOffset


def expected_rows(
    path: Path, *, identity: str, loaded: LogOffset, cutoffs: Mapping[str, Cutoffs]
) -> list[ExpectedRows]:
    """Return, by table, the ids of the rows of a log's records before `loaded`.

    Items with an event id or an Idempotency-Key are left out: as duplicates they may not have been
    stored, and the ledger forgets that; items from the quarantine never are duplicates. So are
    erased and expired items, and imported ones: their ids are not those of the log; and items
    before the cutoff of their website, which may have been pruned. Raises `OSError`.
    """
    ids: defaultdict[str, set[bytes]] = defaultdict(set)
    number = log_number(identity, path.name)
    for record in loaded_records(path, loaded):
        for table, row_id in _expected_ids(record, number, cutoffs):
            ids[table].add(row_id)
    return [
        ExpectedRows(path.name, table, frozenset(table_ids)) for table, table_ids in ids.items()
    ]


def _expected_ids(
    record: LoggedRecord, number: int, cutoffs: Mapping[str, Cutoffs]
) -> Iterator[tuple[str, bytes]]:
    try:
        content = decode_record(record.payload)
    except msgspec.MsgspecError:
        return  # it was quarantined
    if content.idempotency_digest or content.imported is not None:
        return
    items: Sequence[Event | Vital | ErrorEvent] = content.items
    erased = () if content.erased is None else content.erased.indexes
    not_stored = frozenset((*erased, *content.expired))
    table = TABLE_OF_KIND[EVENT_KIND_OF[type(content)]].name
    indexes = [
        index
        for index, item in enumerate(items)
        if (content.is_requeued or not item.event_id)
        and index not in not_stored
        and item.time_ms >= (_cutoff_ms(cutoffs, item.website_id, table) or 0)
    ]
    for row_id in row_ids(number, record, content.received_ms, indexes):
        yield table, row_id


def _cutoff_ms(cutoffs: Mapping[str, Cutoffs], website_id: str, table: str) -> int | None:
    return cutoffs.get(website_id, NO_CUTOFFS).of_stored_table(table)
