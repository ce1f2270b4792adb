"""Middleware for ASGI: Starlette, FastAPI, Django and others."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

from headrace_client.asynchronous import AsyncHeadrace
from headrace_client.context import with_fields
from headrace_client.errors import HeadraceClientError
from headrace_client.web.request import (
    SERVER_ERROR,
    Event,
    Request,
    RequestOptions,
    RequestReporter,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_logger = logging.getLogger("headrace_client")


class HeadraceASGI:
    """Reports requests of an application, and gives their visitor to all items within them.

    An outbox that cannot be written is logged; the request goes on.
    """

    def __init__(
        self, app: App, client: AsyncHeadrace, options: RequestOptions | None = None
    ) -> None:
        self._app = app
        self._client = client
        self._reporter = RequestReporter(options or RequestOptions())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of a server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _request(scope)
        if not self._reporter.is_reported(request):
            await self._app(scope, receive, send)
            return

        events: list[Event] = []
        has_begun = False

        async def send_and_report(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                events.extend(self._events(request, message))
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                await self._report(events)  # now, so that nobody waits for it

        with with_fields(**self._reporter.fields(request)):
            try:
                await self._app(scope, receive, send_and_report)
            except Exception as error:
                if not has_begun:
                    events.extend(self._reporter.events(request, SERVER_ERROR, ""))
                await self._report(events)
                await self._report_error(error)
                raise
            finally:
                await self._report(events)  # of a response without an end

    def _events(self, request: Request, start: Message) -> list[Event]:
        headers = {name.lower(): value for name, value in start.get("headers", ())}
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        return self._reporter.events(request, start["status"], content_type)

    async def _report(self, events: list[Event]) -> None:
        try:
            while events:
                name, properties = events.pop(0)
                await self._client.track(name, properties)
        except HeadraceClientError as failure:
            _logger.error("a request is not reported: %s", failure)  # noqa: TRY400

    async def _report_error(self, error: Exception) -> None:
        if not self._reporter.options.errors:
            return
        try:
            await self._client.errors(error)
        except HeadraceClientError as failure:
            _logger.error("an exception is not reported: %s", failure)  # noqa: TRY400


def _request(scope: Scope) -> Request:
    raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
    client = scope.get("client")
    return Request(
        method=scope["method"],
        path=raw_path.partition(b"?")[0].decode("latin-1"),
        headers=_headers(scope["headers"]),
        address=client[0] if client else "",
    )


def _headers(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the fields by name; the values of one that comes twice are joined."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        separator = "; " if name == "cookie" else ", "
        joined[name] = f"{joined[name]}{separator}{value}" if name in joined else value
    return joined
