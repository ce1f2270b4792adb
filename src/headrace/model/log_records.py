"""The records of the durable log, as the workers write and the loader reads them.

The rules of the wire are already applied: texts are within their limits, times are epoch
milliseconds, addresses and User-Agents are discarded. Records are MessagePack arrays: new fields
may only be appended.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct


class Visitor(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """The values derived from a visitor's address and User-Agent, which are not stored."""

    country: str = ""
    region: str = ""
    city: str = ""
    browser_name: str = ""
    browser_version: str = ""
    os_name: str = ""
    os_version: str = ""
    device_type: str = ""
    is_bot: bool = False


UNKNOWN_VISITOR = Visitor()


class EventKind(Enum):
    """The kind of items in a log record, and the namespace of their event ids."""

    EVENTS = "events"
    VITALS = "vitals"
    ERRORS = "errors"


class Event(Struct, frozen=True, array_like=True, gc=False):
    """A custom event or page view.

    `properties` is a JSON object as text, or empty. `promoted` has the top-level columns of a page
    view by name, without values of the wrong type. `visitor` is set where it differs from the
    record's.
    """

    website_id: str
    time_ms: int
    name: str
    anonymous_id: str = ""
    session_id: str = ""
    namespace: str = ""
    source: str = ""
    event_id: str = ""
    path: str = ""
    url: str = ""
    properties: bytes = b""
    promoted: dict[str, Any] | None = None
    visitor: Visitor | None = None
    profile_id: str = ""


EventTuple = tuple[str, int, str, str, str, str, str, str, str, str, bytes]
"""The values of an `Event` in order, without the last three, which most events lack."""

FullEventTuple = tuple[*EventTuple, dict[str, Any] | None, Visitor | None, str]


class Vital(Struct, frozen=True, array_like=True, gc=False):
    """One measurement of a web vital."""

    website_id: str
    time_ms: int
    metric_name: str
    metric_value: float
    path: str
    url: str = ""
    anonymous_id: str = ""
    session_id: str = ""
    event_id: str = ""
    visitor: Visitor | None = None


class ErrorEvent(Struct, frozen=True, array_like=True, gc=False):
    """One client-side error."""

    website_id: str
    time_ms: int
    message: str
    path: str
    level: str = "error"
    error_type: str = ""
    filename: str = ""
    url: str = ""
    lineno: float | None = None
    colno: float | None = None
    stack: str = ""
    anonymous_id: str = ""
    session_id: str = ""
    event_id: str = ""
    visitor: Visitor | None = None


class ImportedRows(Struct, frozen=True, array_like=True, gc=False):
    """What imported items bring along, parallel to the items of their record.

    `row_ids` has sixteen bytes for each item: the ids of their rows, which are otherwise derived
    from the offset of the record. `received_ms` are their times of receipt.
    """

    row_ids: bytes
    received_ms: Sequence[int]


class ErasedItems(Struct, frozen=True, array_like=True, gc=False):
    """The indexes of the items that were erased, in their place empty ones that are not stored.

    `padding` gives the record the length that it had.
    """

    indexes: tuple[int, ...]
    padding: bytes = b""


class ItemPosition(Struct, frozen=True, array_like=True, gc=False):
    """Where a log has an item: the segment and offset of its record, and its index in that."""

    log: str
    segment: int
    offset: int
    index: int


class EventRecord(Struct, frozen=True, array_like=True, tag="events", gc=False):
    """All accepted events of one request, or a chunk of an import.

    `idempotency_digest` is the digest of credential, path and Idempotency-Key, or empty.
    `has_api_key` says whether the request had an API key; it is None in records of versions that
    did not write it. `imported` is None for the items of requests. `erased` are the indexes of
    items that were erased and `expired` those of items that were too old when they were received:
    both are not stored. `requeued_from` says of an item from the quarantine where it was rejected;
    it is None in records of versions that did not write it.
    """

    received_ms: int
    visitor: Visitor
    items: list[Event]
    idempotency_digest: bytes = b""
    has_api_key: bool | None = None
    imported: ImportedRows | None = None
    erased: ErasedItems | None = None
    expired: tuple[int, ...] = ()
    is_requeued: bool = False
    requeued_from: ItemPosition | None = None


class PackedEventRecord(Struct, frozen=True, array_like=True, tag="events", gc=False):
    """An `EventRecord` for encoding only, without an object per event."""

    received_ms: int
    visitor: Visitor
    items: Sequence[EventTuple] | Sequence[FullEventTuple]
    idempotency_digest: bytes = b""
    has_api_key: bool | None = None
    imported: ImportedRows | None = None
    erased: ErasedItems | None = None
    expired: tuple[int, ...] = ()


class VitalRecord(Struct, frozen=True, array_like=True, tag="vitals", gc=False):
    """All accepted items of one request to /vitals."""

    received_ms: int
    visitor: Visitor
    items: list[Vital]
    idempotency_digest: bytes = b""
    has_api_key: bool | None = None
    imported: ImportedRows | None = None
    erased: ErasedItems | None = None
    expired: tuple[int, ...] = ()
    is_requeued: bool = False
    requeued_from: ItemPosition | None = None


class ErrorRecord(Struct, frozen=True, array_like=True, tag="errors", gc=False):
    """All accepted items of one request to /errors."""

    received_ms: int
    visitor: Visitor
    items: list[ErrorEvent]
    idempotency_digest: bytes = b""
    has_api_key: bool | None = None
    imported: ImportedRows | None = None
    erased: ErasedItems | None = None
    expired: tuple[int, ...] = ()
    is_requeued: bool = False
    requeued_from: ItemPosition | None = None


LogRecord = EventRecord | VitalRecord | ErrorRecord
WrittenRecord = LogRecord | PackedEventRecord

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[LogRecord] = msgspec.msgpack.Decoder(LogRecord)


def encode_record(record: WrittenRecord) -> bytes:
    """Encode a record as the log stores it."""
    return _ENCODER.encode(record)


def decode_record(payload: bytes | memoryview) -> LogRecord:
    """Decode a record. Raises `msgspec.MsgspecError` for other bytes than a record's."""
    try:
        return _DECODER.decode(payload)
    except UnicodeDecodeError as error:  # no MsgspecError, whatever the decoder's reference says
        raise msgspec.DecodeError(str(error)) from error
