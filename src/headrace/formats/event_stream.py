"""Server-sent events, as browsers read them with `EventSource`."""

from typing import Final

COMMENT: Final = b":\n\n"
"""Means nothing; it shows that the stream is open."""


def encode_event(kind: str, event_id: str, body: bytes) -> bytes:
    """Return one event. `body` is JSON, which has no line breaks."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), event_id.encode(), body)
