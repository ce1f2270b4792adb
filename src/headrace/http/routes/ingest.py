"""The five ingestion endpoints: they read a body, call the use case and encode its result."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct

from headrace.http.endpoints import INGESTION_ENDPOINTS, EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_credentials
from headrace.http.request import Handler, Request
from headrace.http.responses import Response
from headrace.ingest.receive.decode import IngestPath
from headrace.ingest.receive.service import AcceptResult, IngestRequest


class EventAcceptor(Protocol):
    """The use case behind the ingestion endpoints."""

    async def accept(self, request: IngestRequest) -> AcceptResult:
        """Return when the items of a request are durable; raise if none of them is."""
        ...


class CountResponse(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /track, /vitals and /errors; `count` is the number of items received."""

    type: str
    count: int


class BatchItemResult(Struct, frozen=True, rename="camel", tag_field="status", tag="success"):
    """The result of one item of /batch."""

    type: str
    event_id: str | None


class BatchResponse(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /batch; `results` are in the order of the items."""

    batch: bool
    processed: int
    results: tuple[BatchItemResult, ...]


class PageResponse(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of /."""

    type: str


def _count_body(kind: str) -> Callable[[AcceptResult], bytes]:
    return lambda accepted: msgspec.json.encode(CountResponse(kind, accepted.count))


def _batch_body(accepted: AcceptResult) -> bytes:
    results = tuple(BatchItemResult("track", event_id) for event_id in accepted.event_ids)
    return msgspec.json.encode(BatchResponse(batch=True, processed=accepted.count, results=results))


def _page_body(_accepted: AcceptResult) -> bytes:
    return msgspec.json.encode(PageResponse("track"))


SUCCESS_BODIES: Mapping[IngestPath, Callable[[AcceptResult], bytes]] = {
    IngestPath.TRACK: _count_body("custom_event"),
    IngestPath.VITALS: _count_body("web_vitals"),
    IngestPath.ERRORS: _count_body("error"),
    IngestPath.BATCH: _batch_body,
    IngestPath.PAGE: _page_body,
}


def ingestion_handlers(
    acceptor: EventAcceptor, body_reader: BodyReader, addresses: ClientAddresses
) -> Mapping[EndpointSpec, Handler]:
    """Return the handler of each ingestion endpoint."""

    def make_handler(endpoint: IngestPath) -> Handler:
        success_body = SUCCESS_BODIES[endpoint]

        async def handle(request: Request) -> Response:
            body = await body_reader.read(request)
            ingest_request = build_ingest_request(endpoint, request, body, addresses.find(request))
            return Response(200, success_body(await acceptor.accept(ingest_request)))

        return handle

    return {spec: make_handler(IngestPath(spec.path)) for spec in INGESTION_ENDPOINTS}


def build_ingest_request(
    endpoint: IngestPath, request: Request, body: bytes, address: str
) -> IngestRequest:
    """Return the input of the use case for a request."""
    headers = request.headers
    idempotency_key = headers.get(b"idempotency-key")
    return IngestRequest(
        endpoint=endpoint,
        body=body,
        credentials=read_credentials(request.scope["query_string"], headers),
        address=address,
        user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
        idempotency_key=idempotency_key.decode("latin-1") if idempotency_key else None,
    )
