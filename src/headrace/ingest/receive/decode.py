"""From body bytes to wire structs: the rules of the endpoints, and the refusal of what breaks them.

One typed decode and a few whole-body checks decide on a good body. A body that fails them is read
again field by field, which finds the faults (or a body that is odd but in order).
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, cast

import msgspec
from msgspec import Raw, Struct

from headrace.base.errors import Fault, InvalidBody, PayloadTooLarge
from headrace.ingest.receive.body_scan import (
    MAX_NESTING,
    count_byte,
    count_items,
    holds_nul,
    is_utf8,
    nests_deeper,
    write_lone_surrogates_as_nul,
)
from headrace.ingest.receive.validation_errors import UNREADABLE, Check, read_items
from headrace.model.log_records import Stream
from headrace.model.wire import CustomEvent, ErrorReport, PageView, WebVital

WireItem = CustomEvent | WebVital | ErrorReport

ARRAY_REFUSED = "must be a single object, not an array"
NO_CHECKS: Mapping[str, Check] = {}


class Endpoint(Enum):
    """Where items can be sent; the value is the path."""

    __hash__ = object.__hash__  # Enum's own is Python code, and each call looks into four tables

    TRACK = "/track"
    VITALS = "/vitals"
    ERRORS = "/errors"
    BATCH = "/batch"
    PAGE = "/"


class BodyRules(Struct, frozen=True):
    """What an endpoint takes. All take a bare object."""

    item: type[WireItem]
    stream: Stream
    takes_arrays: bool = True


BODY_RULES: Mapping[Endpoint, BodyRules] = {
    Endpoint.TRACK: BodyRules(CustomEvent, Stream.EVENTS),
    Endpoint.VITALS: BodyRules(WebVital, Stream.VITALS),
    Endpoint.ERRORS: BodyRules(ErrorReport, Stream.ERRORS),
    Endpoint.BATCH: BodyRules(PageView, Stream.EVENTS),
    Endpoint.PAGE: BodyRules(PageView, Stream.EVENTS, takes_arrays=False),
}

_ONE: Mapping[type[WireItem], msgspec.json.Decoder[Any]] = {
    rules.item: msgspec.json.Decoder(rules.item) for rules in BODY_RULES.values()
}
_MANY: Mapping[type[WireItem], msgspec.json.Decoder[list[Any]]] = {
    item: msgspec.json.Decoder(list[item])  # type: ignore[valid-type]  # made at run time
    for item in _ONE
}
_RAW_ITEMS = msgspec.json.Decoder(list[Raw])
_RAW_ITEM = msgspec.json.Decoder(Raw)

_COUNT_SLACK = 8
"""How many times the allowed items may be built before their number is looked at.

Keeps a 20 MiB body of tiny items from becoming gigabytes, and the exact count, which is slow, away
from honest bodies.
"""


def decode_items(
    endpoint: Endpoint, body: bytes, *, max_items: int, checks: Mapping[str, Check] = NO_CHECKS
) -> Sequence[WireItem]:
    """Decode a body; a bare object is one item.

    `checks` only take part in the list of faults of a body that is refused for its types: who
    decodes applies them to the items and asks `explain_faults` when one fails.
    Raises `InvalidBody` with all faults, or none where the body is not JSON, and
    `PayloadTooLarge` for too many items, whatever is in them.
    """
    rules = BODY_RULES[endpoint]
    if not is_utf8(body):
        raise InvalidBody
    is_array = body.lstrip()[:1] == b"["
    if is_array and not rules.takes_arrays:
        _refuse_array(body)
    most = _COUNT_SLACK * max_items
    if is_array and len(body) > most and body.count(b"{") > most:
        _refuse_too_many(body, max_items)
    items = _decode_fast(rules.item, body, is_array=is_array)
    if items is None:
        return _decode_slowly(
            rules.item, body, is_array=is_array, max_items=max_items, checks=checks
        )
    if len(items) > max_items:
        raise PayloadTooLarge
    return items


def explain_faults(
    endpoint: Endpoint, body: bytes, *, checks: Mapping[str, Check]
) -> tuple[Fault, ...]:
    """List the faults of a body that was decoded and did not stand up to the checks."""
    is_array = body.lstrip()[:1] == b"["
    raws = _raw_items(body, is_array=is_array)
    item = BODY_RULES[endpoint].item
    return read_items(item, raws, levels_above=int(is_array), checks=checks).faults


def _decode_fast(item: type[WireItem], body: bytes, *, is_array: bool) -> Sequence[WireItem] | None:
    if holds_nul(body):
        return None
    try:
        items = _MANY[item].decode(body) if is_array else [_ONE[item].decode(body)]
    except UNREADABLE:
        return None
    return None if _nests_too_deep(body, items) else items


def _nests_too_deep(body: bytes, items: Sequence[WireItem]) -> bool:
    """Tell whether a body is nested too deep, mostly by counting what it opens.

    At any place all items but one are closed, or not open yet, and so are their properties.
    """
    has_arrays = body.find(b"[", 1) >= 0  # cheaper than to count none
    opened = 1 + count_byte(body, b"{") + (count_byte(body, b"[") if has_arrays else 0)
    if opened <= MAX_NESTING:
        return False
    closed = len(items) - 1
    if items and isinstance(items[0], CustomEvent):
        events = cast("Sequence[CustomEvent]", items)  # all are what the endpoint's decoder makes
        closed += max(len(events) - [event.properties for event in events].count(None) - 1, 0)
    return opened - closed > MAX_NESTING and nests_deeper(body, MAX_NESTING)


def _refuse_array(body: bytes) -> NoReturn:
    _raw_items(body, is_array=True)  # refuses what is not JSON
    raise InvalidBody((Fault(0, "", ARRAY_REFUSED),))


def _refuse_too_many(body: bytes, max_items: int) -> None:
    if count_items(body, at_most=max_items + 1) > max_items:
        raise PayloadTooLarge


def _decode_slowly(
    item: type[WireItem],
    body: bytes,
    *,
    is_array: bool,
    max_items: int,
    checks: Mapping[str, Check],
) -> Sequence[WireItem]:
    if is_array and body.count(b",") > _COUNT_SLACK * max_items:
        _refuse_too_many(body, max_items)
    raws = _raw_items(body, is_array=is_array)
    if len(raws) > max_items:
        raise PayloadTooLarge
    reading = read_items(item, raws, levels_above=int(is_array), checks=checks)
    if reading.faults:
        raise InvalidBody(reading.faults)
    return reading.items


def _raw_items(body: bytes, *, is_array: bool) -> Sequence[Raw]:
    readable = write_lone_surrogates_as_nul(body)
    try:
        return _RAW_ITEMS.decode(readable) if is_array else [_RAW_ITEM.decode(readable)]
    except UNREADABLE as error:
        raise InvalidBody from error
