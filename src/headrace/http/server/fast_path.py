"""The short way of a plain ingestion call: no task, nothing to wait for but the log, one write.

Whether a call is plain is told by its head, and by the use case once there is its body. All other
calls, and all that anything is wrong with, go the way of every call: see `answering`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from httptools import HttpParserInvalidURLError, parse_url
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headrace.http.access_log import AccessLog
from headrace.http.endpoint import RequestIds
from headrace.http.endpoints import EndpointSpec
from headrace.http.reading.body import is_json_type
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.cors import Cors
from headrace.http.reading.credentials import read_credentials
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.responses import Header, Response, error_response
from headrace.http.routes.ingest import SUCCESS_BODIES
from headrace.http.server.request_counter import BatchedCounter
from headrace.ingest.receive.decode import IngestPath
from headrace.ingest.receive.service import AcceptResult, IngestRequest
from headrace.model.tenancy import Credentials
from headrace.ports.event_log import OnDurable

_MAX_CACHED_HEADS: Final = 2_048
_MAX_SEEN_HEADS: Final = 16_384
_MAX_CACHED_HEAD_BYTES: Final = 2_048
_DISQUALIFYING_HEADERS: Final = frozenset(
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


class NowaitEventAcceptor(Protocol):
    """The use case, for calls that it takes without waiting."""

    def try_accept_nowait(
        self, request: IngestRequest, on_durable: OnDurable
    ) -> AcceptResult | None:
        """See `headrace.ingest.receive.service.IngestService.try_accept_nowait`."""
        ...


class FastPathRoute(Struct, frozen=True):
    """Where plain calls may go: an ingestion endpoint."""

    spec: EndpointSpec
    endpoint: IngestPath
    cors: Cors | None


class CachedHead(Struct, frozen=True, gc=False):
    """What the head of a plain call says, worked out once."""

    spec: EndpointSpec
    endpoint: IngestPath
    body_size: int
    headers: Sequence[Header]
    credentials: Credentials
    user_agent: str
    response_tail: bytes
    cors_headers: Sequence[Header]


class Connection(Protocol):
    """What a call needs of its connection."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The other end's address and port."""
        ...

    def finish(self, pending: "PendingRequest", response: bytes) -> None:
        """Send the reply of a call, whole."""
        ...

    def abort(self) -> None:
        """Close without another word."""
        ...


