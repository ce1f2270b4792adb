"""GET /v1/live: the items of a website as they come, as server-sent events."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Handler, Request, cancel_on_disconnect
from headrace.http.responses import Header, StreamedResponse
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials
from headrace.model.tenancy import WebsiteId
from headrace.query.authorize import QueryAuthorizer

EVENT_STREAM_TYPE = "text/event-stream"

_HEADERS: tuple[Header, ...] = (
    (b"content-type", EVENT_STREAM_TYPE.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # for proxies that would collect the events
)


class LiveStreams(Protocol):
    """The use case behind the endpoint: `LiveService`."""

    def count_stream(self, caller: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Count a stream of a caller within the context. Raises `RateLimited`."""
        ...

    def stream(
        self, website_id: WebsiteId, last_id: str, may_read: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Return the events after an id, or from now on."""
        ...


def live_handler(
    live: LiveStreams,
    *,
    authorizer: QueryAuthorizer,
    addresses: ClientAddresses,
    body_reader: BodyReader,
) -> Handler:
    """Return the handler of GET /v1/live."""

    async def handle(request: Request) -> StreamedResponse:
        await body_reader.receive(request)
        credentials = read_query_credentials(request, addresses)
        reader = await authorizer.authorize_stream(
            credentials,
            rate_limit_reporter(request),
        )
        last_id = request.headers.get(b"last-event-id", b"").decode("latin-1")
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(live.count_stream(reader.rate_limit_key))
            counted = stack.pop_all()
        events = live.stream(
            reader.website_id, last_id, lambda: authorizer.may_still_read(credentials)
        )
        body = _opened(events, counted)
        try:
            # A browser takes the stream for open when it has the head of the response.
            await cancel_on_disconnect(anext(body), request.receive)
        except BaseException:
            await body.aclose()
            raise
        return StreamedResponse(200, body, _HEADERS)

    return handle


async def _opened(
    events: AsyncGenerator[bytes], counted: contextlib.AsyncExitStack
) -> AsyncGenerator[bytes]:
    """Yield nothing once no further item is missed, then the events."""
    async with counted, contextlib.aclosing(events):
        first = await anext(events, b"")
        yield b""
        yield first
        async for event in events:
            yield event
