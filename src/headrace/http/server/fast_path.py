"""The fast path of simple ingestion requests: no task, one callback of the log, one write.

The head decides whether a request is simple, then the use case does with the body. All other
requests, and all in which anything is wrong, take the slow path of ASGI: see `http.endpoint`.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Protocol

from headrace.http.access_log import AccessLog
from headrace.http.endpoint import RequestIds
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.responses import JSON_HEADER, complete_headers, error_response
from headrace.http.routes.ingest import SUCCESS_BODIES
from headrace.http.server.parsing.cached_heads import (
    CachedHead,
    FastPathRoute,
    HeadCache,
    SimpleHeadParser,
)
from headrace.http.server.request_counter import BatchedCounter
from headrace.http.server.response_bytes import encode_head, encode_response
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest
from headrace.ports.event_log import OnDurable

_SUCCESS_START: Final = encode_head(200, (JSON_HEADER,)) + b"x-request-id: "
_CACHED_ENDS: Final = 1_024
_MAX_CACHED_BODY_BYTES: Final = 64
"""Bodies that say how many items were accepted are shorter, and most requests have the same."""

_CLOSE: Final = (b"connection", b"close")


MAX_FAST_PATH_BODY_BYTES: Final = 65_536
"""A body is decoded at once here, while other connections wait: up to 10 ms for this size."""

_CHEAP_BODY_BYTES: Final = 4_096
_EXPENSIVE_S: Final = 0.003
"""Several times what a batch of a hundred events takes of a processor."""


class NowaitEventAcceptor(Protocol):
    """The use case, for requests that it accepts without waiting."""

    def try_accept_nowait(
        self, request: IngestRequest, on_durable: OnDurable
    ) -> AcceptResult | None:
        """See `headrace.ingest.receive.service.IngestService.try_accept_nowait`."""
        ...


class Connection(Protocol):
    """The connection of a fast-path request."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The other end's address and port."""
        ...

    def finish(self, pending: "PendingRequest", response: bytes) -> None:
        """Send the whole response of a request."""
        ...

    def abort(self) -> None:
        """Close without a response."""
        ...


class FastPath:
    """Handles simple requests of all connections of a worker."""

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
        thread_cpu_s: Callable[[], float],
    ) -> None:
        self._accept = acceptor.try_accept_nowait
        self._addresses = addresses
        self._inflight = inflight
        self._access_log = access_log
        self._success_counter = success_counter
        self._new_request_id = request_ids
        cache = HeadCache()
        self.cached_head = cache.get
        self.remember = cache.remember
        self.parse_head = SimpleHeadParser(routes, max_body_bytes).parse
        self._thread_cpu_s = thread_cpu_s
        self._is_turn_spent = False

    def try_handle(
        self, head: CachedHead, body: bytes, connection: Connection
    ) -> "PendingRequest | None":
        """Start a request that its connection will answer, or return None without any effect."""
        if not self._inflight.has_room(len(body)):
            return None
        started_s = self._access_log.monotonic_s()
        if len(body) <= _CHEAP_BODY_BYTES:
            return self._start(head, body, connection, started_s)
        if self._is_turn_spent:
            return None
        started_cpu_s = self._thread_cpu_s()  # other processes do not make a body expensive
        pending = self._start(head, body, connection, started_s)
        if self._thread_cpu_s() - started_cpu_s > _EXPENSIVE_S:
            self._spend_turn()
        return pending

    def _start(
        self, head: CachedHead, body: bytes, connection: Connection, started_s: float
    ) -> "PendingRequest | None":
        pending = PendingRequest(self, head, connection, started_s)
        try:
            pending.accepted = self._accept(
                self._build_ingest_request(head, body, connection), pending.on_durable
            )
        except Exception:  # noqa: BLE001 - the slow path meets the same fault, and reports it
            return None
        if pending.accepted is None:
            return None
        self._inflight.reserve(pending, len(body))
        return pending

    def _spend_turn(self) -> None:
        """Send the other large bodies of this turn of the event loop to the slow path.

        There one is decoded in each turn, so that many expensive ones do not add up in one.
        """
        self._is_turn_spent = True
        asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_turn_spent = False

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
        """Answer a request, exactly once."""
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
        """End a request whose response could not be encoded."""
        self._access_log.record_failure(pending.head.spec, error, self._new_request_id())
        pending.connection.abort()

    def _failure_bytes(
        self, pending: "PendingRequest", error: BaseException, request_id: str
    ) -> bytes:
        spec = pending.head.spec
        self._access_log.record_failure(spec, error, request_id)
        response = error_response(error, spec.envelope, request_id)
        self._access_log.record(spec, "POST", response.status, pending.started_s, request_id)
        headers = complete_headers(response, request_id, cors=pending.head.cors_headers)
        if not pending.keep_alive:
            headers.append(_CLOSE)
        return encode_response(response.status, headers, response.body)


class _NullEvent:
    def set(self) -> None:
        return


class PendingRequest:
    """A request that waits for the log. uvicorn sees it as the connection's cycle."""

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
    response_started: Final = False
    """Its response is one write."""

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
        """Answer the request with its outcome; later outcomes are ignored."""
        if not self.response_complete:
            self.response_complete = True
            try:
                self._fast_path.complete(self, failure)
            except Exception as error:  # noqa: BLE001 - the outermost caller is the log
                self._fast_path.fail(self, error)


def _success_bytes(pending: PendingRequest, accepted: AcceptResult, request_id: str) -> bytes:
    head = pending.head
    body = SUCCESS_BODIES[head.endpoint](accepted)
    tail = head.response_tail
    if not pending.keep_alive:
        tail = b"connection: close\r\n" + tail
    make_end = _cached_end if len(body) <= _MAX_CACHED_BODY_BYTES else _success_end
    return _SUCCESS_START + request_id.encode() + make_end(tail, body)


def _success_end(tail: bytes, body: bytes) -> bytes:
    """Return what follows the request id; `tail` is `CachedHead.response_tail`."""
    return b"\r\ncontent-length: %d\r\n%b%b" % (len(body), tail, body)


_cached_end = lru_cache(_CACHED_ENDS)(_success_end)
