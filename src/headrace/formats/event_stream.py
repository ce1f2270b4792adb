"""Server-sent events, as browsers read them with `EventSource`."""

from typing import Final

COMMENT: Final = b":\n\n"
"""Means nothing; it shows that the stream is open."""


def encode_position(event_id: str) -> bytes:
    """Return a comment with an id: what comes after it may be requested without another event."""
    return b":\nid: %b\n\n" % event_id.encode()


def encode_event(kind: str, event_id: str, body: bytes) -> bytes:
    """Return one event. `body` is JSON, which has no line breaks."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), event_id.encode(), body)
