"""The engine's server: runs the workers' selects, counts their callers and takes snapshots."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, assert_never
from weakref import WeakSet

from headrace.adapters.data_dir.runtime_directory import MAX_SOCKET_PATH_BYTES
from headrace.adapters.engine.ipc.framing import (
    REQUEST_DECODER,
    FramedConnection,
    ProtocolError,
)
from headrace.adapters.engine.ipc.messages import (
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
    FollowLive,
    IpcReply,
    IpcRequest,
    LiveFollowed,
    LivePublished,
    LiveStreamCounted,
    OpenExport,
    OpenLiveStream,
    OpenRequest,
    PruneRows,
    PublishLive,
    ReadExport,
    Readiness,
    ReadVersion,
    RowsPruned,
    RunSelect,
    SelectResult,
    SnapshotTaken,
    StorageDescribed,
    Stored,
    TakeSnapshot,
    UnaryRequest,
    VersionRead,
    WaitStored,
)
from headrace.adapters.engine.ipc.services import (
    ErasureRunner,
    ExportOpener,
    LiveHub,
    Pruner,
    RangeVersions,
    SelectRunner,
    SnapshotTaker,
)
from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import refused_select
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.errors import (
    OperatorError,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
    system_reason,
)
from headrace.base.logs import Logger
from headrace.ports.rate_limiter import RateLimiters
from headrace.ports.store import QueryLimits, StoreStatus


class _ServerConnection(FramedConnection[IpcRequest]):
    """The engine's end of a connection. A disconnect cancels the request, except an open one."""

    def __init__(
        self, handler: Callable[[IpcRequest, "_ServerConnection"], Coroutine[Any, Any, None]]
    ) -> None:
        super().__init__(REQUEST_DECODER)
        self._handler = handler
        self._request: IpcRequest | None = None
        self.handler_task: asyncio.Task[None] | None = None
        self.disconnected = asyncio.Event()

    def receive(self, message: IpcRequest) -> None:
        """Start the handler of a request."""
        if self.handler_task is not None and not self.handler_task.done():
            raise ProtocolError("a request before the reply to the previous one")
        self._request = message
        self.handler_task = asyncio.create_task(self._handler(message, self))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its cause is irrelevant
        """Cancel the request; called by the event loop."""
        self.disconnected.set()
        if self.handler_task is not None and not isinstance(self._request, OpenRequest):
            self.handler_task.cancel()


