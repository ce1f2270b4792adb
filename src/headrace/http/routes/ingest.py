"""The ingestion endpoints: they read a body, call the use case and encode its result."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Protocol

import msgspec
from msgspec import Struct

from headrace.base.errors import ClientError, InvalidBody
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.endpoints import INGESTION_ENDPOINTS
from headrace.http.reading.body import Body, BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_credentials
from headrace.http.request import Handler, Request
from headrace.http.responses import Response, find_error_response
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest, Reserve
from headrace.ingest.receive.refusals import RefusedCall
from headrace.model.tenancy import Credentials

_CACHED_COUNTS = 128
"""Bodies that only say how many items were accepted."""


class EventAcceptor(Protocol):
    """The use case behind the ingestion endpoints."""

    async def accept(self, request: IngestRequest, reserve: Reserve) -> AcceptResult:
        """Return when the items of a request are durable; raise if none of them is."""
        ...


class ReportsRefusals(Protocol):
    """Shows refused calls to those who watch: `RefusalReporter`."""

    def report(self, credentials: Credentials, call: RefusedCall) -> None:
        """Publish a refused call. Never raises, never waits."""
        ...


class CountResponse(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of endpoints that take arrays; `count` is the number of items received."""

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


class SingleResponse(Struct, frozen=True, tag_field="status", tag="success"):
    """The success of / and /identify."""

    type: str


def _count_body(kind: str) -> Callable[[AcceptResult], bytes]:
    @lru_cache(_CACHED_COUNTS)
    def encode(count: int) -> bytes:
        return msgspec.json.encode(CountResponse(kind, count))

    return lambda accepted: encode(accepted.count)


def _batch_body(accepted: AcceptResult) -> bytes:
    results = tuple(BatchItemResult("track", event_id) for event_id in accepted.event_ids)
    return msgspec.json.encode(BatchResponse(batch=True, processed=accepted.count, results=results))


def _single_body(kind: str) -> Callable[[AcceptResult], bytes]:
    body = msgspec.json.encode(SingleResponse(kind))
    return lambda _accepted: body


SUCCESS_BODIES: Mapping[IngestPath, Callable[[AcceptResult], bytes]] = {
    IngestPath.TRACK: _count_body("custom_event"),
    IngestPath.VITALS: _count_body("web_vitals"),
    IngestPath.ERRORS: _count_body("error"),
    IngestPath.BATCH: _batch_body,
    IngestPath.PAGE: _single_body("track"),
    IngestPath.ENGAGEMENT: _count_body("engagement"),
    IngestPath.IDENTIFY: _single_body("identify"),
}


def ingestion_handlers(
    acceptor: EventAcceptor,
    body_reader: BodyReader,
    addresses: ClientAddresses,
    refusals: ReportsRefusals,
) -> Mapping[EndpointSpec, Handler]:
    """Return the handler of each ingestion endpoint."""

    def make_handler(endpoint: IngestPath) -> Handler:
        success_body = SUCCESS_BODIES[endpoint]

        async def accept(request: Request) -> AcceptResult:
            ingest_request = build_ingest_request(
                endpoint, request, await body_reader.read(request), addresses.find(request)
            )
            return await acceptor.accept(ingest_request, partial(body_reader.reserve, request))

        async def handle(request: Request) -> Response:
            try:
                return Response(200, success_body(await accept(request)))
            except ClientError as error:
                refusals.report(_credentials_of(request), _refused_call(endpoint, error))
                raise

        return handle

    return {spec: make_handler(IngestPath(spec.path)) for spec in INGESTION_ENDPOINTS}


def build_ingest_request(
    endpoint: IngestPath, request: Request, body: Body, address: str
) -> IngestRequest:
    """Return the input of the use case for a request."""
    headers = request.headers
    idempotency_key = headers.get(b"idempotency-key")
    return IngestRequest(
        endpoint=endpoint,
        body=body.data,
        decompress=body.decompress,
        credentials=_credentials_of(request),
        address=address,
        user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
        idempotency_key=idempotency_key.decode("latin-1") if idempotency_key else None,
    )


def _credentials_of(request: Request) -> Credentials:
    return read_credentials(
        request.scope["query_string"], request.headers, request.scope["headers"]
    )


def _refused_call(endpoint: IngestPath, error: ClientError) -> RefusedCall:
    errors = error.field_errors if isinstance(error, InvalidBody) else ()
    return RefusedCall(endpoint.value, find_error_response(error).code or "", errors)
