"""Items as they are sent: an endpoint, a website, and the JSON text with id and time.

Id and time are made here, once, when the caller reports the item. Repeats of the request carry the
same id, so the service stores the item once.
"""

from __future__ import annotations

import math
import time
import traceback
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from enum import Enum
from typing import Any, TypedDict

import msgspec

from headrace_client.context import current_fields
from headrace_client.encoding import JSON_ENCODER
from headrace_client.errors import InvalidItem

Timestamp = datetime | int | float | str
"""An aware datetime, epoch milliseconds, or a text in ISO 8601."""


class ItemFields(TypedDict, total=False):
    """Optional fields of all items. A value of None is the same as leaving the field out.

    `ip` and `user_agent` are those of the visitor; the service uses them with an API key only.
    """

    anonymous_id: str | None
    session_id: str | None
    timestamp: Timestamp | None
    website_id: str | None
    event_id: str | None
    path: str | None
    url: str | None
    ip: str | None
    user_agent: str | None


class EventFields(ItemFields, total=False):
    """Optional fields of events."""

    profile_id: str | None
    namespace: str | None
    source: str | None


class PageViewFields(TypedDict, total=False):
    """Optional fields of page views."""

    anonymous_id: str | None
    session_id: str | None
    profile_id: str | None
    timestamp: Timestamp | None
    namespace: str | None
    source: str | None
    website_id: str | None
    event_id: str | None
    url: str | None
    ip: str | None
    user_agent: str | None


class ErrorFields(ItemFields, total=False):
    """Optional fields of errors. Those of the code are taken from an exception by default."""

    filename: str | None
    lineno: int | None
    colno: int | None
    stack: str | None
    error_type: str | None
    level: str | None


class Endpoint(Enum):
    """Where an item is sent; the value is the path."""

    TRACK = "/track"
    VITALS = "/vitals"
    ERRORS = "/errors"
    IDENTIFY = "/identify"


class Item(msgspec.Struct, frozen=True):
    """One item: `body` is its JSON text in UTF-8, `website` is "" where the key decides."""

    endpoint: Endpoint
    website: str
    event_id: str
    body: bytes


_COMMON = {
    "anonymous_id": "anonymousId",
    "session_id": "sessionId",
    "timestamp": "timestamp",
    "website_id": "websiteId",
    "event_id": "eventId",
    "path": "path",
    "url": "url",
    "ip": "ip",
    "user_agent": "userAgent",
}
_EVENT = {**_COMMON, "profile_id": "profileId", "namespace": "namespace", "source": "source"}
_CODE = {"filename": "filename", "lineno": "lineno", "colno": "colno", "stack": "stack"}
WIRE_NAMES: Mapping[Endpoint, Mapping[str, str]] = {
    Endpoint.TRACK: _EVENT,
    Endpoint.VITALS: _COMMON,
    Endpoint.ERRORS: {**_COMMON, **_CODE, "error_type": "errorType", "level": "level"},
    Endpoint.IDENTIFY: _COMMON,
}
"""Field names as callers write them, and as they are sent."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_MAX_TYPE = 128
_MAX_TEXT = 2048  # the service refuses longer ones
_KEPT = {"message": 4096, "stack": 65_536}
"""How many characters the service keeps of texts. More may make a request too large."""


class ItemMaker:
    """Makes items; `website_id` is that of items that name none."""

    def __init__(self, website_id: str | None = None) -> None:
        self._website_id = website_id

    def event(
        self, name: str, properties: Mapping[str, object] | None, fields: Mapping[str, object]
    ) -> Item:
        """Return a custom event."""
        content: dict[str, object] = {"name": name}
        if properties:
            content["properties"] = properties
        return self._item(Endpoint.TRACK, content, fields)

    def page_view(
        self, path: str, properties: Mapping[str, object] | None, fields: Mapping[str, object]
    ) -> Item:
        """Return a page view."""
        return self.event("screen_view", properties, {**fields, "path": path})

    def event_of(self, fields: Mapping[str, object]) -> Item:
        """Return a custom event whose name and properties are among the fields."""
        rest: dict[str, Any] = dict(fields)
        return self.event(rest.pop("name", ""), rest.pop("properties", None), rest)

    def vital(self, metric_name: str, metric_value: float, fields: Mapping[str, object]) -> Item:
        """Return a web vital."""
        content: dict[str, object] = {"metricName": metric_name, "metricValue": metric_value}
        return self._item(Endpoint.VITALS, {"path": "", **content}, fields)

    def error(self, error: BaseException | str, fields: Mapping[str, object]) -> Item:
        """Return an error; an exception gives its type, its stack and the line that raised it."""
        if isinstance(error, BaseException):
            given = {name: value for name, value in fields.items() if value is not None}
            fields = {**exception_fields(error), **given}
        content: dict[str, object] = {"path": "", "message": _kept("message", _message(error))}
        return self._item(Endpoint.ERRORS, content, {k: _kept(k, v) for k, v in fields.items()})

    def identification(
        self, profile_id: str, traits: Mapping[str, object] | None, fields: Mapping[str, object]
    ) -> Item:
        """Return the account of a visitor."""
        content: dict[str, object] = {"profileId": profile_id}
        if traits:
            content["traits"] = traits
        return self._item(Endpoint.IDENTIFY, content, fields)

    def _item(
        self, endpoint: Endpoint, content: dict[str, object], fields: Mapping[str, object]
    ) -> Item:
        names = WIRE_NAMES[endpoint]
        if self._website_id is not None:
            content["websiteId"] = self._website_id
        for field, value in current_fields().items():
            if field in names and value is not None:
                content[names[field]] = value
        for field, value in fields.items():
            if field not in names:
                raise TypeError(_unknown_field(endpoint, field))
            if value is not None:
                content[names[field]] = value
        content["timestamp"] = _timestamp(content.get("timestamp"))
        # The service takes an empty id as none, and would store a repeat again.
        event_id = str(content.get("eventId") or uuid.uuid4())
        content["eventId"] = event_id
        return Item(endpoint, str(content.get("websiteId", "")), event_id, _encode(content))


def exception_fields(error: BaseException) -> ErrorFields:
    """Return the fields of an error that follow from an exception."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    fields: ErrorFields = {
        "error_type": (module + kind.__qualname__)[-_MAX_TYPE:],
        "stack": "".join(traceback.format_exception(kind, error, error.__traceback__)),
    }
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        fields["filename"] = frames[-1].filename[-_MAX_TEXT:]
        fields["lineno"] = frames[-1].lineno
    return fields


def _message(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - an exception whose text fails is reported all the same
        return type(error).__name__


def _kept(field: str, value: object) -> object:
    """Cut a text, and escape NUL and surrogates, as in names of files: the service refuses both."""
    if not isinstance(value, str):
        return value
    text = value.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
    return text[: _KEPT.get(field)]


def _timestamp(value: object) -> object:
    if value is None:
        return time.time_ns() // 1_000_000
    # JSON has null for them, and the service would take the time at which it received the item.
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidItem(f"the timestamp is {value}: pass epoch milliseconds")
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise InvalidItem("the timestamp has no time zone: pass an aware datetime")
    return (value - _EPOCH) // _MILLISECOND  # exact, which a float of seconds is not


def _encode(content: Mapping[str, object]) -> bytes:
    try:
        return JSON_ENCODER.encode(content)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidItem(f"the item cannot be written as JSON: {error}") from error


def _unknown_field(endpoint: Endpoint, field: str) -> str:
    close = get_close_matches(field, WIRE_NAMES[endpoint], n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{endpoint.value} has no field {field!r}{hint}"
