"""A connection on which plain calls go the short way, and all others uvicorn's."""

import asyncio
from collections.abc import Collection
from typing import Final

from headrace.http.server.connection_limit import CrowdedConnection
from headrace.http.server.fast_path import DirectCall, DirectLane, PlainHead

_END_OF_HEAD: Final = b"\r\n\r\n"


class DirectConnection(CrowdedConnection):
    """uvicorn's protocol, with a `DirectLane` beside it.

    A call goes the short way where it came whole in one piece, and no other of the connection is
    being answered. uvicorn's parser sees every head but those that are known by their bytes.
    """

    lane: DirectLane | None = None
    _is_between_calls = True  # the parser has no beginning of a call
    _plain: PlainHead | None = None  # the call that the parser is in the middle of
    _plain_body = b""
    _first_head = b""  # of the piece that is being taken
    _raw_head = b""  # of the call that the parser is in the middle of, where it came first
    _goes_long = False
    _direct: DirectCall | None = None
    _idle_since_s: float | None = None

    @classmethod
    def with_(cls, *, max_connections: int, lane: DirectLane | None) -> "type[DirectConnection]":
        """Return this protocol with a bound and a lane of its own."""
        return type(cls.__name__, (cls,), {"max_connections": max_connections, "lane": lane})

    def data_received(self, data: bytes) -> None:
        """Take a piece: a known head with its whole body, or anything for the parser."""
        self._idle_since_s = None
        if self._is_between_calls and self.lane is not None and self._is_free():
            self._first_head = raw = data[: data.find(_END_OF_HEAD) + len(_END_OF_HEAD)]
            known = self.lane.known_head(raw)
            if known is not None and len(data) - len(raw) == known.body_size:
                if self._begin(known, data[len(raw) :]):
                    return
                self._goes_long = True
        super().data_received(data)
        if self._plain is not None:  # its body comes in pieces
            self._go_long()
        self._goes_long = False
        self._first_head = b""

    def on_message_begin(self) -> None:
        """Note that the parser is in the middle of a call."""
        self._is_between_calls = False
        self._raw_head, self._first_head = self._first_head, b""
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Keep a plain call back until it is whole."""
        self._head_since_s = None
        self._plain = self._read_head()
        if self._plain is None:
            super().on_headers_complete()
        else:
            self._plain_body = b""

    def on_body(self, body: bytes) -> None:
        """Keep the body of a plain call."""
        if self._plain is None:
            super().on_body(body)
        else:
            self._plain_body += body

    def on_message_complete(self) -> None:
        """Begin a plain call."""
        self._is_between_calls = True
        if self._plain is not None:
            head = self._plain
            if self._begin(head, self._plain_body):
                self._plain = None
                self._learn(head)
                return
            self._go_long()
        super().on_message_complete()

    def finish(self, call: DirectCall, reply: bytes) -> None:
        """Send the reply of a call; see `direct.Line`."""
        self._direct = None
        if not self.transport.is_closing():
            self.transport.write(reply)
            if not call.keep_alive:
                self.transport.close()
        if self.pipeline:
            self.on_response_complete()
        else:
            self._idle_since_s = self.loop.time()

    def abort(self) -> None:
        """Close at once; see `direct.Line`."""
        self.transport.abort()

    def give_up(self) -> None:
        """Tell a call that the end of the server came first."""
        if self._direct is not None:
            self._direct.keep_alive = False
            self._direct.told(asyncio.CancelledError())

    def end_if_late(self, *, head_timeout_s: float, idle_timeout_s: float) -> None:
        """Close a connection that brought nothing for long after its last call."""
        super().end_if_late(head_timeout_s=head_timeout_s, idle_timeout_s=idle_timeout_s)
        since_s = self._idle_since_s
        if since_s is not None and self.loop.time() - since_s > idle_timeout_s:
            self.transport.close()

    def _is_free(self) -> bool:
        return self.is_idle() and not self.flow.write_paused

    def _read_head(self) -> PlainHead | None:
        if self.lane is None or self._goes_long or not self._is_free():
            return None
        parser = self.parser
        if parser is None or parser.get_method() != b"POST":  # pyright: ignore[reportUnnecessaryComparison] - uvicorn's types differ
            return None
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        return self.lane.read_head(self.url, self.headers)

    def _begin(self, head: PlainHead, body: bytes) -> bool:
        """Begin a call, if the lane takes it."""
        call = None if self.lane is None else self.lane.take(head, body, self)
        if call is None:
            return False
        self._has_begun = True
        self._unset_keepalive_if_required()
        self._direct = call
        self.cycle = call  # type: ignore[assignment]  # it has all that uvicorn asks of one
        return True

    def _go_long(self) -> None:
        """Let uvicorn have what was kept back of a call."""
        self._plain = None
        super().on_headers_complete()
        if self._plain_body:
            super().on_body(self._plain_body)
        self._plain_body = b""

    def _learn(self, head: PlainHead) -> None:
        """Know the head the next time. Only where it cannot end but where it seemed to end."""
        raw = self._raw_head
        has_bare_line_end = raw.count(b"\n") != raw.count(b"\r\n")
        if self.lane is not None and raw.startswith(b"POST ") and not has_bare_line_end:
            self.lane.learn(raw, head)


def give_up_all(connections: Collection[object]) -> None:
    """Tell all calls that are still waiting that the end of the server came first."""
    for connection in tuple(connections):
        if isinstance(connection, DirectConnection):
            connection.give_up()
