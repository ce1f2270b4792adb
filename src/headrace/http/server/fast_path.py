"""The short way of a plain ingestion call: no task, nothing to wait for but the log, one write.

Whether a call is plain is told by its head, and by the use case once there is its body. All other
calls, and all that anything is wrong with, go the way of every call: see `answering`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from httptools import HttpParserInvalidURLError, parse_url
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headrace.http.access_log import CallRecorder
from headrace.http.endpoint import RequestIds
from headrace.http.endpoints import EndpointRow
from headrace.http.reading.body import is_json_type
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.cors import Cors
from headrace.http.reading.credentials import read_credentials
from headrace.http.reading.memory_limit import InflightBytes
from headrace.http.responses import Header, Reply, refuse
from headrace.http.routes.ingest import SUCCESS_BODIES
from headrace.http.server.request_counter import CallTally
from headrace.ingest.receive.decode import Endpoint
from headrace.ingest.receive.service import Accepted, IngestRequest
from headrace.model.tenancy import Credentials
from headrace.ports.event_log import Told

_HEADS_KNOWN: Final = 2_048
_HEADS_SEEN: Final = 16_384
_LONGEST_KNOWN_HEAD: Final = 2_048
_NOT_PLAIN: Final = frozenset(
    {
        b"connection",  # mostly to close it, or to upgrade it
        b"content-encoding",
        b"expect",
        b"idempotency-key",
        b"transfer-encoding",
        b"upgrade",
    }
)


_SUCCESS: Final = (
    STATUS_LINE[200]
    + b"content-type: application/json\r\nx-request-id: %b\r\ncontent-length: %d\r\n%b%b%b"
)
"""Of request id, length, connection, what the head asks for, and body: one format for all."""


class AcceptsDirectly(Protocol):
    """The use case, for calls that it takes without waiting."""

    def accept_directly(self, request: IngestRequest, told: Told) -> Accepted | None:
        """See `headrace.ingest.receive.service.Acceptor.accept_directly`."""
        ...


class Place(Struct, frozen=True):
    """Where plain calls may go: an ingestion endpoint."""

    row: EndpointRow
    endpoint: Endpoint
    cors: Cors | None


class PlainHead(Struct, frozen=True, gc=False):
    """What the head of a plain call says, worked out once."""

    row: EndpointRow
    endpoint: Endpoint
    body_size: int
    headers: Sequence[Header]
    credentials: Credentials
    user_agent: str
    reply_end: bytes
    cors_headers: Sequence[Header]


class Line(Protocol):
    """What a call needs of its connection."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The other end's address and port."""
        ...

    def finish(self, call: "DirectCall", reply: bytes) -> None:
        """Send the reply of a call, whole."""
        ...

    def abort(self) -> None:
        """Close without another word."""
        ...


