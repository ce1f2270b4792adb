"""The query endpoints, and the schema that queries refer to."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from headrace.base.json_size import JsonLimits, check_json_size
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_api_key, read_parameter
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.reading.session_cookie import SessionCookies
from headrace.http.request import Handler, Request, cancel_on_disconnect
from headrace.http.responses import Header, Response
from headrace.http.routes.result_formats import Writer
from headrace.model.tenancy import WebsiteId
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.authorize import QueryAuthorizer, QueryCredentials
from headrace.query.result_values import QueryResult
from headrace.query.schema import query_schema


class QueryRunner(Protocol):
    """The use case behind a query endpoint."""

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Validate and run a query. Cancelling the call cancels the query in the store."""
        ...


class QueryRoute:
    """An endpoint that runs the query of a body, such as POST /v1/query/custom."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        query_runner: QueryRunner,
        json_limits: JsonLimits,
        formats: Mapping[str, Writer],
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._query_runner = query_runner
        self._json_limits = json_limits
        self._formats = formats

    async def __call__(self, request: Request) -> Response:
        """Run a query and encode its result in the format that the client prefers.

        The body is decoded after authorization: a caller without rights costs no decompression.
        """
        wire = await self._body_reader.receive(request)
        website_id = await authorize_query(request, self._authorizer, self._addresses)
        body = await self._body_reader.decode(request, wire)
        check_json_size(body, self._json_limits)
        write = choose_writer(request, self._formats)
        result = await cancel_on_disconnect(
            self._query_runner.run(website_id, body), request.receive
        )
        return write(result, request.request_id)


class ParameterQueryRoute:
    """An endpoint that runs the query of its parameters, such as GET /v1/query/values."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        query_runner: QueryRunner,
        formats: Mapping[str, Writer],
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._query_runner = query_runner
        self._formats = formats

    async def __call__(self, request: Request) -> Response:
        """Run the query and encode its result in the format that the client prefers."""
        await self._body_reader.receive(request)
        website_id = await authorize_query(request, self._authorizer, self._addresses)
        write = choose_writer(request, self._formats)
        parameters: bytes = request.scope["query_string"]
        result = await cancel_on_disconnect(
            self._query_runner.run(website_id, parameters), request.receive
        )
        return write(result, request.request_id)


async def authorize_query(
    request: Request, authorizer: QueryAuthorizer, addresses: ClientAddresses
) -> WebsiteId:
    """Return the website that a request may read; its responses tell the state of the rate."""
    return await authorizer.authorize(
        read_query_credentials(request, addresses),
        lambda rate_limit: request.response_headers.extend(rate_limit_headers(rate_limit)),
    )


def choose_writer(request: Request, formats: Mapping[str, Writer]) -> Writer:
    """Return the writer of the format that the client prefers."""
    accept = b",".join(request.header_values(b"accept")).decode("latin-1")
    return formats[choose_media_type(accept, tuple(formats))]


def read_query_credentials(request: Request, addresses: ClientAddresses) -> QueryCredentials:
    """Return the credentials of a request below /v1, not verified."""
    return QueryCredentials(
        api_key=read_api_key(request.headers, request.scope["headers"]),
        website_id=read_parameter(request.scope["query_string"], b"website_id"),
        address=addresses.find(request),
        session=SessionCookies(addresses).secret_of(request),
    )


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
