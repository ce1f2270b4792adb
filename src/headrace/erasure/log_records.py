"""Overwrites the erased items of a log record, in a record of the same length. Pure.

Offsets in a log, and the ids of the other items' rows, follow from the lengths and indexes of what
was appended. So the record keeps its length, and each erased item leaves an empty one in its place:

    [kind, received_ms, visitor, [item, empty item], digest, …, [[indexes], padding], …]

The field `erased` has the indexes of the empty items (`model.log_records`), which are never stored,
and what fills the record up.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from headrace.erasure.matching import bytes_match, item_matches, may_match
from headrace.erasure.recognition import KnownSubjects
from headrace.model.erasure import Selector
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorEvent,
    Event,
    LogRecord,
    Vital,
    decode_record,
)

_MISSING: Final = tuple(map(msgspec.Raw, (b"\xc4\x00", b"\xc0", b"\xc0", b"\xc0")))
"""Digest, `has_api_key`, `imported` and `erased` of records of versions that did not write them."""

_BIN_32: Final = b"\xc6"
_ITEMS: Final = 3
_VISITOR: Final = 2
_ERASED: Final = 7
"""The numbers of fields of a record; 0 is its kind."""

_ENCODER = msgspec.msgpack.Encoder()
_ELEMENTS: msgspec.msgpack.Decoder[list[msgspec.Raw]] = msgspec.msgpack.Decoder(list[msgspec.Raw])
_EMPTY_ITEMS: Final[dict[type, msgspec.Raw]] = {
    Event: msgspec.Raw(_ENCODER.encode(("", 0, ""))),
    Vital: msgspec.Raw(_ENCODER.encode(("", 0, "", 0, ""))),
    ErrorEvent: msgspec.Raw(_ENCODER.encode(("", 0, "", ""))),
}


def without_erased_items(
    payload: bytes,
    website_id: str,
    selectors: Sequence[Selector],
    *,
    received_until_ms: int | None = None,
) -> bytes | None:
    """Return a record's payload without the selected items; None if it has none of them.

    A record that was received later than `received_until_ms` stays.
    A record that cannot be decoded is replaced by zeros if its bytes match: its copy in the
    quarantine decides about its rows.
    """
    if not may_match(payload, selectors):
        return None
    try:
        record = decode_record(payload)
    except msgspec.MsgspecError:
        return bytes(len(payload)) if bytes_match(payload, website_id, selectors) else None
    if received_until_ms is not None and record.received_ms > received_until_ms:
        return None
    erased = erased_indexes(record, website_id, selectors)
    return _overwrite(payload, record, erased) if erased else None


def erased_indexes(
    record: LogRecord, website_id: str, selectors: Sequence[Selector]
) -> tuple[int, ...]:
    """Return the indexes of the selected items of a record."""
    items: Sequence[Event | Vital | ErrorEvent] = record.items
    return tuple(
        index
        for index, item in enumerate(items)
        if item_matches(msgspec.structs.asdict(item), website_id, selectors)
    )


def known_selectors(payload: bytes, website_id: str, known: KnownSubjects) -> set[Selector]:
    """Return the selectors of a record's items whose subjects are known; none of other bytes."""
    try:
        record = decode_record(payload)
    except msgspec.MsgspecError:
        return set()
    items: Sequence[Event | Vital | ErrorEvent] = record.items
    return {
        selector
        for item in items
        if item.website_id == website_id
        for selector in known.selectors_in(
            msgspec.structs.asdict(item), received_ms=record.received_ms
        )
    }


def _overwrite(payload: bytes, record: LogRecord, erased: Sequence[int]) -> bytes:
    fields = _ELEMENTS.decode(payload)
    fields += _MISSING[len(fields) - _ERASED - 1 :] if len(fields) <= _ERASED else ()
    items = _ELEMENTS.decode(fields[_ITEMS])
    for index in erased:
        items[index] = _EMPTY_ITEMS[type(record.items[index])]
    earlier = () if record.erased is None else record.erased.indexes
    all_erased = tuple(sorted({*earlier, *erased}))
    if len(all_erased) == len(items):
        fields[_VISITOR] = msgspec.Raw(_ENCODER.encode(UNKNOWN_VISITOR))
    fields[_ITEMS] = msgspec.Raw(_ENCODER.encode(items))
    return _padded(fields, all_erased, len(payload))


def _padded(fields: list[msgspec.Raw], erased: tuple[int, ...], size: int) -> bytes:
    """Encode fields with the indexes of the erased items and so much padding.

    The header of the padding always has five bytes, so that each length can be reached. An item has
    at least a website and a time, which are longer than what replaces it and its index.
    """
    fields[_ERASED] = _erased_items(erased, 0)
    missing = size - len(_ENCODER.encode(fields))
    fields[_ERASED] = _erased_items(erased, missing)
    return _ENCODER.encode(fields)


def _erased_items(indexes: tuple[int, ...], padding: int) -> msgspec.Raw:
    """Return `ErasedItems` encoded with the longest header of the padding."""
    two_fields = b"\x92"
    header = _BIN_32 + padding.to_bytes(4, "big")
    return msgspec.Raw(two_fields + _ENCODER.encode(indexes) + header + bytes(padding))
