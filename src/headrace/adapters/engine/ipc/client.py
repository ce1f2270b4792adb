"""The worker's client of the engine process: its `Store`, `RateLimiter` and load barrier."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace.adapters.engine.ipc.protocol import (
    REPLY_DECODER,
    CallCounted,
    CheckReady,
    CountCall,
    DescribeStorage,
    EraseRows,
    ErasureBegun,
    ExportOpened,
    ExportRead,
    Failure,
    FailureKind,
    FramedConnection,
    IpcReply,
    IpcRequest,
    OpenExport,
    ProtocolError,
    PruneRows,
    ReadExport,
    Readiness,
    ReadVersion,
    RowsPruned,
    RunSelect,
    SelectResult,
    StorageDescribed,
    Stored,
    VersionRead,
    WaitStored,
)
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_result, decode_rows
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.model.erasure import ErasureRequest
from headrace.model.export import Watermark
from headrace.model.plan import CompiledQuery
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.rate_limiter import CountedCall, RateLimitResult
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.versions import RowRange
from headrace.ports.store import QueryLimits, SelectFailed, StoreResult, StoreStatus

COUNT_CALL_TIMEOUT_S: Final = 1.0
READY_TIMEOUT_S: Final = 1.0
SELECT_GRACE_S: Final = 5.0
"""The engine ends a select at its deadline; no reply by this time after it means a failure."""

OPEN_EXPORT_TIMEOUT_S: Final = 600.0
"""An export begins when everything durable is stored, which takes long after an outage."""

ERASE_TIMEOUT_S: Final = 900.0
"""Loading after an outage, and the engine's own limit for rewriting parts."""

DESCRIBE_TIMEOUT_S: Final = 60.0
"""Counting 100 million rows takes a second; events that are not stored yet come first."""

PRUNE_TIMEOUT_S: Final = 86_400.0
"""All parts of all tables may be rewritten. What was begun goes on without the client."""

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

    @contextlib.asynccontextmanager
    async def open_request(
        self, request: IpcRequest, *, timeout_s: float
    ) -> AsyncGenerator[IpcReply]:
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
            yield reply

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

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        """Run a query; see `Store.select`. Raises `SelectFailed` where the SQL itself is wrong."""
        request = RunSelect(
            sql=query.sql,
            parameters=encode_parameters(query.parameters),
            website_id=query.website_id,
            limits=limits,
        )
        timeout_s = limits.timeout_s + SELECT_GRACE_S
        match await self._connections.send_request(request, timeout_s=timeout_s):
            case SelectResult(output=output, cached=cached):
                return decode_result(output, cached=cached)
            case Failure(kind=kind, reason=reason):
                raise _ERRORS[kind](reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def status(self) -> StoreStatus:
        """Return whether a select would succeed now. Never raises."""
        try:
            reply = await self._connections.send_request(CheckReady(), timeout_s=READY_TIMEOUT_S)
        except StoreUnavailable:
            return StoreStatus.UNAVAILABLE
        return reply.status if isinstance(reply, Readiness) else StoreStatus.UNAVAILABLE


class EngineExportStore:
    """The `ExportStore` over the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    @contextlib.asynccontextmanager
    async def open(self, website_id: str) -> AsyncGenerator[Watermark]:
        """Begin an export; see `ExportStore.open`."""
        request = OpenExport(website_id)
        async with self._connections.open_request(
            request, timeout_s=OPEN_EXPORT_TIMEOUT_S
        ) as reply:
            match reply:
                case ExportOpened(watermark=watermark):
                    yield watermark
                case Failure(reason=reason):
                    raise StoreUnavailable(reason)
                case _:
                    raise StoreUnavailable("unexpected reply of the engine")

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Run a SELECT that names its format; see `ExportStore.read`."""
        request = ReadExport(
            query.sql, encode_parameters(query.parameters), query.website_id, limits
        )
        timeout_s = limits.timeout_s + SELECT_GRACE_S
        match await self._connections.send_request(request, timeout_s=timeout_s):
            case ExportRead(output=output):
                return output
            case Failure(kind=kind, reason=reason):
                raise _ERRORS[kind](reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        """Run a SELECT and return its rows; see `ExportStore.rows`."""
        return decode_rows(await self.read(query, limits))


class EngineErasureClient:
    """Begins erasures in the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def begin(self, request: ErasureRequest) -> Erasure:
        """Begin an erasure; return when no answer has its rows any more.

        Where that takes many minutes, returns an erasure of which it is not noted yet. Raises
        `StoreUnavailable`.
        """
        match await self._connections.send_request(EraseRows(request), timeout_s=ERASE_TIMEOUT_S):
            case ErasureBegun(erasure=erasure):
                return erasure
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")


class EngineStorageClient:
    """Prunes, and describes what is stored, in the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        """Return the rows of one website, or of all, by table. Raises `StoreUnavailable`."""
        request = DescribeStorage(website_id)
        match await self._connections.send_request(request, timeout_s=DESCRIBE_TIMEOUT_S):
            case StorageDescribed(rows=rows):
                return rows
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def prune(self, *, dry_run: bool) -> tuple[ExpiredRows, ...]:
        """Delete all expired rows and return them. Raises `StoreUnavailable`."""
        request = PruneRows(dry_run)
        match await self._connections.send_request(request, timeout_s=PRUNE_TIMEOUT_S):
            case RowsPruned(rows=rows):
                return rows
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")


class EngineRowVersions:
    """The `RowVersions` of the engine process, which stores all rows."""

    def __init__(self, connections: EngineConnections, *, timeout_s: float) -> None:
        self._connections = connections
        self._timeout_s = timeout_s

    async def version_of(self, website_id: WebsiteId, ranges: Sequence[RowRange]) -> str | None:
        """Return the version of a website's rows in ranges; see `RowVersions.version_of`."""
        request = ReadVersion(website_id, tuple(ranges))
        match await self._connections.send_request(request, timeout_s=self._timeout_s):
            case VersionRead(version=version):
                return version
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")


class EngineBarrier:
    """The load barrier of the engine process.

    With `all_logs` it fails while a log cannot be read, as acknowledgements require that promise a
    stored event; without, it leaves out what cannot be read, as queries do.
    """

    def __init__(self, connections: EngineConnections, *, timeout_s: float, all_logs: bool) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._request = WaitStored(all_logs=all_logs)

    async def wait(self) -> None:
        """Return when everything that is durable now is in the store.

        Raises `StoreUnavailable` when the load fails or takes too long.
        """
        match await self._connections.send_request(self._request, timeout_s=self._timeout_s):
            case Stored():
                return
            case Failure(reason=reason):
                raise StoreUnavailable(reason)
            case _:
                raise StoreUnavailable("unexpected reply of the engine")

    async def is_caught_up(self) -> bool:
        """Return whether the load loop is caught up. Never raises."""
        return await EngineStore(self._connections).status() is not StoreStatus.UNAVAILABLE


class EngineLimiter:
    """The `RateLimiter` over the engine process, which counts for all workers.

    Raises `StoreUnavailable` when the engine does not answer in time.
    """

    def __init__(
        self, connections: EngineConnections, call: CountedCall = CountedCall.QUERY
    ) -> None:
        self._connections = connections
        self._call = call

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one call of a caller; see `RateLimiter.hit`."""
        match await self._connections.send_request(
            CountCall(caller, self._call), timeout_s=COUNT_CALL_TIMEOUT_S
        ):
            case CallCounted(verdict=result):
                return result
            case _:
                raise StoreUnavailable("unexpected reply of the engine")
