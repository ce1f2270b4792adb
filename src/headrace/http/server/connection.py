"""The protocol of a connection: uvicorn's, with our limits and the fast path.

All use of uvicorn's internals by a connection is here; `uvicorn_internals` lists their names. The
policies are modules of their own, which know no socket.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final

from starlette.types import ASGIApp
from uvicorn import Config

from headrace.base.errors import PayloadTooLarge, RequestTimeout
from headrace.http.server.connection_limit import ConnectionLimit
from headrace.http.server.disconnects import DisconnectDetector
from headrace.http.server.expectation import close_unless_continued
from headrace.http.server.fast_path import FastPath, PendingRequest
from headrace.http.server.final_response import BAD_REQUEST, encode_head_error
from headrace.http.server.half_close import answered_requests
from headrace.http.server.head_timeouts import HeadTimeouts
from headrace.http.server.lingering_close import LingeringTransport
from headrace.http.server.parsing.cached_heads import CachedHead
from headrace.http.server.parsing.head_reader import HeadTooLong
from headrace.http.server.parsing.request_buffer import RequestBuffer
from headrace.http.server.parsing.request_parser import RequestParser
from headrace.http.server.send_queue import queued_bytes
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
    is being answered. `RequestParser` reads every head but those that are cached by their bytes.
    """

    connection_limit: ConnectionLimit
    fast_path: FastPath | None = None
    parser: RequestParser  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]  # it has all that uvicorn calls of httptools'

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
        self.parser = RequestParser(self)
        self._head = HeadTimeouts(self.loop.time())
        self._disconnects = DisconnectDetector()
        self._write_progress = WriteProgress()
        self._buffer = RequestBuffer()
        self._pending: PendingRequest | None = None
        self._active_cycle: RequestResponseCycle | None = None
        self._idle_since_s: float | None = None  # since the last response of the fast path
        self._is_draining = False  # received bytes are dropped, and the last response closes
        self._final_response: bytes | None = None  # follows the last response
        self._bypasses_fast_path = False
        self._has_ended_input = False  # the client has closed its half, or the server stops

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Make room for the connection, or close it if all others are being answered."""
        others = own_connections(self.connections)
        if not self.connection_limit.make_room(len(self.connections), others):
            transport.abort()
        self._closing = LingeringTransport(transport, self.loop, self._expects_bytes)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the disconnect to the active request; uvicorn reports it to the last one."""
        self._closing.close_now()
        self._disconnects.report_disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle a known head with its whole body at once; parse everything else."""
        self._idle_since_s = None
        if self.fast_path is not None and self.parser.is_between_requests and self._is_free():
            raw = data[: data.find(_END_OF_HEAD) + len(_END_OF_HEAD)]
            cached = self.fast_path.cached_head(raw)
            if cached is not None and len(data) - len(raw) == cached.body_size:
                if self._try_handle(cached, data[len(raw) :]):
                    return
                self._bypasses_fast_path = True
            self._buffer.chunk_head = raw
        if self._is_draining or self._closing.is_lingering:
            self._closing.drop(len(data))
        else:
            self._parse(data)
        if self._buffer.head is not None:  # its body arrives in several chunks
            self._fall_back()
        self._bypasses_fast_path = False
        self._buffer.chunk_head = b""

    def _parse(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except HeadTooLong:
            self._end_with(encode_head_error(PayloadTooLarge()))
        if self.pipeline:
            self._disconnects.pipelined_bytes += len(data)
            if self._disconnects.should_read_on():
                self.flow.resume_reading()
        if self.parser.is_in_head:
            self._head.start(self.loop.time())
        elif self.parser.is_between_requests and self.is_idle():  # after empty lines alone
            self._idle_since_s = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio's, which uvicorn narrows
        """Answer the requests of a client that has closed its half, and close; False closes now."""
        self._has_ended_input = True
        if self._closing.is_lingering:
            return False
        active = self._pending or self._active_cycle
        if active is None or self.is_idle() or (self.parser.is_in_body and not self.pipeline):
            return False
        if self.parser.is_in_body:
            self.pipeline.popleft()  # its rest will not arrive
        requests = [active, *(cycle for cycle, _ in reversed(self.pipeline))]
        answered = answered_requests(requests)
        for _ in requests[max(len(answered), 1) :]:
            self.pipeline.popleft()
        if answered and (self._final_response is None or len(answered) < len(requests)):
            answered[-1].keep_alive = False
        self._is_draining = True
        return bool(answered)

    def on_message_begin(self) -> None:
        """Start the timeout of the head."""
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
        head = self._buffer.head
        if head is not None:
            if self._try_handle(head, self._buffer.body):
                self._buffer.head = None
                self._remember(head)
                return
            self._fall_back()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or send what follows the last response."""
        if not self.pipeline:
            self._disconnects.pipelined_bytes = 0
            if self._final_response is not None:
                self._close_with(self._final_response)
        if self._closing.is_lingering:
            self.pipeline.clear()
            self.flow.resume_reading()
            return
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP after the responses to earlier requests, and close."""
        del msg
        if not self.parser.is_in_body:
            self._end_with(BAD_REQUEST)
        elif self.pipeline:  # it is in the body of the newest queued request, which never starts
            self.pipeline.popleft()
            self._end_with(BAD_REQUEST)
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._close_with(b"" if self.cycle.response_started else BAD_REQUEST)

    def shutdown(self) -> None:
        """Close after the active request, without waiting for what its client still sends."""
        self._has_ended_input = True
        self._closing.close_now()
        super().shutdown()

    def finish(self, pending: PendingRequest, response: bytes) -> None:
        """Send the response of a fast-path request; see `fast_path.Connection`."""
        self._pending = None
        if not self.transport.is_closing():
            self.transport.write(response)
            if not pending.keep_alive:
                self.transport.close()
        if self.pipeline or self._final_response is not None:
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
        unsent = self.unsent_bytes
        queued = queued_bytes(self.transport.get_extra_info("socket")) if unsent else 0
        self._write_progress.sample(now_s, unsent, queued)
        if self._write_progress.is_stalled(now_s, head_timeout_s):
            self.transport.abort()
        elif self._head.is_late(now_s, head_timeout_s):
            self._end_with(encode_head_error(RequestTimeout()))
        elif self._head.is_unused(now_s, idle_timeout_s):
            self.transport.close()
        if self._idle_since_s is not None and now_s - self._idle_since_s > idle_timeout_s:
            self.transport.close()

    def _end_with(self, response: bytes) -> None:
        """Drop further bytes, and close with a response behind those to earlier requests."""
        self._head.complete()
        self._is_draining = True
        if self.is_idle():
            self._close_with(response)
        elif self._final_response is None:
            self._final_response = response

    def _close_with(self, response: bytes) -> None:
        if not self._closing.is_closing():
            self._closing.write(response)
            self._closing.close()
            self.flow.resume_reading()

    def _expects_bytes(self) -> bool:
        """Return whether the client may still send what nobody reads."""
        return (self.parser.is_in_body or self._is_draining) and not self._has_ended_input

    def _start_request(self) -> None:
        """Let uvicorn start a request. HTTP/1.0 has no `Expect`."""
        self.expect_100_continue &= self.parser.get_http_version() != "1.0"
        super().on_headers_complete()
        self.cycle.transport = self._closing  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]  # it has all that a cycle calls of one

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]  # uvicorn's and Starlette's types of ASGI differ
        self._active_cycle = self._disconnects.active_request = cycle
        if cycle.waiting_for_100_continue:
            app = close_unless_continued(app)
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
