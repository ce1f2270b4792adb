"""The worker's client of the engine process: its `Store`, `RateLimiter` and load barrier."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.adapters.engine.ipc.protocol import (
    REPLY_DECODER,
    CallCounted,
    CheckReady,
    CountCall,
    Failure,
    FailureKind,
    FramedConnection,
    IpcReply,
    IpcRequest,
    ProtocolError,
    Readiness,
    RunSelect,
    SelectResult,
    Stored,
    WaitStored,
)
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.model.plan import CompiledQuery
from headrace.ports.rate_limiter import RateLimitResult
from headrace.ports.store import QueryLimits, Rows, SelectFailed

COUNT_CALL_TIMEOUT_S: Final = 1.0
READY_TIMEOUT_S: Final = 1.0
SELECT_GRACE_S: Final = 5.0
"""The engine ends a select at its deadline; no reply by this time after it means a failure."""

_MAX_IDLE = 32


_ERRORS: Mapping[FailureKind, type[Exception]] = {
    FailureKind.TIMED_OUT: QueryTimedOut,
    FailureKind.TOO_LARGE: QueryTooLarge,
    FailureKind.UNAVAILABLE: StoreUnavailable,
    FailureKind.FAILED: SelectFailed,
}


class _ClientConnection(FramedConnection[IpcReply]):
    """Sends one request at a time."""

    def __init__(self) -> None:
        super().__init__(REPLY_DECODER)
        self._reply: asyncio.Future[IpcReply] | None = None

    def send_request(self, request: IpcRequest) -> asyncio.Future[IpcReply]:
        """Send a request. It, or its reply, fails with `ProtocolError` when the engine is gone."""
        if self.is_closing:  # the engine may have exited since it accepted the connection
            raise ProtocolError("the engine has closed the connection")
        self._reply = asyncio.get_running_loop().create_future()
        self.send(request)
        return self._reply

    def receive(self, message: IpcReply) -> None:
        """Complete the pending request."""
        if self._reply is None or self._reply.done():
            raise ProtocolError("a reply without a request")
        self._reply.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its cause is irrelevant
        """Fail the pending request; called by the event loop."""
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(
                ProtocolError("the engine closed the connection before its reply")
            )


class EngineConnections:
    """A pool of connections to the engine process; used from one event loop.

    After a failure the next request opens a new connection, so a restarted engine is used at once.
    """

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._idle: list[_ClientConnection] = []

    async def send_request(self, request: IpcRequest, *, timeout_s: float) -> IpcReply:
        """Send a request and return its reply.

        Raises `StoreUnavailable` when the engine is away or does not reply in time. Cancelling
        the caller cancels the request in the engine.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(
                    self._pop_open_connection() or await self._connect(), request
                )
        except (OSError, ProtocolError) as error:  # TimeoutError is an OSError
            raise StoreUnavailable("the engine is away") from error

    async def close(self) -> None:
        """Close the idle connections. May be called twice."""
        while self._idle:
            self._idle.pop().close()

    async def _exchange(self, connection: _ClientConnection, request: IpcRequest) -> IpcReply:
        try:
            reply = await connection.send_request(request)
        except BaseException:
            connection.close()  # cancels the query and discards a reply that may still arrive
            raise
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return reply

    async def _connect(self) -> _ClientConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(_ClientConnection, str(self._socket))
        return connection

    def _pop_open_connection(self) -> _ClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closing:
                return connection
        return None


class EngineStore:
    """The `Store` over the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> Rows:
        """Run a query; see `Store.select`. Raises `SelectFailed` where the SQL itself is wrong."""
        request = RunSelect(
            sql=query.sql,
            parameters=encode_parameters(query.parameters),
            website_id=query.website_id,
            limits=limits,
        )
        timeout_s = limits.timeout_s + SELECT_GRACE_S
        match await self._connections.send_request(request, timeout_s=timeout_s):
            case SelectResult(rows=rows):
                return decode_rows(rows)
            case Failure(kind=kind, reason=reason):
                raise _ERRORS[kind](reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def is_ready(self) -> bool:
        """Return whether a select would succeed now. Never raises."""
        try:
            reply = await self._connections.send_request(CheckReady(), timeout_s=READY_TIMEOUT_S)
        except StoreUnavailable:
            return False
        return isinstance(reply, Readiness) and reply.is_ready


class EngineBarrier:
    """The load barrier of the engine process: for acknowledgements that promise a stored event."""

    def __init__(self, connections: EngineConnections, *, timeout_s: float) -> None:
        self._connections = connections
        self._timeout_s = timeout_s

    async def wait(self) -> None:
        """Return when everything that is durable now is in the store.

        Raises `StoreUnavailable` when the load fails or takes too long.
        """
        match await self._connections.send_request(WaitStored(), timeout_s=self._timeout_s):
            case Stored():
                return
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def is_caught_up(self) -> bool:
        """Return whether the load loop is caught up. Never raises."""
        return await EngineStore(self._connections).is_ready()


class EngineLimiter:
    """The `RateLimiter` over the engine process, which counts for all workers."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def hit(self, caller: str) -> RateLimitResult | None:
        """Count one call of a caller; None when the engine is away."""
        try:
            reply = await self._connections.send_request(
                CountCall(caller), timeout_s=COUNT_CALL_TIMEOUT_S
            )
        except StoreUnavailable:
            return None
        return reply.verdict if isinstance(reply, CallCounted) else None
