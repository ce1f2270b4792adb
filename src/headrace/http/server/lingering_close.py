"""Closes a connection while its client still sends: RFC 9112, section 9.6.

A socket that is closed with unread bytes resets the connection, and the reset can discard the
response before its client has read it.
"""

import asyncio
from collections.abc import Callable
from typing import Final

LINGER_S: Final = 5.0
"""Longer than a round trip and a retransmission, after which the client has read the response."""

MAX_LINGER_BYTES: Final = 1_048_576
"""What buffers of sockets hold on the way; a client that sends more does not read meanwhile."""


class LingeringTransport:
    """A transport whose `close` shuts down the sending half, and drops what the client sends.

    It closes when the client does, after `LINGER_S`, or after `MAX_LINGER_BYTES`; and at once if
    not `expects_bytes`.
    """

    __slots__ = ("_dropped_bytes", "_expects_bytes", "_loop", "_timer", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        expects_bytes: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._dropped_bytes = 0
        self._expects_bytes = expects_bytes

    @property
    def is_lingering(self) -> bool:
        """Whether the response is sent, and the client may still send."""
        return self._timer is not None

    def is_closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self.is_lingering or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write unless the sending half is shut down."""
        if not self.is_lingering:
            self._transport.write(data)

    def close(self) -> None:
        """Close behind what was written."""
        if self.is_closing():
            return
        if self._expects_bytes():
            self._transport.write_eof()
            self._timer = self._loop.call_later(LINGER_S, self.close_now)
        else:
            self._transport.close()

    def drop(self, size: int) -> None:
        """Count received bytes, which nobody reads."""
        if self.is_lingering:
            self._dropped_bytes += size
            if self._dropped_bytes > MAX_LINGER_BYTES:
                self.close_now()

    def close_now(self) -> None:
        """End the lingering, if there is any."""
        if self._timer is not None:
            self._timer.cancel()
            self._transport.close()