class FastPath:
    """Takes plain calls and answers them; one for all connections of a worker.

    Clients send one head again and again, so it is known by its bytes: those of a head that was
    once parsed, from the beginning of a message, mean the same again.
    """

    def __init__(
        self,
        routes: Mapping[bytes, FastPathRoute],
        *,
        acceptor: NowaitEventAcceptor,
        addresses: ClientAddresses,
        inflight: InflightLimiter,
        access_log: AccessLog,
        success_counter: BatchedCounter,
        request_ids: RequestIds,
        max_body_bytes: int,
    ) -> None:
        self._routes = routes
        self._accept = acceptor.try_accept_nowait
        self._addresses = addresses
        self._inflight = inflight
        self._access_log = access_log
        self._success_counter = success_counter
        self._new_request_id = request_ids
        self._max_body_bytes = max_body_bytes
        self._seen_head_hashes: set[int] = set()
        self._cached_heads: dict[bytes, CachedHead] = {}
        self.cached_head = self._cached_heads.get
        """Returns what the bytes of a head mean, line ends included, or None."""

    def remember(self, raw: bytes, head: CachedHead) -> None:
        """Remember what the bytes of a head mean, where they came before.

        Where each call has a head of its own, as with an id of its trace, none is kept.
        """
        if len(raw) > _MAX_CACHED_HEAD_BYTES:
            return
        head_hash = hash(raw)
        if head_hash not in self._seen_head_hashes:
            if len(self._seen_head_hashes) >= _MAX_SEEN_HEADS:
                self._seen_head_hashes.clear()
            self._seen_head_hashes.add(head_hash)
            return
        if len(self._cached_heads) >= _MAX_CACHED_HEADS:
            self._cached_heads.clear()
        self._cached_heads[raw] = head

    def parse_head(self, url: bytes, headers: Sequence[Header]) -> CachedHead | None:
        """Read the head of a POST that keeps its connection; None where it is not plain."""
        last = dict(headers)
        size = last.get(b"content-length", b"")
        if (
            not _DISQUALIFYING_HEADERS.isdisjoint(last)
            or not 0 < int(size or 0) <= self._max_body_bytes
        ):
            return None
        content_type, origin = last.get(b"content-type"), last.get(b"origin")
        if content_type is not None and not is_json_type(content_type):
            return None
        try:
            parts = parse_url(url)
        except HttpParserInvalidURLError:
            return None
        route = self._routes.get(parts.path)
        if route is None or not (origin or b"").isascii():
            return None
        cors = route.cors.response_headers(origin) if route.cors and origin is not None else ()
        return CachedHead(
            spec=route.spec,
            endpoint=route.endpoint,
            body_size=int(size),
            headers=tuple(headers),
            credentials=read_credentials(parts.query or b"", last),
            user_agent=last.get(b"user-agent", b"").decode("latin-1"),
            response_tail=_header_lines(cors) + b"\r\n" if cors else b"\r\n",
            cors_headers=cors,
        )

    def try_handle(
        self, head: CachedHead, body: bytes, connection: Connection
    ) -> "PendingRequest | None":
        """Take a call, which will be answered on its line, or return None and do nothing."""
        if not self._inflight.has_room(len(body)):
            return None
        pending = PendingRequest(self, head, connection, self._access_log.monotonic_s())
        try:
            pending.accepted = self._accept(
                self._build_ingest_request(head, body, connection), pending.on_durable
            )
        except Exception:  # noqa: BLE001 - a fault of ours is met again on the long way, and told
            return None
        if pending.accepted is None:
            return None
        self._inflight.reserve(pending, len(body))
        return pending

    def _build_ingest_request(
        self, head: CachedHead, body: bytes, connection: Connection
    ) -> IngestRequest:
        has_key = head.credentials.api_key is not None
        return IngestRequest(
            endpoint=head.endpoint,
            body=body,
            credentials=head.credentials,
            address="" if has_key else self._addresses.find_from(connection.client, head.headers),
            user_agent=head.user_agent,
        )

    def complete(self, pending: "PendingRequest", failure: BaseException | None) -> None:
        """Answer a call, exactly once."""
        self._inflight.release(pending)
        request_id = self._new_request_id()
        if failure is None and pending.accepted is not None:
            self._success_counter.add(pending.head.spec)
            response = _success_bytes(pending, pending.accepted, request_id)
        else:
            response = self._failure_bytes(
                pending, failure or RuntimeError("nothing was accepted"), request_id
            )
        pending.connection.finish(pending, response)

    def fail(self, pending: "PendingRequest", error: Exception) -> None:
        """End a call whose reply could not be made."""
        self._access_log.record_failure(pending.head.spec, error, self._new_request_id())
        pending.connection.abort()

    def _failure_bytes(
        self, pending: "PendingRequest", error: BaseException, request_id: str
    ) -> bytes:
        spec = pending.head.spec
        self._access_log.record_failure(spec, error, request_id)
        response = error_response(error, spec.envelope, request_id)
        self._access_log.record(spec, "POST", response.status, pending.started_s, request_id)
        return _response_bytes(pending, response, request_id)


class _NullEvent:
    def set(self) -> None:
        return


class PendingRequest:
    """A call that waits for the log. To uvicorn it is the connection's request and response."""

    __slots__ = (
        "_fast_path",
        "accepted",
        "connection",
        "disconnected",
        "head",
        "keep_alive",
        "reserved_bytes",
        "response_complete",
        "started_s",
    )

    message_event: Final = _NullEvent()

    def __init__(
        self, fast_path: FastPath, head: CachedHead, connection: Connection, started_s: float
    ) -> None:
        self._fast_path = fast_path
        self.head = head
        self.connection = connection
        self.started_s = started_s
        self.accepted: AcceptResult | None = None
        self.reserved_bytes = 0
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False

    def on_durable(self, failure: BaseException | None) -> None:
        """Answer the call with what became of it; later words count for nothing."""
        if not self.response_complete:
            self.response_complete = True
            try:
                self._fast_path.complete(self, failure)
            except Exception as error:  # noqa: BLE001 - the outermost place
                self._fast_path.fail(self, error)


def _success_bytes(pending: PendingRequest, accepted: AcceptResult, request_id: str) -> bytes:
    body = SUCCESS_BODIES[pending.head.endpoint](accepted)
    return _SUCCESS % (
        request_id.encode(),
        len(body),
        b"" if pending.keep_alive else b"connection: close\r\n",
        pending.head.response_tail,
        body,
    )


def _response_bytes(pending: PendingRequest, response: Response, request_id: str) -> bytes:
    headers = [
        *response.headers,
        (b"x-request-id", request_id.encode()),
        (b"content-length", b"%d" % len(response.body)),
        *pending.head.cors_headers,
    ]
    if not pending.keep_alive:
        headers.append((b"connection", b"close"))
    return b"%b%b\r\n%b" % (STATUS_LINE[response.status], _header_lines(headers), response.body)


def _header_lines(headers: Sequence[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
