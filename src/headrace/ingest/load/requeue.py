"""Converts quarantine entries back to log records, to load them again. Pure."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from headrace.model.log_records import (
    ErrorEvent,
    ErrorRecord,
    Event,
    EventKind,
    EventRecord,
    Visitor,
    Vital,
    VitalRecord,
    encode_record,
)
from headrace.ports.quarantine import QuarantineEntry

StructT = TypeVar("StructT", bound=Struct)


def to_log_record(entry: QuarantineEntry) -> bytes:
    """Return the record of an entry. Raises `ValueError` with the reason where there is none.

    An item keeps its time of receipt and loses its event id: the id is a known digest, so that
    repeats are dropped already, and with it the item itself would be dropped, too.
    """
    if entry.payload is not None:
        return entry.payload
    if entry.item is None or entry.stream is None:
        raise ValueError("it has neither an item nor a payload")
    item = {**entry.item, "event_id": "", "visitor": None}
    received_ms = msgspec.convert(entry.item.get("received_ms"), int)
    visitor = _rebuild(Visitor, entry.item.get("visitor") or {})
    match EventKind(entry.stream):
        case EventKind.EVENTS:
            return encode_record(EventRecord(received_ms, visitor, [_rebuild(Event, item)]))
        case EventKind.VITALS:
            return encode_record(VitalRecord(received_ms, visitor, [_rebuild(Vital, item)]))
        case EventKind.ERRORS:
            return encode_record(ErrorRecord(received_ms, visitor, [_rebuild(ErrorEvent, item)]))


def _rebuild(kind: type[StructT], values: Mapping[str, Any]) -> StructT:
    """Build an array-like struct from its fields by name."""
    fields = msgspec.structs.fields(kind)
    return msgspec.convert([values.get(field.name, field.default) for field in fields], kind)
