"""A connection on which plain calls go the short way, and all others uvicorn's."""

import asyncio
from collections.abc import Collection
from typing import Final

from headrace.http.server.connection_limit import ConnectionLimitProtocol
from headrace.http.server.fast_path import CachedHead, FastPath, PendingRequest

_END_OF_HEAD: Final = b"\r\n\r\n"


class FastPathProtocol(ConnectionLimitProtocol):
    """uvicorn's protocol, with a `FastPath` beside it.

    A call goes the short way where it came whole in one piece, and no other of the connection is
    being answered. uvicorn's parser sees every head but those that are known by their bytes.
    """

    fast_path: FastPath | None = None
    _is_between_requests = True  # the parser has no beginning of a call
    _buffered_head: CachedHead | None = None  # the call that the parser is in the middle of
    _buffered_body = b""
    _chunk_head = b""  # of the piece that is being taken
    _raw_head = b""  # of the call that the parser is in the middle of, where it came first
    _bypasses_fast_path = False
    _pending: PendingRequest | None = None
    _idle_since_s: float | None = None

    @classmethod
    def configured(
        cls, *, max_connections: int, fast_path: FastPath | None
    ) -> "type[FastPathProtocol]":
        """Return this protocol with a bound and a lane of its own."""
        return type(
            cls.__name__, (cls,), {"max_connections": max_connections, "fast_path": fast_path}
        )

    def data_received(self, data: bytes) -> None:
        """Take a piece: a known head with its whole body, or anything for the parser."""
        self._idle_since_s = None
        if self._is_between_requests and self.fast_path is not None and self._is_free():
            self._chunk_head = raw = data[: data.find(_END_OF_HEAD) + len(_END_OF_HEAD)]
            cached = self.fast_path.cached_head(raw)
            if cached is not None and len(data) - len(raw) == cached.body_size:
                if self._try_handle(cached, data[len(raw) :]):
                    return
                self._bypasses_fast_path = True
        super().data_received(data)
        if self._buffered_head is not None:  # its body comes in pieces
            self._fall_back()
        self._bypasses_fast_path = False
        self._chunk_head = b""

    def on_message_begin(self) -> None:
        """Note that the parser is in the middle of a call."""
        self._is_between_requests = False
        self._raw_head, self._chunk_head = self._chunk_head, b""
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Keep a plain call back until it is whole."""
        self._head_started_s = None
        self._buffered_head = self._parse_head()
        if self._buffered_head is None:
            super().on_headers_complete()
        else:
            self._buffered_body = b""

    def on_body(self, body: bytes) -> None:
        """Keep the body of a plain call."""
        if self._buffered_head is None:
            super().on_body(body)
        else:
            self._buffered_body += body

    def on_message_complete(self) -> None:
        """Begin a plain call."""
        self._is_between_requests = True
        if self._buffered_head is not None:
            head = self._buffered_head
            if self._try_handle(head, self._buffered_body):
                self._buffered_head = None
                self._remember(head)
                return
            self._fall_back()
        super().on_message_complete()

    def finish(self, pending: PendingRequest, response: bytes) -> None:
        """Send the reply of a call; see `direct.Connection`."""
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
        """Close at once; see `direct.Connection`."""
        self.transport.abort()

    def cancel_pending(self) -> None:
        """Tell a call that the end of the server came first."""
        if self._pending is not None:
            self._pending.keep_alive = False
            self._pending.on_durable(asyncio.CancelledError())

    def close_if_timed_out(self, *, head_timeout_s: float, idle_timeout_s: float) -> None:
        """Close a connection that brought nothing for long after its last call."""
        super().close_if_timed_out(head_timeout_s=head_timeout_s, idle_timeout_s=idle_timeout_s)
        since_s = self._idle_since_s
        if since_s is not None and self.loop.time() - since_s > idle_timeout_s:
            self.transport.close()

    def _is_free(self) -> bool:
        return self.is_idle() and not self.flow.write_paused

    def _parse_head(self) -> CachedHead | None:
        if self.fast_path is None or self._bypasses_fast_path or not self._is_free():
            return None
        parser = self.parser
        if parser is None or parser.get_method() != b"POST":  # pyright: ignore[reportUnnecessaryComparison] - uvicorn's types differ
            return None
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        return self.fast_path.parse_head(self.url, self.headers)

    def _try_handle(self, head: CachedHead, body: bytes) -> bool:
        """Begin a call, if the lane takes it."""
        pending = None if self.fast_path is None else self.fast_path.try_handle(head, body, self)
        if pending is None:
            return False
        self._has_received_request = True
        self._unset_keepalive_if_required()
        self._pending = pending
        self.cycle = pending  # type: ignore[assignment]  # it has all that uvicorn asks of one
        return True

    def _fall_back(self) -> None:
        """Let uvicorn have what was kept back of a call."""
        self._buffered_head = None
        super().on_headers_complete()
        if self._buffered_body:
            super().on_body(self._buffered_body)
        self._buffered_body = b""

    def _remember(self, head: CachedHead) -> None:
        """Know the head the next time. Only where it cannot end but where it seemed to end."""
        raw = self._raw_head
        has_bare_line_end = raw.count(b"\n") != raw.count(b"\r\n")
        if self.fast_path is not None and raw.startswith(b"POST ") and not has_bare_line_end:
            self.fast_path.remember(raw, head)


def fail_pending(connections: Collection[object]) -> None:
    """Tell all calls that are still waiting that the end of the server came first."""
    for connection in tuple(connections):
        if isinstance(connection, FastPathProtocol):
            connection.cancel_pending()
