"""The protocol of a connection: uvicorn's, with our limits and the fast path.

All use of uvicorn's internals by a connection is here; `uvicorn_internals` lists their names. The
policies are modules of their own, which know no socket.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config

from headrace.base.errors import ClientError, PayloadTooLarge, RequestTimeout
from headrace.http.server.cached_heads import CachedHead
from headrace.http.server.connection_limit import ConnectionLimit
from headrace.http.server.decline_upgrade import (
    NoUpgradeParser,
    head_without_upgrade,
    offers_upgrade,
)
from headrace.http.server.disconnects import DisconnectDetector
from headrace.http.server.fast_path import FastPath, PendingRequest
from headrace.http.server.head_limits import HeadLimits, encode_head_error
from headrace.http.server.request_buffer import RequestBuffer
from headrace.http.server.slow_readers import WriteProgress
from headrace.http.server.uvicorn_internals import (
    HttpToolsProtocol,
    RequestResponseCycle,
    ServerState,
)

_END_OF_HEAD: Final = b"\r\n\r\n"


class HeadraceProtocol(HttpToolsProtocol):
    """One connection.

    A request takes the fast path if it arrived in one chunk and no other request of the connection
    is being answered. uvicorn's parser reads every head but those that are cached by their bytes.
    """

    connection_limit: ConnectionLimit
    fast_path: FastPath | None = None

    @classmethod
    def configured(
        cls, *, max_connections: int, fast_path: FastPath | None
    ) -> "type[HeadraceProtocol]":
        """Return a subclass with these, since uvicorn creates its protocols from a class alone."""
        limit = ConnectionLimit(max_connections)
        return type(cls.__name__, (cls,), {"connection_limit": limit, "fast_path": fast_path})

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser = NoUpgradeParser(self)
        self.has_upgrade_offer = False
        """Whether the last head offers another protocol for its request."""
        self._head = HeadLimits(self.loop.time())
        self._disconnects = DisconnectDetector()
        self._write_progress = WriteProgress()
        self._buffer = RequestBuffer()
        self._pending: PendingRequest | None = None
        self._idle_since_s: float | None = None  # since the last response of the fast path
        self._is_between_requests = True  # the parser has no part of a request
        self._is_in_body = False
        self._is_draining = False  # received bytes are dropped, and the last response closes
        self._bypasses_fast_path = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Make room for the connection, or close it if all others are being answered."""
        others = own_connections(self.connections)
        if not self.connection_limit.make_room(len(self.connections), others):
            transport.abort()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the disconnect to the active request; uvicorn reports it to the last one."""
        self._disconnects.report_disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle a known head with its whole body at once; parse everything else."""
        self._idle_since_s = None
        if self._is_between_requests and self.fast_path is not None and self._is_free():
            raw = data[: data.find(_END_OF_HEAD) + len(_END_OF_HEAD)]
            cached = self.fast_path.cached_head(raw)
            if cached is not None and len(data) - len(raw) == cached.body_size:
                if self._try_handle(cached, data[len(raw) :]):
                    return
                self._bypasses_fast_path = True
            self._buffer.chunk_head = raw
        if not self._is_draining:
            self._parse(data)
        if self._buffer.head is not None:  # its body arrives in several chunks
            self._fall_back()
        self._bypasses_fast_path = False
        self._buffer.chunk_head = b""

    def _parse(self, data: bytes) -> None:
        head_started_s = self._head.started_s
        super().data_received(data)
        if self.pipeline:
            self._disconnects.pipelined_bytes += len(data)
            if self._disconnects.should_read_on():
                self.flow.resume_reading()
        if head_started_s is not None:
            self._head.count(head_started_s, len(data))
            if self._head.is_too_long():
                self._send_error(PayloadTooLarge())

    def on_message_begin(self) -> None:
        """Start the timeout of the head."""
        self._is_between_requests = False
        self._buffer.start_message()
        self._head.start(self.loop.time())
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Buffer a simple request until it is complete; start any other."""
        self._head.complete()
        self._buffer.head = self._parse_simple_head()
        if self._buffer.head is None:
            self._start_request()
        else:
            self._buffer.body = b""

    def on_body(self, body: bytes) -> None:
        """Buffer the body of a simple request."""
        if self._buffer.head is None:
            super().on_body(body)
        else:
            self._buffer.body += body

    def on_message_complete(self) -> None:
        """Handle a simple request."""
        self._is_between_requests = True
        head = self._buffer.head
        if head is not None:
            if self._try_handle(head, self._buffer.body):
                self._buffer.head = None
                self._remember(head)
                return
            self._fall_back()
        self._is_in_body = False
        if not self.has_upgrade_offer:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next pipelined request."""
        if not self.pipeline:
            self._disconnects.pipelined_bytes = 0
        super().on_response_complete()

    def ignore_upgrade(self) -> NoUpgradeParser:
        """Parse the last head again without its offer; see `UpgradableConnection`."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        head = head_without_upgrade(method, self.url, version, self.headers)
        self.parser = parser = NoUpgradeParser(self)
        parser.feed_data(head)
        return parser

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP and close, but never instead of an earlier request's response."""
        if self._is_in_body and self.pipeline:  # in the body of a queued request
            self.pipeline[0] = (self.cycle, _send_bad_request)  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]  # uvicorn's and Starlette's types of ASGI differ
        elif self._is_in_body or self.is_idle():
            super().send_400_response(msg)
        else:
            self._close_after_responses()

    def finish(self, pending: PendingRequest, response: bytes) -> None:
        """Send the response of a fast-path request; see `fast_path.Connection`."""
        self._pending = None
        if not self.transport.is_closing():
            self.transport.write(response)
            if not pending.keep_alive:
                self.transport.close()
        if self.pipeline:
            self.on_response_complete()
        else:
            self._idle_since_s = self.loop.time()

    def abort(self) -> None:
        """Close at once; see `fast_path.Connection` and `slow_readers.SlowReader`."""
        self.transport.abort()

    def evict(self) -> None:
        """Close at once; see `connection_limit.EvictableConnection`."""
        self.connections.discard(self)  # `connection_lost` comes only after the next count
        self.transport.abort()

    def cancel_pending(self) -> None:
        """Fail the fast-path request that is still pending when the server ends."""
        if self._pending is not None:
            self._pending.keep_alive = False
            self._pending.on_durable(asyncio.CancelledError())

    def is_idle(self) -> bool:
        """Return whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has not read yet."""
        return self.transport.get_write_buffer_size()

    @property
    def drained_bytes(self) -> int | None:
        """See `slow_readers.WriteProgress`."""
        return self._write_progress.drained_bytes

    def close_if_timed_out(self, *, head_timeout_s: float, idle_timeout_s: float) -> None:
        """Close after a timeout: of reading responses, of a head (408), or of being idle.

        A client that reads nothing of its responses for as long as a head may take is cut off.
        """
        now_s = self.loop.time()
        self._write_progress.sample(now_s, self.unsent_bytes)
        if self._write_progress.is_stalled(now_s, head_timeout_s):
            self.transport.abort()
        elif self._head.is_late(now_s, head_timeout_s):
            self._send_error(RequestTimeout())
        elif self._head.is_unused(now_s, idle_timeout_s):
            self.transport.close()
        if self._idle_since_s is not None and now_s - self._idle_since_s > idle_timeout_s:
            self.transport.close()

    def _send_error(self, error: ClientError) -> None:
        """Answer a head and close, or only close after the responses to earlier requests."""
        self._head.complete()
        if self.is_idle():
            self.transport.write(encode_head_error(error))
            self.transport.close()
        else:
            self._close_after_responses()

    def _close_after_responses(self) -> None:
        """Drop further bytes, and close after the response to the last request."""
        self._is_draining = True
        self.cycle.keep_alive = False

    def _start_request(self) -> None:
        """Let uvicorn start a request, unless its head will be parsed again without an offer."""
        self.has_upgrade_offer = self.parser.should_upgrade() and offers_upgrade(self.headers)
        if not self.has_upgrade_offer:
            super().on_headers_complete()
        self._is_in_body = True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]  # uvicorn's and Starlette's types of ASGI differ
        self._disconnects.active_request = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]  # as above

    def _is_free(self) -> bool:
        cycle = self.cycle  # as `is_idle`; a call less for each request
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request

    def _parse_simple_head(self) -> CachedHead | None:
        if self.fast_path is None or self._bypasses_fast_path or not self._is_free():
            return None
        parser = self.parser
        if parser is None or parser.get_method() != b"POST":  # pyright: ignore[reportUnnecessaryComparison] - uvicorn's types differ
            return None
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        return self.fast_path.parse_head(self.url, self.headers)

    def _try_handle(self, head: CachedHead, body: bytes) -> bool:
        """Start a request on the fast path; return whether it was accepted there."""
        pending = None if self.fast_path is None else self.fast_path.try_handle(head, body, self)
        if pending is None:
            return False
        self._head.has_received_request = True
        self._unset_keepalive_if_required()
        self._pending = pending
        self.cycle = pending  # type: ignore[assignment]  # it has all that uvicorn reads of one
        return True

    def _fall_back(self) -> None:
        """Return a buffered request to uvicorn."""
        self._buffer.head = None
        self._start_request()
        if self._buffer.body:
            super().on_body(self._buffer.body)
        self._buffer.body = b""

    def _remember(self, head: CachedHead) -> None:
        raw = self._buffer.cacheable_head()
        if self.fast_path is not None and raw is not None:
            self.fast_path.remember(raw, head)


def own_connections(connections: Iterable[object]) -> Iterator[HeadraceProtocol]:
    """Return the connections with their type, which uvicorn does not know."""
    return (each for each in connections if isinstance(each, HeadraceProtocol))


async def _send_bad_request(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body"})