class DirectLane:
    """Takes plain calls and answers them; one for all connections of a worker.

    Clients send one head again and again, so it is known by its bytes: those of a head that was
    once parsed, from the beginning of a message, mean the same again.
    """

    def __init__(
        self,
        places: Mapping[bytes, Place],
        *,
        acceptor: AcceptsDirectly,
        addresses: ClientAddresses,
        inflight: InflightBytes,
        recorder: CallRecorder,
        tally: CallTally,
        request_ids: RequestIds,
        max_body_bytes: int,
    ) -> None:
        self._places = places
        self._accept = acceptor.accept_directly
        self._addresses = addresses
        self._inflight = inflight
        self._recorder = recorder
        self._tally = tally
        self._new_request_id = request_ids
        self._max_body_bytes = max_body_bytes
        self._seen: set[int] = set()
        self._known: dict[bytes, PlainHead] = {}
        self.known_head = self._known.get
        """Returns what the bytes of a head mean, line ends included, or None."""

    def learn(self, raw: bytes, head: PlainHead) -> None:
        """Remember what the bytes of a head mean, where they came before.

        Where each call has a head of its own, as with an id of its trace, none is kept.
        """
        if len(raw) > _LONGEST_KNOWN_HEAD:
            return
        number = hash(raw)
        if number not in self._seen:
            if len(self._seen) >= _HEADS_SEEN:
                self._seen.clear()
            self._seen.add(number)
            return
        if len(self._known) >= _HEADS_KNOWN:
            self._known.clear()
        self._known[raw] = head

    def read_head(self, url: bytes, headers: Sequence[Header]) -> PlainHead | None:
        """Read the head of a POST that keeps its connection; None where it is not plain."""
        last = dict(headers)
        size = last.get(b"content-length", b"")
        if not _NOT_PLAIN.isdisjoint(last) or not 0 < int(size or 0) <= self._max_body_bytes:
            return None
        content_type, origin = last.get(b"content-type"), last.get(b"origin")
        if content_type is not None and not is_json_type(content_type):
            return None
        try:
            parts = parse_url(url)
        except HttpParserInvalidURLError:
            return None
        place = self._places.get(parts.path)
        if place is None or not (origin or b"").isascii():
            return None
        cors = place.cors.reply_headers(origin) if place.cors and origin is not None else ()
        return PlainHead(
            row=place.row,
            endpoint=place.endpoint,
            body_size=int(size),
            headers=tuple(headers),
            credentials=read_credentials(parts.query or b"", last),
            user_agent=last.get(b"user-agent", b"").decode("latin-1"),
            reply_end=_lines(cors) + b"\r\n" if cors else b"\r\n",
            cors_headers=cors,
        )

    def take(self, head: PlainHead, body: bytes, line: Line) -> "DirectCall | None":
        """Take a call, which will be answered on its line, or return None and do nothing."""
        if not self._inflight.has_room(len(body)):
            return None
        call = DirectCall(self, head, line, self._recorder.monotonic_s())
        try:
            call.accepted = self._accept(self._read_request(head, body, line), call.told)
        except Exception:  # noqa: BLE001 - a fault of ours is met again on the long way, and told
            return None
        if call.accepted is None:
            return None
        self._inflight.hold(call, len(body))
        return call

    def _read_request(self, head: PlainHead, body: bytes, line: Line) -> IngestRequest:
        has_key = head.credentials.api_key is not None
        return IngestRequest(
            endpoint=head.endpoint,
            body=body,
            credentials=head.credentials,
            address="" if has_key else self._addresses.find_of(line.client, head.headers),
            user_agent=head.user_agent,
        )

    def answer(self, call: "DirectCall", failure: BaseException | None) -> None:
        """Answer a call, exactly once."""
        self._inflight.release(call)
        request_id = self._new_request_id()
        if failure is None and call.accepted is not None:
            self._tally.add(call.head.row)
            reply = _success_bytes(call, call.accepted, request_id)
        else:
            reply = self._refuse(call, failure or RuntimeError("nothing was accepted"), request_id)
        call.line.finish(call, reply)

    def fail(self, call: "DirectCall", error: Exception) -> None:
        """End a call whose reply could not be made."""
        self._recorder.record_failure(call.head.row, error, self._new_request_id())
        call.line.abort()

    def _refuse(self, call: "DirectCall", error: BaseException, request_id: str) -> bytes:
        row = call.head.row
        self._recorder.record_failure(row, error, request_id)
        reply = refuse(error, row.envelope, request_id)
        self._recorder.record(row, "POST", reply.status, call.started_s, request_id)
        return _reply_bytes(call, reply, request_id)


class _Nobody:
    def set(self) -> None:
        return


class DirectCall:
    """A call that waits for the log. To uvicorn it is the connection's request and response."""

    __slots__ = (
        "_lane",
        "accepted",
        "disconnected",
        "head",
        "held_bytes",
        "keep_alive",
        "line",
        "response_complete",
        "started_s",
    )

    message_event: Final = _Nobody()

    def __init__(self, lane: DirectLane, head: PlainHead, line: Line, started_s: float) -> None:
        self._lane = lane
        self.head = head
        self.line = line
        self.started_s = started_s
        self.accepted: Accepted | None = None
        self.held_bytes = 0
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False

    def told(self, failure: BaseException | None) -> None:
        """Answer the call with what became of it; later words count for nothing."""
        if not self.response_complete:
            self.response_complete = True
            try:
                self._lane.answer(self, failure)
            except Exception as error:  # noqa: BLE001 - the outermost place
                self._lane.fail(self, error)


def _success_bytes(call: DirectCall, accepted: Accepted, request_id: str) -> bytes:
    body = SUCCESS_BODIES[call.head.endpoint](accepted)
    return _SUCCESS % (
        request_id.encode(),
        len(body),
        b"" if call.keep_alive else b"connection: close\r\n",
        call.head.reply_end,
        body,
    )


def _reply_bytes(call: DirectCall, reply: Reply, request_id: str) -> bytes:
    headers = [
        *reply.headers,
        (b"x-request-id", request_id.encode()),
        (b"content-length", b"%d" % len(reply.body)),
        *call.head.cors_headers,
    ]
    if not call.keep_alive:
        headers.append((b"connection", b"close"))
    return b"%b%b\r\n%b" % (STATUS_LINE[reply.status], _lines(headers), reply.body)


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
