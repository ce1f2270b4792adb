"""Makes log records of what was set aside, so that it can be stored after all. Pure."""

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
    """Return the record that brings an entry back on its way. Raises `ValueError` in words.

    An item keeps the moment of its receipt and loses its event id: that is remembered as seen, so
    repeats of it are left out already, and with it the item itself would be.
    """
    if entry.payload is not None:
        return entry.payload
    if entry.item is None or entry.stream is None:
        raise ValueError("it holds neither an item nor a payload")
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
    """Make a struct that is an array on the wire of its fields by name."""
    fields = msgspec.structs.fields(kind)
    return msgspec.convert([values.get(field.name, field.default) for field in fields], kind)
