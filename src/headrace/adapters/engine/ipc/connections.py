"""A worker's connections to the engine process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from headrace.adapters.engine.ipc.framing import REPLY_DECODER, FramedConnection, ProtocolError
from headrace.adapters.engine.ipc.messages import Failure, FailureKind, IpcReply, IpcRequest
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.ports.store import SelectFailed

_MAX_IDLE: Final = 32

_ERRORS: Final[Mapping[FailureKind, type[Exception]]] = {
    FailureKind.TIMED_OUT: QueryTimedOut,
    FailureKind.TOO_LARGE: QueryTooLarge,
    FailureKind.UNAVAILABLE: StoreUnavailable,
    FailureKind.FAILED: SelectFailed,
}

_ReplyT = TypeVar("_ReplyT", bound=IpcReply)


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

    @property
    def runtime(self) -> Path:
        """The runtime directory, which outlives the engine."""
        return self._socket.parent

    async def send_request(
        self, request: IpcRequest, reply_type: type[_ReplyT], *, timeout_s: float
    ) -> _ReplyT:
        """Send a request and return its reply.

        Raises `StoreUnavailable` when the engine is away or does not reply in time, and the error
        of a `Failure`. Cancelling the caller cancels the request in the engine.
        """
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._exchange(
                    self._pop_open_connection() or await self._connect(), request
                )
        except (OSError, ProtocolError) as error:  # TimeoutError is an OSError
            raise StoreUnavailable("the engine is away") from error
        return _expected(reply, reply_type)

    @contextlib.asynccontextmanager
    async def open_request(
        self, request: IpcRequest, reply_type: type[_ReplyT], *, timeout_s: float
    ) -> AsyncGenerator[_ReplyT]:
        """Send a request on a connection of its own, which is closed at the end of the context.

        Yields the reply. Raises what `send_request` raises.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(timeout_s):
                    connection = await self._connect()
                    stack.callback(connection.close)
                    reply = await connection.send_request(request)
            except (OSError, ProtocolError) as error:
                raise StoreUnavailable("the engine is away") from error
            yield _expected(reply, reply_type)

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


def _expected(reply: IpcReply, reply_type: type[_ReplyT]) -> _ReplyT:
    if isinstance(reply, reply_type):
        return reply
    if isinstance(reply, Failure):
        raise _ERRORS[reply.kind](reply.reason)
    raise StoreUnavailable("unexpected reply of the engine")
