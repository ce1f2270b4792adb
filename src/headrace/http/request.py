"""An HTTP request as its handler sees it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from starlette.types import Receive, Scope

from headrace.http.responses import Header, Response, StreamedResponse

_ResultT = TypeVar("_ResultT")


class ClientDisconnected(Exception):
    """The client closed the connection before the response."""


class Request:
    """A request. Of a header that was sent several times, `headers` has the last value.

    `response_headers` are sent with any response, errors included. `reserved_bytes` is the count of
    `InflightLimiter`.
    """

    __slots__ = ("headers", "receive", "request_id", "reserved_bytes", "response_headers", "scope")

    def __init__(self, scope: Scope, receive: Receive, request_id: str) -> None:
        self.scope = scope
        self.receive = receive
        self.request_id = request_id
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self.response_headers: list[Header] = []
        self.reserved_bytes = 0

    def header_values(self, name: bytes) -> list[bytes]:
        """Return all values of a header, in the order of the request."""
        return [value for key, value in self.scope["headers"] if key == name]


Handler = Callable[[Request], Awaitable[Response | StreamedResponse]]
"""Answers a request, or raises an error of the table in `responses`."""


async def cancel_on_disconnect(work: Awaitable[_ResultT], receive: Receive) -> _ResultT:
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
