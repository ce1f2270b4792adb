"""Makes items of the events of other products, by the rules of requests.

A mapping turns one event into the fields of a page view as `/batch` takes them. From there on the
event is validated and converted as one of a request is.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import Raw, Struct

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.row_ids import foreign_row_id
from headrace.ingest.imports.decoder import IN_THE_FUTURE, InvalidLine, check_line
from headrace.ingest.receive.convert import promote_fields
from headrace.ingest.receive.decoding.timestamps import parse_epoch_ms, parse_timestamp
from headrace.ingest.receive.decoding.validation_errors import (
    DECODE_ERRORS,
    Check,
    validate_items,
)
from headrace.model.catalog import MAX_PROFILE_ID_LENGTH, MAX_TEXT_LENGTH
from headrace.model.imports import ImportItem
from headrace.model.log_records import UNKNOWN_VISITOR, Visitor
from headrace.model.wire import PageView

PAGE_VIEW: Final = "screen_view"
"""The name of page views, whatever another product calls them."""

TIMESTAMP_REQUIRED = "is required"
NO_OBJECT = "its properties are no JSON object"

Fields = dict[str, Any]
"""The fields of a page view by their names in requests; absent and None mean missing."""

_encode_json = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Any).decode


class MappedEvent(Struct, frozen=True):
    """One event of another product. `source_id` identifies it there."""

    fields: Fields
    source_id: bytes
    visitor: Visitor = UNKNOWN_VISITOR


def to_item(event: MappedEvent, website_id: str, *, now_ms: int) -> ImportItem:
    """Return the item of an event. Raises `InvalidLine`."""
    try:
        view = msgspec.convert(event.fields, PageView)
        time_ms = _time_ms(view.timestamp, now_ms)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidLine(_field_errors(event.fields, now_ms) or str(error)) from error
    value = (
        website_id,
        time_ms,
        view.name,
        view.anonymous_id or "",
        view.session_id or "",
        view.namespace or "",
        view.source or "",
        "",
        view.path or "",
        view.url or "",
        _encode_json(view.properties) if view.properties else b"",
        promote_fields(view),
        event.visitor,
        view.profile_id or "",
    )
    return ImportItem(time_ms, foreign_row_id(time_ms, event.source_id), now_ms, value)


def _time_ms(value: float | str | None, now_ms: int) -> int:
    """Return the time of an event. The time of receipt cannot stand for it: it would differ, and
    with it the id of the row, when the import is repeated."""
    if value is None:
        raise ValueError(f"timestamp {TIMESTAMP_REQUIRED}")
    latest_ms = now_ms + MILLISECONDS_PER_DAY
    time_ms = parse_epoch_ms(value)
    if time_ms > latest_ms:
        raise ValueError(f"timestamp {IN_THE_FUTURE}")
    return time_ms


def _field_errors(fields: Mapping[str, Any], now_ms: int) -> str:
    def check_time(value: Any) -> object:  # noqa: ANN401 - any JSON value
        return parse_timestamp(value, received_ms=now_ms)

    checks: Mapping[str, Check] = {"timestamp": check_time}
    raw = Raw(_encode_json(fields))
    found = validate_items(PageView, [raw], levels_above=0, checks=checks).field_errors
    return "; ".join(f"{error.field} {error.message}".strip() for error in found)


MapEvent = Callable[[Mapping[str, Any]], MappedEvent]
"""Maps one event. Raises `InvalidLine`; other exceptions would be bugs, whatever the event."""


def text_of(value: object) -> str:
    """Return a text, and an empty one for all other values."""
    return value if isinstance(value, str) else ""


def text_or_number(value: object) -> object:
    """Return an integer as text, and all other values as they are."""
    return str(value) if type(value) is int else value


def profile_id_of(value: object) -> str | None:
    """Return the id of a user whom the other product knows, None where it is no profile id."""
    text = text_of(text_or_number(value))
    return text if 0 < len(text) <= MAX_PROFILE_ID_LENGTH else None


def object_of(value: object) -> Fields:
    """Return an object, also one that is encoded as JSON text, and an empty one for a missing one.

    PHP writes an empty object as an empty array. Raises `InvalidLine` for anything else, and for
    JSON text that would be refused outside of a text.
    """
    if isinstance(value, str):
        text = value.strip().encode()
        check_line(text)
        try:
            value = _decode(text) if text else None
        except DECODE_ERRORS as error:
            raise InvalidLine(NO_OBJECT) from error
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise InvalidLine(NO_OBJECT)
    return value  # pyright: ignore[reportUnknownVariableType] - decoded JSON


def visitor_with(*, is_bot: bool = False, **texts: str) -> Visitor:
    """Return a visitor; texts are cut to the limit of texts without one of their own."""
    cut = {name: text[:MAX_TEXT_LENGTH] for name, text in texts.items()}
    return Visitor(**cut, is_bot=is_bot)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number within the range of a float: an integer can be larger."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def size_of(width: object, height: object) -> str | None:
    """Return the size of a screen, such as 1920x1080, None where it is unknown."""
    if is_number(width) and is_number(height) and width and height:
        return f"{width:.0f}x{height:.0f}"
    return None
