"""The engine process where the store is ClickHouse: it loads, and the workers ask by themselves."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshot, Snapshots
from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.engine.load_loop import LoadLoop, LogLoader, run_until_stopped
from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor, NoVersions
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SchedulerLimits
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.telemetry import Logger, Metrics
from headrace.ports.event_log import LogOffset, LogReader
from headrace.ports.rate_limiter import RateLimiter
from headrace.ports.store import QueryLimits

_MAX_BACKOFF_S: Final = 2.0
"""Queries wait for loading, so this is how long they go on to fail once ClickHouse is back."""


_PROGRESS_LOG_INTERVAL_S: Final = 3.0
"""Making the tables takes half a second; of what takes longer the log tells every so often."""


class ClickHouseEngineProcess:
    """Everything that happens in the process, on one event loop. Constructing it opens nothing.

    `loader` must write to `writer`.
    """

    def __init__(
        self,
        *,
        writer: ClickHouseWriter,
        loader: LogLoader,
        log_reader: LogReader,
        limiter: RateLimiter,
        snapshots: Snapshots,
        socket: Path,
        scheduler_limits: SchedulerLimits,
        load_interval_s: float,
        metrics: Metrics,
        log: Logger,
    ) -> None:
        self._writer = writer
        self._snapshots = snapshots
        self._log = log
        self._load_loop = LoadLoop(
            loader=_PreparingLoader(writer, loader),
            log_reader=log_reader,
            interval_s=load_interval_s,
            log=log,
            max_backoff_s=_MAX_BACKOFF_S,
        )
        self._server = EngineServer(
            socket=socket,
            runner=_NoSelects(),
            executor=CoalescingExecutor(
                slots=FairSemaphore(scheduler_limits.slots, metrics=metrics),
                load_barrier=self._load_loop.barrier,
                versions=NoVersions(),
                cache=None,
                wait_timeout_s=scheduler_limits.wait_timeout_s,
                metrics=metrics,
            ),
            limiter=limiter,
            load_barrier=self._load_loop.barrier,
            is_ready=lambda: self._load_loop.is_caught_up,
            snapshots=_DrainedSnapshots(snapshots, self._load_loop),
            log=log,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then store what is durable.

        While ClickHouse is away events are taken in and wait in the log. Raises `OperatorError`
        when the socket cannot be opened, or when ClickHouse is there and refuses.
        """
        self._snapshots.clear()
        try:
            await self._prepare(stop)
            await self._server.open()
            self._log.info("engine_ready")
            await run_until_stopped(
                stop, load_loop=self._load_loop, server=self._server, log=self._log
            )
        finally:
            await self._close()

    async def _prepare(self, stop: asyncio.Event) -> None:
        """Have the tables made, and say what takes long. What fails the loading tries again."""
        preparing = asyncio.ensure_future(asyncio.to_thread(self._writer.prepare))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            while not preparing.done() and not stopping.done():
                await asyncio.wait(
                    {preparing, stopping},
                    timeout=_PROGRESS_LOG_INTERVAL_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not preparing.done():
                    self._log.warning(
                        "store_preparing", statement=self._writer.current_statement or "connecting"
                    )
            if stopping.done():
                self._writer.request_stop()
            await preparing
        except StoreUnavailable as error:
            self._log.warning("store_not_prepared", reason=str(error))
        finally:
            stopping.cancel()

    async def _close(self) -> None:
        await self._server.close()
        self._writer.request_stop()
        await asyncio.to_thread(self._load_loop.close)
        self._writer.close()
        self._log.info("engine_closed")


class _PreparingLoader:
    """A `LogLoader` that has the tables made first, also where there is nothing to load yet."""

    def __init__(self, writer: ClickHouseWriter, loader: LogLoader) -> None:
        self._writer = writer
        self._loader = loader

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store everything before these places; see `LogLoader`."""
        if not self._writer.is_prepared:
            self._writer.prepare()
        return self._loader.load_until(ends)


class _DrainedSnapshots(LiveSnapshots):
    """Snapshots of a machine whose events are all in ClickHouse when it begins to take them."""

    def __init__(self, snapshots: Snapshots, loading: LoadLoop) -> None:
        super().__init__(snapshots, loading)
        self._barrier = loading.barrier

    async def take(self) -> Snapshot:
        """Take one. Raises `OperatorError`, also where ClickHouse does not take the events."""
        try:
            await self._barrier()
        except StoreUnavailable as error:
            raise OperatorError(f"no snapshot can be taken: {error}") from error
        return await super().take()


class _NoSelects:
    """A `SelectRunner` for a worker of another version, which would ask the engine."""

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Raise `StoreUnavailable`."""
        del sql, parameters, limits, query_id
        raise StoreUnavailable("the store is ClickHouse, and workers ask it themselves")
