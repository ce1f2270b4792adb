"""Handles a request in the same steps at every endpoint: id, handler, error, response, log."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from starlette.types import Receive, Scope, Send

from headrace.base.errors import MethodNotAllowed, Unavailable
from headrace.http.access_log import CLIENT_CLOSED_REQUEST, AccessLog
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.reading.cors import Cors
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.request import ClientDisconnected, Handler, Request, cancel_on_disconnect
from headrace.http.responses import (
    Envelope,
    Header,
    Response,
    StreamedResponse,
    complete_headers,
    error_response,
)

RequestIds = Callable[[], str]
"""Makes request ids: short, random, URL-safe."""


_SENT_AT_ONCE = 262_144
"""Bytes of a streamed body that are passed to the server together: it waits for slow readers after
each, and keeps a copy of what it could not send yet."""


class EndpointApp:
    """The ASGI application of one row of the endpoint table."""

    def __init__(
        self,
        spec: EndpointSpec,
        handler: Handler,
        *,
        cors: Cors | None,
        access_log: AccessLog,
        request_ids: RequestIds,
        inflight: InflightLimiter,
    ) -> None:
        self._spec = spec
        self._methods = frozenset(spec.methods)
        self._handler = handler
        self._cors = cors
        self._access_log = access_log
        self._new_request_id = request_ids
        self._inflight = inflight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send exactly one response, or none to a client that has disconnected.

        A streamed response ends without its last chunk when its body fails.
        """
        access_log = self._access_log
        started_s = access_log.monotonic_s()
        request = Request(scope, receive, self._new_request_id())
        try:
            response = await self._handle(request)
        except ClientDisconnected:
            access_log.record(
                self._spec, scope["method"], CLIENT_CLOSED_REQUEST, started_s, request.request_id
            )
            return
        # Only the shutdown timeout of the server cancels a request, which still gets a response.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the outermost caller of handlers
            response = self._error_response(self._map_cancellation(error), request)
        finally:
            self._inflight.release(request)
        await send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": self._headers(request, response),
            }
        )
        if isinstance(response, StreamedResponse):
            await self._send_streamed(response, request, send)
        else:
            await send({"type": "http.response.body", "body": response.body})
        access_log.record(
            self._spec, scope["method"], response.status, started_s, request.request_id
        )

    async def _send_streamed(
        self, response: StreamedResponse, request: Request, send: Send
    ) -> None:
        """Send a body while it is made. The server cuts off what is not marked as complete."""
        try:
            await cancel_on_disconnect(_send_body(response, send), request.receive)
        except ClientDisconnected:
            return
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - as in `__call__`
            self._access_log.record_failure(
                self._spec, self._map_cancellation(error), request.request_id
            )

    def _error_response(self, error: BaseException, request: Request) -> Response:
        """Keep the error out of the locals of `__call__`: its traceback would keep the body."""
        self._access_log.record_failure(self._spec, error, request.request_id)
        return error_response(error, self._spec.envelope, request.request_id)

    def _map_cancellation(self, error: BaseException) -> BaseException:
        """Map shutdown cancellation to 503 for queries.

        For ingestion it stays a 500, since it is unknown whether the items are durable.
        """
        if isinstance(error, asyncio.CancelledError) and self._spec.envelope is Envelope.QUERY:
            return Unavailable("the service is stopping")
        return error

    async def _handle(self, request: Request) -> Response | StreamedResponse:
        method = request.scope["method"]
        if method not in self._methods and self._methods:
            raise MethodNotAllowed(self._spec.path_methods)
        if method == "OPTIONS" and self._cors is not None:
            return self._cors.preflight_response(request.headers.get(b"origin"))
        return await self._handler(request)

    def _headers(self, request: Request, response: Response | StreamedResponse) -> Sequence[Header]:
        cors: Sequence[Header] = ()
        if self._cors is not None:
            cors = self._cors.response_headers(request.headers.get(b"origin"))
        return complete_headers(
            response, request.request_id, extra=request.response_headers, cors=cors
        )


async def _send_body(response: StreamedResponse, send: Send) -> None:
    async with contextlib.aclosing(response.body) as pieces:
        async for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _SENT_AT_ONCE):
                body = bytes(view[start : start + _SENT_AT_ONCE])
                await send({"type": "http.response.body", "body": body, "more_body": True})
                await asyncio.sleep(0)  # to a client that has left, `send` returns without waiting
    await send({"type": "http.response.body", "body": b""})
