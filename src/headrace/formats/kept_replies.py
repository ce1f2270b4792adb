"""The names of events in replies that are kept for an Idempotency-Key. Pure.

A kept reply is an `AcceptResult` (`ingest.receive.preparation`) in JSON.
"""

from typing import Any, Final

import msgspec

_EVENT_IDS: Final = "event_ids"


def event_ids_of(reply: bytes) -> frozenset[str]:
    """Return the event ids that a reply names."""
    return frozenset(event_id for event_id in _event_ids(msgspec.json.decode(reply)) if event_id)


def without_event_id(reply: bytes, event_id: str) -> bytes | None:
    """Return a reply with null in place of an event id; None if it does not name it."""
    if msgspec.json.encode(event_id) not in reply:
        return None
    decoded: dict[str, Any] = msgspec.json.decode(reply)
    others = [None if one == event_id else one for one in _event_ids(decoded)]
    return msgspec.json.encode({**decoded, _EVENT_IDS: others})


def _event_ids(decoded: dict[str, Any]) -> list[str | None]:
    event_ids: list[str | None] = decoded.get(_EVENT_IDS, [])
    return event_ids
