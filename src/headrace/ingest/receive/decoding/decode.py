"""Decodes body bytes into wire structs, by the rules of each endpoint.

One typed decode and a few whole-body checks accept a valid body. A body that fails them is decoded
again field by field, which lists its errors, or finds it unusual but valid.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, cast

import msgspec
from msgspec import Raw, Struct

from headrace.base.errors import FieldError, InvalidBody, PayloadTooLarge
from headrace.ingest.receive.decoding.body_scan import (
    MAX_NESTING,
    contains_nul,
    count_byte,
    count_items,
    exceeds_depth,
    is_utf8,
    replace_lone_surrogates,
)
from headrace.ingest.receive.decoding.named_events import NamedEvent, make_events
from headrace.ingest.receive.decoding.validation_errors import (
    DECODE_ERRORS,
    Check,
    ValidationResult,
    validate_items,
)
from headrace.model.log_records import EventKind
from headrace.model.wire import (
    CustomEvent,
    Engagement,
    ErrorReport,
    Identification,
    PageView,
    WebVital,
)

WireItem = CustomEvent | WebVital | ErrorReport

ARRAY_NOT_ALLOWED = "must be a single object, not an array"
NO_CHECKS: Mapping[str, Check] = {}


class IngestPath(Enum):
    """The ingestion endpoints; the value is the path."""

    __hash__ = object.__hash__  # Enum's own runs in Python, and each request looks up four tables

    TRACK = "/track"
    VITALS = "/vitals"
    ERRORS = "/errors"
    BATCH = "/batch"
    PAGE = "/"
    ENGAGEMENT = "/engagement"
    IDENTIFY = "/identify"


class PathSpec(Struct, frozen=True):
    """The bodies that an endpoint accepts. All accept a bare object.

    `event_name` is that of all events of an endpoint that takes no names.
    """

    item: type[WireItem | NamedEvent]
    event_kind: EventKind
    takes_arrays: bool = True
    max_items: int | None = None
    event_name: str | None = None

    def item_limit(self, max_items: int) -> int:
        """Return the most items of a body, where no endpoint takes more than `max_items`."""
        return max_items if self.max_items is None else min(max_items, self.max_items)


PATH_SPECS: Mapping[IngestPath, PathSpec] = {
    IngestPath.TRACK: PathSpec(CustomEvent, EventKind.EVENTS),
    IngestPath.VITALS: PathSpec(WebVital, EventKind.VITALS),
    IngestPath.ERRORS: PathSpec(ErrorReport, EventKind.ERRORS),
    IngestPath.BATCH: PathSpec(PageView, EventKind.EVENTS),
    IngestPath.PAGE: PathSpec(PageView, EventKind.EVENTS, takes_arrays=False),
    IngestPath.ENGAGEMENT: PathSpec(
        Engagement, EventKind.EVENTS, max_items=100, event_name="engagement"
    ),
    IngestPath.IDENTIFY: PathSpec(
        Identification, EventKind.EVENTS, takes_arrays=False, event_name="identify"
    ),
}

_ITEM_DECODERS: Mapping[type[WireItem | NamedEvent], msgspec.json.Decoder[Any]] = {
    spec.item: msgspec.json.Decoder(spec.item) for spec in PATH_SPECS.values()
}
_ARRAY_DECODERS: Mapping[type[WireItem | NamedEvent], msgspec.json.Decoder[list[Any]]] = {
    item: msgspec.json.Decoder(list[item])  # type: ignore[valid-type]  # made at run time
    for item in _ITEM_DECODERS
}
_RAW_ITEMS = msgspec.json.Decoder(list[Raw])
_RAW_ITEM = msgspec.json.Decoder(Raw)

_COUNT_SLACK = 8
"""The items are counted before decoding only from this multiple of the limit on.

