"""Heads of requests that never end or are too long: refused before they cost memory or time."""

import asyncio
import secrets
from collections.abc import Collection

from starlette.types import Receive, Scope, Send

from headrace.base.errors import ClientError, PayloadTooLarge, RequestTimeout
from headrace.http.responses import Envelope, Response, error_response
from headrace.http.server.disconnects import DisconnectAwareProtocol

MAX_HEAD_BYTES = 65_536
"""What a head may bring after its first piece; every piece is joined to those before it."""

_REASONS = {408: b"Request Timeout", 413: b"Content Too Large"}


class HeadLimitProtocol(DisconnectAwareProtocol):
    """uvicorn's protocol of one connection, with bounds on the request line and the headers."""

    _head_bytes = 0
    _head_started_s: float | None = None  # None while no head is under way
    _opened_s = 0.0
    _has_received_request = False
    _is_in_body = False
    drained_bytes: int | None = None
    """What the caller took of replies between the last two looks; None where none waited."""

    _unsent_bytes = 0  # of replies, that the caller had not taken at the last look
    _unsent_since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Begin to count the time in which a first request should come."""
        self._opened_s = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take a piece, and refuse a head that has become too long."""
        since_s = self._head_started_s
        super().data_received(data)
        if since_s is not None and self._head_started_s == since_s:  # no newer one has begun
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._send_error(PayloadTooLarge())

    def on_message_begin(self) -> None:
        """Note when a head began."""
        self._has_received_request = True
        self._head_bytes = 0
        self._head_started_s = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head is whole."""
        self._head_started_s = None
        super().on_headers_complete()
        self._is_in_body = True

    def on_message_complete(self) -> None:
        """Note that the call is whole."""
        self._is_in_body = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and close; never in the place of a reply to a call before it."""
        if self._is_in_body and self.pipeline:  # in the body of a call that waits for its turn
            self.pipeline[0] = (self.cycle, _send_bad_request)  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]  # uvicorn's and Starlette's types of ASGI differ
        elif self._is_in_body or self.is_idle():
            super().send_400_response(msg)
        else:
            self._close_after_responses()

    def is_idle(self) -> bool:
        """Tell whether no call of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]  # before the first call there is none

    def close_if_timed_out(self, *, head_timeout_s: float, idle_timeout_s: float) -> None:
        """Refuse a head that takes too long; close a connection that was never used.

        One that takes nothing of its replies for as long as a head may take is let go too.
        """
        now_s = self.loop.time()
        if self._check_write_stall(now_s, head_timeout_s):
            self.transport.abort()
        elif self._head_started_s is not None and now_s - self._head_started_s > head_timeout_s:
            self._send_error(RequestTimeout())
        elif not self._has_received_request and now_s - self._opened_s > idle_timeout_s:
            self.transport.close()

    def _check_write_stall(self, now_s: float, timeout_s: float) -> bool:
        before, self._unsent_bytes = self._unsent_bytes, self.transport.get_write_buffer_size()
        self.drained_bytes = max(before - self._unsent_bytes, 0) if before else None
        if self._unsent_bytes == 0 or self._unsent_bytes != before:
            self._unsent_since_s = now_s
        return now_s - self._unsent_since_s > timeout_s

    def _send_error(self, error: ClientError) -> None:
        """Answer and close, or only close once the calls before it are answered."""
        self._head_started_s = None
        if self.is_idle():
            self.transport.write(
                _error_bytes(error_response(error, Envelope.INGESTION, secrets.token_hex(8)))
            )
            self.transport.close()
        else:
            self._close_after_responses()

    def _close_after_responses(self) -> None:
        """Take no more, and close after the reply to the last call that was taken."""
        self.is_draining = True
        self.cycle.keep_alive = False


async def reap_slow_connections(
    connections: Collection[object],
    *,
    head_timeout_s: float,
    idle_timeout_s: float,
    max_unsent_bytes: int,
) -> None:
    """Look at all connections again and again, until cancelled: one timer serves them all."""
    while True:
        await asyncio.sleep(head_timeout_s / 4)
        ours = [each for each in tuple(connections) if isinstance(each, HeadLimitProtocol)]
        for connection in ours:
            connection.close_if_timed_out(
                head_timeout_s=head_timeout_s, idle_timeout_s=idle_timeout_s
            )
        _drop_slowest_readers(ours, max_unsent_bytes)


def _drop_slowest_readers(
    connections: Collection[HeadLimitProtocol], max_unsent_bytes: int
) -> None:
    """Close those that would take longest for what waits for them, where too much waits in all.

    A reply is held in memory until it is taken, and a caller may take a byte now and then.
    """
    unsent = {each: each.transport.get_write_buffer_size() for each in connections}
    excess_bytes = sum(unsent.values()) - max_unsent_bytes
    if excess_bytes <= 0:
        return
    drain_estimates = {
        each: size / (each.drained_bytes + 1)
        for each, size in unsent.items()
        if each.drained_bytes is not None
    }
    for connection in sorted(drain_estimates, key=drain_estimates.__getitem__, reverse=True):
        connection.transport.abort()
        excess_bytes -= unsent[connection]
        if excess_bytes <= 0:
            return


async def _send_bad_request(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body"})


def _error_bytes(response: Response) -> bytes:
    headers = (
        *(header for header in response.headers if header[0] != b"connection"),
        (b"content-length", b"%d" % len(response.body)),
        (b"connection", b"close"),
    )
    lines = [b"HTTP/1.1 %d %s" % (response.status, _REASONS[response.status])]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", response.body])
