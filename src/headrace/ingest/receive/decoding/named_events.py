"""Makes custom events of items whose endpoint gives the event its name.

All keys of such an item that are no fields of it become the event's properties.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from headrace.base.errors import FieldError, InvalidBody
from headrace.ingest.receive.decoding.validation_errors import DECODE_ERRORS, NUMBER_OUT_OF_RANGE
from headrace.model.wire import CustomEvent, Engagement, Identification

NamedEvent = Engagement | Identification

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_VALUE = msgspec.json.Decoder(Any)
_EVENT_FIELDS = frozenset(CustomEvent.__struct_fields__)


def make_events(
    name: str, items: Sequence[NamedEvent], raws: Sequence[Raw]
) -> Sequence[CustomEvent]:
    """Return the events of decoded items and their JSON. Raises `InvalidBody`."""
    return [
        _make_event(name, index, item, raw)
        for index, (item, raw) in enumerate(zip(items, raws, strict=True))
    ]


def _make_event(name: str, index: int, item: NamedEvent, raw: Raw) -> CustomEvent:
    sent = _OBJECT.decode(raw)
    wire_names = _event_fields(type(item))
    fields = {field: getattr(item, field) for field in wire_names}
    for wire_name in wire_names.values():
        sent.pop(wire_name, None)
    properties = {key: _decode_property(index, key, value) for key, value in sent.items()}
    return CustomEvent(name=name, properties=properties, **fields)


@functools.cache
def _event_fields(item: type[NamedEvent]) -> Mapping[str, str]:
    """Return the fields that an item shares with events, and their names in JSON."""
    return {
        field.name: field.encode_name
        for field in msgspec.structs.fields(item)
        if field.name in _EVENT_FIELDS
    }


def _decode_property(index: int, key: str, value: Raw) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return _VALUE.decode(value)
    except DECODE_ERRORS as error:
        raise InvalidBody((FieldError(index, key, NUMBER_OUT_OF_RANGE),)) from error
