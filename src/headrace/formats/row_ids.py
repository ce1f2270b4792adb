"""The ids of rows, derived from the offset of their record in its log."""

from collections.abc import Mapping, Sequence
from zlib import crc32

from headrace.model.log_records import (
    ErrorRecord,
    EventKind,
    EventRecord,
    LogRecord,
    VitalRecord,
)
from headrace.ports.event_log import LoggedRecord

EVENT_KIND_OF: Mapping[type[LogRecord], EventKind] = {
    EventRecord: EventKind.EVENTS,
    VitalRecord: EventKind.VITALS,
    ErrorRecord: EventKind.ERRORS,
}


def log_number(identity: str, log: str) -> int:
    """Return a 16-bit number for a log that differs between logs and between machines."""
    digits = log.rpartition("-")[2]
    number = int(digits) if digits.isdecimal() else crc32(log.encode())
    return (number ^ crc32(identity.encode())) & 0xFFFF


def row_ids(
    number: int, record: LoggedRecord, received_ms: int, indexes: Sequence[int]
) -> list[bytes]:
    """Return the ids of a record's items: sorted by arrival, and a function of the offset alone.

    Six bytes of receipt time, two of the log, three of the segment, five of offset plus index. A
    record has more bytes than items, so offset plus index is unique in a segment.
    """
    start = record.start
    prefix_number = received_ms << 40 | number << 24 | start.segment & 0xFFFFFF
    if len(indexes) == 1:  # a record of one item is what most senders make
        return [(prefix_number << 40 | start.offset + indexes[0]).to_bytes(16, "big")]
    prefix, offset = prefix_number.to_bytes(11, "big"), start.offset
    return [prefix + (offset + index).to_bytes(5, "big") for index in indexes]
