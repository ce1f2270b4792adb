"""The ids of rows, derived from the offset of their record in its log."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import repeat
from typing import Final
from zlib import crc32

from headrace.model.log_records import (
    ErrorRecord,
    EventKind,
    EventRecord,
    LogRecord,
    VitalRecord,
)
from headrace.ports.event_log import LoggedRecord, LogOffset

EVENT_KIND_OF: Mapping[type[LogRecord], EventKind] = {
    EventRecord: EventKind.EVENTS,
    VitalRecord: EventKind.VITALS,
    ErrorRecord: EventKind.ERRORS,
}


ROW_ID_BYTES: Final = 16
RECEIPT_TIME_BITS: Final = 48
"""Of a row id, which begins with them."""

_SOURCE_DIGEST_BYTES: Final = 8
_pack_halves = struct.Struct(">QQ").pack

FOREIGN_LOG: Final = 0xFFFF
"""Stands for the number of a log in the ids of rows that no log of Headrace ever had."""


def log_number(identity: str, log: str) -> int:
    """Return a 16-bit number for a log that differs between logs and between machines."""
    digits = log.rpartition("-")[2]
    number = int(digits) if digits.isdecimal() else crc32(log.encode())
    mixed = (number ^ crc32(identity.encode())) & 0xFFFF
    return 0x7FFF if mixed == FOREIGN_LOG else mixed


def foreign_row_id(time_ms: int, source: bytes) -> bytes:
    """Return the id of a row that comes from another product: a function of time and `source`.

    Sorted by time, as if the event had been received when it happened. `source` is what identifies
    the event where it comes from.
    """
    digest = blake2b(source, digest_size=_SOURCE_DIGEST_BYTES).digest()
    return (time_ms << 16 | FOREIGN_LOG).to_bytes(8, "big") + digest


def receipt_time_ms(row_id: bytes) -> int:
    """Return the time of receipt that a row id begins with. Exports compare it."""
    return int.from_bytes(row_id[:6], "big")


def split_row_ids(joined: bytes) -> list[bytes]:
    """Return the ids that are joined without separators."""
    return [joined[at : at + ROW_ID_BYTES] for at in range(0, len(joined), ROW_ID_BYTES)]


def last_offsets(ids: Iterable[bytes]) -> dict[int, bytes]:
    """Return the greatest log offset in row ids by the number of its log, foreign ids left out."""
    last: dict[int, bytes] = {}
    for row_id in ids:
        number, offset = int.from_bytes(row_id[6:8], "big"), row_id[8:]
        if number != FOREIGN_LOG and offset > last.get(number, b""):
            last[number] = offset
    return last


def parse_log_offset(encoded: bytes) -> LogOffset:
    """Return the offset that the last eight bytes of a row id encode."""
    return LogOffset(int.from_bytes(encoded[:3], "big"), int.from_bytes(encoded[3:], "big"))


def record_row_ids(
    number: int, record: LoggedRecord, content: LogRecord, indexes: Sequence[int]
) -> list[bytes]:
    """Return the ids of a record's items: imported ones keep theirs; see `row_ids`."""
    if content.imported is None:
        return row_ids(number, record, content.received_ms, indexes)
    imported = split_row_ids(content.imported.row_ids)
    return [imported[index] for index in indexes]


def row_ids(
    number: int, record: LoggedRecord, received_ms: int, indexes: Sequence[int]
) -> list[bytes]:
    """Return the ids of a record's items: sorted by arrival, and a function of the offset alone.

    Six bytes of receipt time, two of the log, three of the segment, five of offset plus index. A
    record has more bytes than items, so offset plus index is unique in a segment.
    """
    start = record.start
    upper = received_ms << 16 | number
    lower = (start.segment & 0xFFFFFF) << 40 | start.offset
    if len(indexes) == 1:  # a record of one item is what most senders make
        return [_pack_halves(upper, lower + indexes[0])]
    return list(map(_pack_halves, repeat(upper), map(lower.__add__, indexes)))
