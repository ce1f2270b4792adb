"""One HTTP call as handlers see it."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope

from headrace.http.responses import Header, Reply


class Disconnected(Exception):
    """The caller went away; there is nobody left to answer."""


class Call:
    """One request. Of a header that was sent several times, `headers` has the last.

    `reply_headers` go with the reply, whatever it will be. `held_bytes` counts its body, for
    `InflightBytes`.
    """

    __slots__ = ("headers", "held_bytes", "receive", "reply_headers", "request_id", "scope")

    def __init__(self, scope: Scope, receive: Receive, request_id: str) -> None:
        self.scope = scope
        self.receive = receive
        self.request_id = request_id
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self.reply_headers: list[Header] = []
        self.held_bytes = 0

    def header_values(self, name: bytes) -> list[bytes]:
        """Return every value of a header, in the order they were sent."""
        return [value for key, value in self.scope["headers"] if key == name]


Handler = Callable[[Call], Awaitable[Reply]]
"""Answers one call, or raises an error of the table in `replies`."""
