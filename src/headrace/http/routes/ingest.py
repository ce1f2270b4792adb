"""The five ingestion endpoints: body in, the use case, what was accepted out."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct

from headrace.http.endpoints import INGESTION_ENDPOINTS, EndpointRow
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_credentials
from headrace.http.request import Call, Handler
from headrace.http.responses import Reply
from headrace.ingest.receive.decode import Endpoint
from headrace.ingest.receive.service import Accepted, IngestRequest


class AcceptsEvents(Protocol):
    """The use case behind the ingestion endpoints."""

    async def accept(self, request: IngestRequest) -> Accepted:
        """Accept a request: returns when its items are durable, raises when none of them is."""
        ...


class CountReply(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /track, /vitals and /errors; `count` is the number of items received."""

    type: str
    count: int


class BatchResult(Struct, frozen=True, rename="camel", tag_field="status", tag="success"):
    """What became of one item of /batch."""

    type: str
    event_id: str | None


class BatchReply(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /batch; `results` are in the order of the items."""

    batch: bool
    processed: int
    results: tuple[BatchResult, ...]


class PageReply(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /."""

    type: str


def _count_body(kind: str) -> Callable[[Accepted], bytes]:
    return lambda accepted: msgspec.json.encode(CountReply(kind, accepted.count))


def _batch_body(accepted: Accepted) -> bytes:
    results = tuple(BatchResult("track", event_id) for event_id in accepted.event_ids)
    return msgspec.json.encode(BatchReply(batch=True, processed=accepted.count, results=results))


def _page_body(_accepted: Accepted) -> bytes:
    return msgspec.json.encode(PageReply("track"))


SUCCESS_BODIES: Mapping[Endpoint, Callable[[Accepted], bytes]] = {
    Endpoint.TRACK: _count_body("custom_event"),
    Endpoint.VITALS: _count_body("web_vitals"),
    Endpoint.ERRORS: _count_body("error"),
    Endpoint.BATCH: _batch_body,
    Endpoint.PAGE: _page_body,
}


def ingestion_handlers(
    acceptor: AcceptsEvents, bodies: BodyReader, addresses: ClientAddresses
) -> Mapping[EndpointRow, Handler]:
    """Return the handler of each ingestion endpoint."""

    def handler_of(endpoint: Endpoint) -> Handler:
        success_body = SUCCESS_BODIES[endpoint]

        async def take(call: Call) -> Reply:
            body = await bodies.read(call)
            request = read_request(endpoint, call, body, addresses.find(call))
            return Reply(200, success_body(await acceptor.accept(request)))

        return take

    return {row: handler_of(Endpoint(row.path)) for row in INGESTION_ENDPOINTS}


def read_request(endpoint: Endpoint, call: Call, body: bytes, address: str) -> IngestRequest:
    """Gather what the use case wants to know of a call."""
    headers = call.headers
    idempotency_key = headers.get(b"idempotency-key")
    return IngestRequest(
        endpoint=endpoint,
        body=body,
        credentials=read_credentials(call.scope["query_string"], headers),
        address=address,
        user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
        idempotency_key=idempotency_key.decode("latin-1") if idempotency_key else None,
    )
