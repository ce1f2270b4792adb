"""The query endpoints."""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_api_key, read_parameter
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.reading.session_cookie import SessionCookies
from headrace.http.request import Request, cancel_on_disconnect
from headrace.http.responses import Header, Response
from headrace.http.routes.formats.query_results import Writer
from headrace.model.tenancy import WebsiteId
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.authorize import OnRateLimit, QueryAuthorizer, QueryCredentials

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class QueryRunner(Protocol[ResultT_co]):
    """The use case behind a query endpoint."""

    async def run(self, website_id: WebsiteId, body: bytes) -> ResultT_co:
        """Validate and run a query. Cancelling the call cancels the query in the store."""
        ...


class QueryInput(Protocol):
    """Where the query of a request is."""

    async def receive(self, request: Request) -> bytes:
        """Receive the bytes of the body; called before authorization."""
        ...

    async def decode(self, request: Request, wire: bytes) -> bytes:
        """Return what the use case decodes.

        Called after authorization: a caller without rights costs no decompression.
        """
        ...


class BodyInput:
    """The query is the body, as of POST /v1/query/custom."""

    def __init__(self, reader: BodyReader) -> None:
        self._reader = reader

    async def receive(self, request: Request) -> bytes:
        """Return the body as it was sent."""
        return await self._reader.receive(request)

    async def decode(self, request: Request, wire: bytes) -> bytes:
        """Return the decompressed body, if its JSON is not too large."""
        return await self._reader.decode_json_text(request, wire)


class ParameterInput:
    """The query is in the parameters, as of GET /v1/query/values."""

    def __init__(self, reader: BodyReader) -> None:
        self._reader = reader

    async def receive(self, request: Request) -> bytes:
        """Receive a body, which has no meaning."""
        return await self._reader.receive(request)

    async def decode(self, request: Request, wire: bytes) -> bytes:  # noqa: ARG002 - see above
        """Return the query string."""
        query_string: bytes = request.scope["query_string"]
        return query_string


class QueryRoute(Generic[ResultT]):
    """An endpoint that runs a query."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        query_input: QueryInput,
        query_runner: QueryRunner[ResultT],
        formats: Mapping[str, Writer[ResultT]],
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._input = query_input
        self._query_runner = query_runner
        self._formats = formats

    async def __call__(self, request: Request) -> Response:
        """Run the query and encode its result in the format that the client prefers."""
        wire = await self._input.receive(request)
        website_id = await authorize_query(request, self._authorizer, self._addresses)
        query = await self._input.decode(request, wire)
        write = choose_writer(request, self._formats)
        result = await cancel_on_disconnect(
            self._query_runner.run(website_id, query), request.receive
        )
        return write(result, request.request_id)


async def authorize_query(
    request: Request, authorizer: QueryAuthorizer, addresses: ClientAddresses
) -> WebsiteId:
    """Return the website that a request may read; its responses tell the state of the rate."""
    return await authorizer.authorize(
        read_query_credentials(request, addresses),
        rate_limit_reporter(request),
    )


def choose_writer(request: Request, formats: Mapping[str, Writer[ResultT]]) -> Writer[ResultT]:
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


def rate_limit_reporter(request: Request) -> OnRateLimit:
    """Return what adds the state of the caller's rate limit to the headers of the response."""

    def report(rate_limit: RateLimitResult) -> None:
        request.response_headers.extend(_rate_limit_headers(rate_limit))

    return report


def _rate_limit_headers(rate_limit: RateLimitResult) -> tuple[Header, ...]:
    return (
        (b"x-ratelimit-limit", b"%d" % rate_limit.limit),
        (b"x-ratelimit-remaining", b"%d" % rate_limit.remaining),
        (b"x-ratelimit-reset", b"%d" % rate_limit.reset_s),
    )