Prevents a 20 MiB body of tiny items from becoming gigabytes, and spares ordinary bodies the exact
count, which is slow.
"""


def decode_items(
    endpoint: IngestPath, body: bytes, *, max_items: int, checks: Mapping[str, Check] = NO_CHECKS
) -> Sequence[WireItem]:
    """Decode a body; a bare object is one item.

    `checks` only add to the field errors of a body that is rejected for its types: the caller
    applies them to the items itself, and calls `list_field_errors` when one fails.
    Raises `InvalidBody` with all field errors, or none where the body is not JSON, and
    `PayloadTooLarge` for too many items, whether they are valid or not.
    """
    items = try_decode_items(endpoint, body, max_items=max_items)
    if items is not None:
        return items
    spec = PATH_SPECS[endpoint]
    if not is_utf8(body):
        raise InvalidBody
    is_array = _is_array(body)
    if is_array and not spec.takes_arrays:
        _reject_array(body)
    return _decode_by_field(spec, body, is_array=is_array, max_items=max_items, checks=checks)


def try_decode_items(
    endpoint: IngestPath, body: bytes, *, max_items: int
) -> Sequence[WireItem] | None:
    """Decode a body natively; return None for one that is invalid or unusual.

    Takes a fraction of the time of listing the errors, which `decode_items` does. Raises
    `PayloadTooLarge` for too many items.
    """
    spec = PATH_SPECS[endpoint]
    if not (body.isascii() or is_utf8(body)):
        return None
    is_array = body[:1] != b"{" and _is_array(body)
    if is_array:
        if not spec.takes_arrays:
            return None
        threshold = _COUNT_SLACK * max_items
        if len(body) > threshold and body.count(b"{") > threshold:
            _reject_too_many(body, max_items)
    items = _decode_typed(spec.item, body, is_array=is_array)
    if items is None:
        return None
    if is_array and len(items) > spec.item_limit(max_items):
        raise PayloadTooLarge
    if spec.event_name is None:
        return items
    try:
        return make_events(spec.event_name, items, _raw_items(body, is_array=is_array))
    except InvalidBody:
        return None


def _is_array(body: bytes) -> bool:
    first = body[:1]
    return first == b"[" or (first != b"{" and body.lstrip()[:1] == b"[")


def list_field_errors(
    endpoint: IngestPath, body: bytes, *, checks: Mapping[str, Check]
) -> tuple[FieldError, ...]:
    """List the field errors of a body that was decoded but failed the checks."""
    is_array = _is_array(body)
    raws = _raw_items(body, is_array=is_array)
    return _validate(PATH_SPECS[endpoint], raws, is_array=is_array, checks=checks).field_errors


def _validate(
    spec: PathSpec, raws: Sequence[Raw], *, is_array: bool, checks: Mapping[str, Check]
) -> ValidationResult:
    return validate_items(
        spec.item,
        raws,
        levels_above=int(is_array),
        checks=checks,
        keeps_unknown_keys=spec.event_name is not None,
    )


def _decode_typed(
    item: type[WireItem | NamedEvent], body: bytes, *, is_array: bool
) -> Sequence[Any] | None:
    if b"\\" in body and contains_nul(body):
        return None
    try:
        items = (
            _ARRAY_DECODERS[item].decode(body) if is_array else [_ITEM_DECODERS[item].decode(body)]
        )
    except DECODE_ERRORS:
        return None
    return None if _is_too_deep(body, items) else items


def _is_too_deep(body: bytes, items: Sequence[WireItem | NamedEvent]) -> bool:
    """Return whether a body is nested too deep, in most cases by counting opening brackets.

    At any position only one item can be open, and only its properties.
    """
    has_arrays = body.find(b"[", 1) >= 0  # cheaper than counting when there are none
    # as `count_byte`; a call less for each request
    opened = 1 + len(body) - len(body.replace(b"{", b""))
    if has_arrays:
        opened += count_byte(body, b"[")
    if opened <= MAX_NESTING:
        return False
    closed = len(items) - 1
    if items and isinstance(items[0], CustomEvent):
        events = cast("Sequence[CustomEvent]", items)  # all are what the endpoint's decoder makes
        closed += max(len(events) - [event.properties for event in events].count(None) - 1, 0)
    return opened - closed > MAX_NESTING and exceeds_depth(body, MAX_NESTING)


def _reject_array(body: bytes) -> NoReturn:
    _raw_items(body, is_array=True)  # rejects what is not JSON
    raise InvalidBody((FieldError(0, "", ARRAY_NOT_ALLOWED),))


def _reject_too_many(body: bytes, max_items: int) -> None:
    if count_items(body, at_most=max_items + 1) > max_items:
        raise PayloadTooLarge


def _decode_by_field(
    spec: PathSpec,
    body: bytes,
    *,
    is_array: bool,
    max_items: int,
    checks: Mapping[str, Check],
) -> Sequence[WireItem]:
    if is_array and body.count(b",") > _COUNT_SLACK * max_items:
        _reject_too_many(body, max_items)
    raws = _raw_items(body, is_array=is_array)
    if len(raws) > spec.item_limit(max_items):
        raise PayloadTooLarge
    result = _validate(spec, raws, is_array=is_array, checks=checks)
    if result.field_errors:
        raise InvalidBody(result.field_errors)
    if spec.event_name is None:
        return result.items
    return make_events(spec.event_name, result.items, raws)


def _raw_items(body: bytes, *, is_array: bool) -> Sequence[Raw]:
    decodable = replace_lone_surrogates(body)
    try:
        return _RAW_ITEMS.decode(decodable) if is_array else [_RAW_ITEM.decode(decodable)]
    except DECODE_ERRORS as error:
        raise InvalidBody from error