class EngineServer:
    """Serves one Unix socket on one event loop; `executor` decides which selects `runner` runs.

    `load_barrier` returns when everything that was durable at the call and can be read is in the
    store, `complete_barrier` when everything is. Both raise `StoreUnavailable`. Without `versions`
    nobody knows whether rows have changed.
    """

    def __init__(
        self,
        *,
        socket: Path,
        runner: SelectRunner,
        executor: CoalescingExecutor[bytes],
        limiters: RateLimiters,
        load_barrier: Callable[[], Awaitable[None]],
        complete_barrier: Callable[[], Awaitable[None]],
        status: Callable[[], StoreStatus],
        snapshots: SnapshotTaker,
        exports: ExportOpener,
        erasures: ErasureRunner,
        pruner: Pruner,
        versions: RangeVersions | None,
        live: LiveHub,
        log: Logger,
    ) -> None:
        self._socket = socket
        self._runner = runner
        self._executor = executor
        self._limiters = limiters
        self._load_barrier = load_barrier
        self._complete_barrier = complete_barrier
        self._status = status
        self._snapshots = snapshots
        self._exports = exports
        self._erasures = erasures
        self._pruner = pruner
        self._versions = versions
        self._live = live
        self._log = log
        self._query_ids = (f"{os.getpid()}-{number}" for number in itertools.count(1))
        self._connections: WeakSet[_ServerConnection] = WeakSet()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. The socket's directory is created, for its owner only.

        Raises `OperatorError` when the socket cannot be created.
        """
        if len(os.fsencode(self._socket)) > MAX_SOCKET_PATH_BYTES:
            raise OperatorError(
                f"the path of the engine's socket {self._socket} is longer than "
                f"{MAX_SOCKET_PATH_BYTES} bytes"
            )
        try:
            self._socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._socket.unlink(missing_ok=True)  # left behind by a killed engine process
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._open_connection, str(self._socket))
            self._socket.chmod(0o600)
        except OSError as error:
            raise OperatorError(
                f"cannot listen on the engine's socket {self._socket}: {system_reason(error)}"
            ) from error

    async def close(self) -> None:
        """Stop listening and close all connections, which cancels their queries."""
        if self._server is not None:
            self._server.close()
            self._socket.unlink(missing_ok=True)
        handler_tasks = [
            connection.handler_task
            for connection in self._connections
            if connection.handler_task is not None
        ]
        for connection in self._connections:
            connection.close()
        for handler in handler_tasks:
            handler.cancel()
        await asyncio.gather(*handler_tasks, return_exceptions=True)
        await self._executor.close()

    def _open_connection(self) -> _ServerConnection:
        connection = _ServerConnection(self._handler)
        self._connections.add(connection)
        return connection

    async def _handler(self, request: IpcRequest, connection: _ServerConnection) -> None:
        try:
            match request:
                case TakeSnapshot():
                    await self._serve_snapshot(request, connection)
                case OpenExport():
                    await self._serve_export(request, connection)
                case OpenLiveStream():
                    await self._count_live_stream(request, connection)
                case _:
                    connection.send(await self._dispatch(request))
        except Exception as error:  # noqa: BLE001 - the outermost caller is the event loop
            self._log.error("engine_request_failed", request=type(request).__name__, exc_info=error)
            connection.close()
        except BaseException:
            connection.close()
            raise

    async def _serve_snapshot(self, request: TakeSnapshot, connection: _ServerConnection) -> None:
        """Take a snapshot and keep it until the client disconnects."""
        try:
            snapshot = await self._snapshots.take(partial=request.partial)
        except OperatorError as error:
            connection.send(Failure(FailureKind.UNAVAILABLE, str(error)))
            return
        self._log.info("snapshot_taken")
        try:
            taken = SnapshotTaken(str(snapshot.path), snapshot.entries, snapshot.unreadable)
            connection.send(taken)
            await connection.disconnected.wait()
        finally:
            await self._snapshots.remove(snapshot.path)

    async def _serve_export(self, request: OpenExport, connection: _ServerConnection) -> None:
        """Begin an export, which ends when the client disconnects."""
        try:
            async with self._exports.open(request.website_id) as watermark:
                connection.send(ExportOpened(watermark))
                await connection.disconnected.wait()
        except StoreUnavailable as error:
            connection.send(Failure(FailureKind.UNAVAILABLE, str(error)))

    async def _count_live_stream(
        self, request: OpenLiveStream, connection: _ServerConnection
    ) -> None:
        """Count a stream until the client disconnects."""
        with self._live.count_stream(request.caller) as is_allowed:
            connection.send(LiveStreamCounted(is_allowed))
            await connection.disconnected.wait()

    async def _dispatch(self, request: UnaryRequest) -> IpcReply:
        match request:
            case CountCall():
                return CallCounted(await self._limiters[request.call].hit(request.caller))
            case CheckReady():
                return Readiness(self._status())
            case WaitStored() | ReadVersion():
                return await self._reply_when_loaded(request)
            case FollowLive() | PublishLive():
                return await self._serve_live(request)
            case RunSelect() | ReadExport():
                return await self._select(request)
            case EraseRows() | DescribeStorage() | PruneRows():
                return await self._administer(request)
        assert_never(request)

    async def _reply_when_loaded(self, request: WaitStored | ReadVersion) -> IpcReply:
        needs_all = isinstance(request, WaitStored) and request.all_logs
        try:
            await (self._complete_barrier if needs_all else self._load_barrier)()
        except StoreUnavailable as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))
        if isinstance(request, WaitStored):
            return Stored()
        if self._versions is None:
            return VersionRead(None)
        return VersionRead(self._versions.version_of(request.website_id, request.ranges))

    async def _serve_live(self, request: FollowLive | PublishLive) -> IpcReply:
        if isinstance(request, PublishLive):
            self._live.publish(request.website_id, request.item)
            return LivePublished()
        items = await self._live.follow(request.website_id, request.epoch, request.after)
        return LiveFollowed(items)

    async def _administer(self, request: EraseRows | DescribeStorage | PruneRows) -> IpcReply:
        try:
            match request:
                case EraseRows():
                    return ErasureBegun.of(await self._erasures.begin(request.request()))
                case DescribeStorage():
                    return StorageDescribed(await self._pruner.describe(request.website_id))
                case PruneRows():
                    return RowsPruned(await self._pruner.prune(dry_run=request.dry_run))
        except (StoreUnavailable, OperatorError) as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))

    async def _select(self, request: RunSelect | ReadExport) -> IpcReply:
        if isinstance(request, ReadExport):
            return await self._reply_or_failure(request.sql, self._export_output(request))
        key = QueryKey(
            request.website_id, request.sql, tuple(request.parameters.items()), request.limits
        )
        return await self._reply_or_failure(
            request.sql, self._select_result(key, partial(self._run, request))
        )

    async def _select_result(
        self, key: QueryKey, run: Callable[[QueryLimits], Coroutine[Any, Any, bytes]]
    ) -> IpcReply:
        executed = await self._executor.execute(key, run)
        return SelectResult(executed.result, executed.cached)

    async def _export_output(self, request: ReadExport) -> IpcReply:
        output = await self._exports.read(
            request.sql,
            EncodedParameters(request.parameters),
            request.limits,
            next(self._query_ids),
            website_id=request.website_id,
        )
        return ExportRead(output)

    async def _reply_or_failure(self, sql: str, reply: Awaitable[IpcReply]) -> IpcReply:
        try:
            return await reply
        except QueryTimedOut as error:
            return Failure(FailureKind.TIMED_OUT, str(error))
        except QueryTooLarge as error:
            return Failure(FailureKind.TOO_LARGE, str(error))
        except StoreUnavailable as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))
        except ClickHouseError as failure:
            return Failure(FailureKind.FAILED, str(refused_select(failure, sql, self._log)))

    async def _run(self, request: RunSelect, limits: QueryLimits) -> bytes:
        parameters = EncodedParameters(request.parameters)
        query_id = next(self._query_ids)
        return await self._runner.select(request.sql, parameters, limits, query_id)
