"""Converts quarantine entries back to log records, to load them again. Pure."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from headrace.formats.row_ids import RECEIPT_TIME_BITS, ROW_ID_BYTES
from headrace.model.log_records import (
    ErrorEvent,
    ErrorRecord,
    Event,
    EventKind,
    EventRecord,
    ImportedRows,
    ItemPosition,
    LogRecord,
    Visitor,
    Vital,
    VitalRecord,
    encode_record,
)
from headrace.ports.quarantine import QuarantineEntry

_NUMBER_BITS: Final = 63
"""The numbers of a position must fit into the log and the ledger, whatever was edited."""

StructT = TypeVar("StructT", bound=Struct)


def to_log_record(entry: QuarantineEntry) -> bytes:
    """Return the record of an entry. Raises `ValueError` with the reason where there is none.

    An item keeps its time of receipt and its event id, which does not make it a repeat of itself.
    An imported item keeps the id of its row. The record says where the item was rejected.
    """
    if entry.payload is not None:
        return entry.payload
    if entry.item is None or entry.stream is None:
        raise ValueError("it has neither an item nor a payload")
    item = {**entry.item, "visitor": None}
    received_ms = msgspec.convert(entry.item.get("received_ms"), int)
    if not 0 <= received_ms < 1 << RECEIPT_TIME_BITS:
        raise ValueError("received_ms is no time in milliseconds")
    visitor = _rebuild(Visitor, entry.item.get("visitor") or {})
    record: LogRecord
    match EventKind(entry.stream):
        case EventKind.EVENTS:
            record = EventRecord(received_ms, visitor, [_rebuild(Event, item)])
        case EventKind.VITALS:
            record = VitalRecord(received_ms, visitor, [_rebuild(Vital, item)])
        case EventKind.ERRORS:
            record = ErrorRecord(received_ms, visitor, [_rebuild(ErrorEvent, item)])
    return encode_record(
        msgspec.structs.replace(
            record,
            imported=_imported_row(entry.item, received_ms),
            is_requeued=True,
            requeued_from=_item_position(entry),
        )
    )


def _item_position(entry: QuarantineEntry) -> ItemPosition | None:
    if entry.index is None:
        return None
    position = ItemPosition(entry.log, entry.position.segment, entry.position.offset, entry.index)
    if any(number >> _NUMBER_BITS for number in msgspec.structs.astuple(position)[1:]):
        raise ValueError("its position is none in a log")
    return position


def _imported_row(item: Mapping[str, Any], received_ms: int) -> ImportedRows | None:
    row_id = item.get("row_id")
    if row_id is None:
        return None
    decoded = bytes.fromhex(msgspec.convert(row_id, str))
    if len(decoded) != ROW_ID_BYTES:
        raise ValueError(f"row_id must have {ROW_ID_BYTES} bytes")
    return ImportedRows(decoded, [received_ms])


def _rebuild(kind: type[StructT], values: Mapping[str, Any]) -> StructT:
    """Build an array-like struct from its fields by name."""
    fields = msgspec.structs.fields(kind)
    return msgspec.convert([values.get(field.name, field.default) for field in fields], kind)
