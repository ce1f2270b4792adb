"""One HTTP call as handlers see it."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope

from headrace.http.responses import Header, Response


class ClientDisconnected(Exception):
    """The caller went away; there is nobody left to answer."""


class Request:
    """One request. Of a header that was sent several times, `headers` has the last.

    `response_headers` go with the reply, whatever it will be. `reserved_bytes` counts its body, for
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
        """Return every value of a header, in the order they were sent."""
        return [value for key, value in self.scope["headers"] if key == name]


Handler = Callable[[Request], Awaitable[Response]]
"""Answers one call, or raises an error of the table in `replies`."""
