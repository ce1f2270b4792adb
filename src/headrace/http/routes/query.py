"""The query endpoint, and the schema that queries refer to."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.types import Receive

from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_api_key, read_parameter
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.request import ClientDisconnected, Handler, Request
from headrace.http.responses import Header, Response
from headrace.http.routes.result_formats import FORMATS, Writer
from headrace.model.tenancy import WebsiteId
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.authorize import QueryAuthorizer, QueryCredentials
from headrace.query.result_values import QueryResult
from headrace.query.schema import query_schema

Result = TypeVar("Result")


class QueryRunner(Protocol):
    """The use case behind the query endpoint."""

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Validate and run a query. Cancelling the call cancels the query in the store."""
        ...


class QueryRoute:
    """POST /v1/query/custom."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        query_runner: QueryRunner,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._query_runner = query_runner

    async def __call__(self, request: Request) -> Response:
        """Run a query and encode its result in the format that the client prefers.

        The body is decoded after authorization: a caller without rights costs no decompression.
        """
        wire = await self._body_reader.receive(request)
        website_id = await self._authorize(request)
        body = await self._body_reader.decode(request, wire)
        write = _choose_writer(request)
        result = await cancel_on_disconnect(
            self._query_runner.run(website_id, body), request.receive
        )
        return write(result, request.request_id)

    async def _authorize(self, request: Request) -> WebsiteId:
        credentials = QueryCredentials(
            api_key=read_api_key(request.headers),
            website_id=read_parameter(request.scope["query_string"], b"website_id"),
            address=self._addresses.find(request),
        )
        return await self._authorizer.authorize(
            credentials,
            lambda rate_limit: request.response_headers.extend(rate_limit_headers(rate_limit)),
        )


def _choose_writer(request: Request) -> Writer:
    accept = b",".join(request.header_values(b"accept")).decode("latin-1")
    return FORMATS[choose_media_type(accept, tuple(FORMATS))]


def schema_handler() -> Handler:
    """Return the handler of GET /v1/query/schema, whose body is constant."""
    body = msgspec.json.encode(query_schema())

    async def handle(_request: Request) -> Response:
        return Response(200, body)

    return handle


def rate_limit_headers(rate_limit: RateLimitResult) -> tuple[Header, ...]:
    """Return the headers that report a caller's rate limit."""
    return (
        (b"x-ratelimit-limit", b"%d" % rate_limit.limit),
        (b"x-ratelimit-remaining", b"%d" % rate_limit.remaining),
        (b"x-ratelimit-reset", b"%d" % rate_limit.reset_s),
    )


async def cancel_on_disconnect(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """Return the result of `work`, which a client disconnect cancels.

    The body of the request must have been received, so that the next message of `receive` is the
    disconnect. Raises `ClientDisconnected` after the cancelled work has ended.
    """
    working = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((working, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        disconnect.cancel()  # the result does not wait for its end
        working.cancel()
        if not working.done():
            await asyncio.gather(working, disconnect, return_exceptions=True)
