"""Handles a request in the same steps at every endpoint: id, handler, error, response, log."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.types import Receive, Scope, Send

from headrace.base.errors import MethodNotAllowed, Unavailable
from headrace.http.access_log import CLIENT_CLOSED_REQUEST, AccessLog
from headrace.http.endpoints import EndpointSpec
from headrace.http.reading.cors import Cors
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.request import ClientDisconnected, Handler, Request
from headrace.http.responses import (
    Envelope,
    Header,
    Response,
    complete_headers,
    error_response,
)

RequestIds = Callable[[], str]
"""Makes request ids: short, random, URL-safe."""


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
        """Send exactly one response, or none to a client that has disconnected."""
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
        await send({"type": "http.response.body", "body": response.body})
        access_log.record(
            self._spec, scope["method"], response.status, started_s, request.request_id
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

    async def _handle(self, request: Request) -> Response:
        method = request.scope["method"]
        if method not in self._methods and self._methods:
            raise MethodNotAllowed(self._spec.methods)
        if method == "OPTIONS" and self._cors is not None:
            return self._cors.preflight_response(request.headers.get(b"origin"))
        return await self._handler(request)

    def _headers(self, request: Request, response: Response) -> Sequence[Header]:
        cors: Sequence[Header] = ()
        if self._cors is not None and (origin := request.headers.get(b"origin")) is not None:
            cors = self._cors.response_headers(origin)
        return complete_headers(
            response, request.request_id, extra=request.response_headers, cors=cors
        )
