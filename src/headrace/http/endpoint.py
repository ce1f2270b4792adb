"""The way of every call, the same for all endpoints: id, handler, refusal, reply, record."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.types import Receive, Scope, Send

from headrace.base.errors import MethodNotAllowed, Unavailable
from headrace.http.access_log import CLIENT_CLOSED_REQUEST, CallRecorder
from headrace.http.endpoints import EndpointRow
from headrace.http.reading.cors import Cors
from headrace.http.reading.memory_limit import InflightBytes
from headrace.http.request import Call, Disconnected, Handler
from headrace.http.responses import Envelope, Header, Reply, refuse

RequestIds = Callable[[], str]
"""Makes the ids of calls: short, random, URL-safe."""


class Endpoint:
    """An ASGI application that answers the calls of one row of the endpoint table."""

    def __init__(
        self,
        row: EndpointRow,
        handler: Handler,
        *,
        cors: Cors | None,
        recorder: CallRecorder,
        request_ids: RequestIds,
        inflight: InflightBytes,
    ) -> None:
        self._row = row
        self._methods = frozenset(row.methods)
        self._handler = handler
        self._cors = cors
        self._recorder = recorder
        self._new_request_id = request_ids
        self._inflight = inflight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call with exactly one reply, or none where the caller went away."""
        recorder = self._recorder
        started_s = recorder.monotonic_s()
        call = Call(scope, receive, self._new_request_id())
        try:
            reply = await self._answer(call)
        except Disconnected:
            recorder.record(
                self._row, scope["method"], CLIENT_CLOSED_REQUEST, started_s, call.request_id
            )
            return
        # A cancelled call is one that the server's shutdown ran out of time for: it is told so.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the outermost place
            reply = self._refuse(self._as_told(error), call)
        finally:
            self._inflight.release(call)
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": self._headers(call, reply),
            }
        )
        await send({"type": "http.response.body", "body": reply.body})
        recorder.record(self._row, scope["method"], reply.status, started_s, call.request_id)

    def _refuse(self, error: BaseException, call: Call) -> Reply:
        """Not where it was caught: a name that outlives that place would keep the call's body."""
        self._recorder.record_failure(self._row, error, call.request_id)
        return refuse(error, self._row.envelope, call.request_id)

    def _as_told(self, error: BaseException) -> BaseException:
        """Say of a question that was cut off that it may be asked again; of events nobody knows."""
        if isinstance(error, asyncio.CancelledError) and self._row.envelope is Envelope.QUERY:
            return Unavailable("the service is stopping")
        return error

    async def _answer(self, call: Call) -> Reply:
        method = call.scope["method"]
        if method not in self._methods and self._methods:
            raise MethodNotAllowed(self._row.methods)
        if method == "OPTIONS" and self._cors is not None:
            return self._cors.answer_preflight(call.headers.get(b"origin"))
        return await self._handler(call)

    def _headers(self, call: Call, reply: Reply) -> Sequence[Header]:
        headers = [
            *reply.headers,
            (b"x-request-id", call.request_id.encode()),
            *call.reply_headers,
        ]
        if reply.status != 204:  # it has no body, and may not even tell its length
            headers.append((b"content-length", b"%d" % len(reply.body)))
        if self._cors is not None and (origin := call.headers.get(b"origin")) is not None:
            headers.extend(self._cors.reply_headers(origin))
        return headers
