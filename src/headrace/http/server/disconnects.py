"""Detects a client disconnect while pipelined requests are queued."""

from typing import Final, Protocol

MAX_PIPELINED_BYTES: Final = 65_536
"""Bytes read behind an unanswered request. The end of a connection arrives only after them."""


class Event(Protocol):
    """The part of `asyncio.Event` that wakes an application."""

    def set(self) -> None:
        """Wake those that wait."""
        ...


class ActiveRequest(Protocol):
    """The request that is being answered."""

    response_complete: bool
    disconnected: bool

    @property
    def message_event(self) -> Event:
        """Wakes the application that waits for the body or a disconnect."""
        ...


class DisconnectDetector:
    """Keeps a connection readable, and reports its end to the request that is being answered.

    uvicorn stops reading once a second request is queued, so it does not see the end of the
    connection, and it reports an end only to the request that arrived last.
    """

    __slots__ = ("active_request", "pipelined_bytes")

    def __init__(self) -> None:
        self.active_request: ActiveRequest | None = None
        self.pipelined_bytes = 0

    def should_read_on(self) -> bool:
        """Return whether the connection still reads behind the active request."""
        return self.pipelined_bytes < MAX_PIPELINED_BYTES

    def report_disconnect(self) -> None:
        """Wake the active request with a disconnect; those behind it never start."""
        request = self.active_request
        if request is not None and not request.response_complete:
            request.disconnected = True
            request.message_event.set()
