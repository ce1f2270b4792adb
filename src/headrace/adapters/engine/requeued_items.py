"""Finds what the log of retried entries has, before the logs are loaded into a new store."""

from collections.abc import Iterator
from typing import Final

import msgspec

from headrace.adapters.data_dir.paths import RETRY_LOG
from headrace.adapters.event_log.unreadable_logs import describe_unreadable
from headrace.base.errors import StoreUnavailable
from headrace.model.log_records import LogRecord, decode_record
from headrace.ports.event_log import LOG_START, LogOffset, LogReader
from headrace.ports.ledger import RequeuedItem

_READ_BYTES: Final = 1024 * 1024


def read_requeued_items(logs: LogReader) -> Iterator[RequeuedItem]:
    """Return the items in the log of retried entries, with where they were rejected.

    What that log has no longer is not among them: it would be lost if it was not rejected again.
    Raises `OSError`, and `StoreUnavailable` where the end of the log is unknown.
    """
    end = logs.durable_offsets().get(RETRY_LOG, LOG_START)
    if RETRY_LOG in logs.unreadable():
        raise StoreUnavailable(describe_unreadable([RETRY_LOG]))
    offset = LOG_START
    while offset < end:
        chunk = logs.read(RETRY_LOG, after=offset, until=end, max_bytes=_READ_BYTES)
        for logged in chunk.records:
            try:
                record = decode_record(logged.payload)
            except msgspec.MsgspecError:  # an entry that could not be decoded, with its bytes
                continue
            yield from _requeued_item(record)
        offset = chunk.end


def _requeued_item(record: LogRecord) -> Iterator[RequeuedItem]:
    source = record.requeued_from
    if source is not None:
        offset = LogOffset(source.segment, source.offset)
        yield RequeuedItem(source.log, offset, source.index, record.received_ms)
