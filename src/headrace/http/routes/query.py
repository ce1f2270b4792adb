"""The query endpoint and the description of what can be asked."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.types import Receive

from headrace.base.clock import Clock
from headrace.base.errors import RateLimited
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_api_key, read_parameter
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.request import Call, Disconnected, Handler
from headrace.http.responses import Header, Reply
from headrace.http.routes.result_formats import FORMATS
from headrace.model.tenancy import WebsiteId
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import Limiter, RateVerdict
from headrace.query.authorize import (
    QueryCredentials,
    check_scope,
    find_readable_website,
    identify_caller,
    is_known,
)
from headrace.query.result_values import QueryAnswer
from headrace.query.schema import query_schema

Result = TypeVar("Result")


class AnswersQueries(Protocol):
    """The use case behind the query endpoint."""

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryAnswer:
        """Check a query and answer it; cancelling it ends it in the store."""
        ...


class QueryGate:
    """Decides whether a call may ask, and about which website."""

    def __init__(
        self,
        *,
        tenancy: TenancySource,
        limiter: Limiter,
        addresses: ClientAddresses,
        clock: Clock,
    ) -> None:
        self._tenancy = tenancy
        self._limiter = limiter
        self._addresses = addresses
        self._clock = clock

    async def admit(self, call: Call) -> WebsiteId:
        """Go through credentials, scope, rate limit and website, in this order.

        A call of a known caller counts for the rate limit and is told so, whatever it is refused
        for; a missing scope is told before an exhausted limit.
        """
        credentials = self._read_credentials(call)
        tenancy = self._tenancy.current()
        if not is_known(tenancy, credentials):
            tenancy = await self._tenancy.refreshed()
        caller = identify_caller(tenancy, credentials, self._clock.now_ms())
        verdict = await self._limiter.hit(caller.rate_name)
        if verdict is not None:
            call.reply_headers.extend(rate_headers(verdict))
        check_scope(caller)
        if verdict is not None and not verdict.allowed:
            raise RateLimited(verdict.reset_s)
        return find_readable_website(tenancy, caller, credentials.website_id)

    def _read_credentials(self, call: Call) -> QueryCredentials:
        return QueryCredentials(
            api_key=read_api_key(call.headers),
            website_id=read_parameter(call.scope["query_string"], b"website_id"),
            address=self._addresses.find(call),
        )


class QueryRoute:
    """POST /v1/query/custom."""

    def __init__(self, *, gate: QueryGate, bodies: BodyReader, queries: AnswersQueries) -> None:
        self._gate = gate
        self._bodies = bodies
        self._queries = queries

    async def __call__(self, call: Call) -> Reply:
        """Answer a query in the format that the caller wants most."""
        wire = await self._bodies.receive(call)
        website_id = await self._gate.admit(call)
        body = await self._bodies.decode(call, wire)
        accept = b",".join(call.header_values(b"accept")).decode("latin-1")
        write = FORMATS[choose_media_type(accept, tuple(FORMATS))]
        answer = await while_connected(self._queries.run(website_id, body), call.receive)
        return write(answer, call.request_id)


def schema_handler() -> Handler:
    """Return the handler of GET /v1/query/schema; the answer never changes while we run."""
    body = msgspec.json.encode(query_schema())

    async def answer(_call: Call) -> Reply:
        return Reply(200, body)

    return answer


def rate_headers(verdict: RateVerdict) -> tuple[Header, ...]:
    """Return what a caller is told of its rate limit."""
    return (
        (b"x-ratelimit-limit", b"%d" % verdict.limit),
        (b"x-ratelimit-remaining", b"%d" % verdict.remaining),
        (b"x-ratelimit-reset", b"%d" % verdict.reset_s),
    )


async def while_connected(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """Do some work for as long as the caller is there, whose body was received whole.

    Raises `Disconnected` after the work was cancelled and has ended.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Disconnected
        return working.result()
    finally:
        leaving.cancel()  # an answer does not wait for its end
        working.cancel()
        if not working.done():
            await asyncio.gather(working, leaving, return_exceptions=True)
