"""The engine process: opens the store, keeps it up with the log, answers the workers."""

import asyncio
from pathlib import Path

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshots
from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.engine.load_loop import LoadLoop, LogLoader, run_until_stopped
from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SchedulerLimits
from headrace.adapters.query_scheduler.result_cache import ResultCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.adapters.store.chdb.self_healing_reader import SelfHealingReader
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.clock import SystemClock
from headrace.base.telemetry import Logger, Metrics
from headrace.ports.event_log import LogReader
from headrace.ports.rate_limiter import RateLimiter


class EngineProcess:
    """Everything that happens in the engine process, on one event loop.

    Constructing it opens nothing. `writer` must write to `chdb` and tell `versions` of it,
    `loader` must write to `writer`.
    """

    def __init__(
        self,
        *,
        chdb: ChdbInstance,
        writer: ChdbWriter,
        loader: LogLoader,
        versions: DataVersions,
        log_reader: LogReader,
        limiter: RateLimiter,
        snapshots: Snapshots,
        socket: Path,
        scheduler_limits: SchedulerLimits,
        load_interval_s: float,
        metrics: Metrics,
        log: Logger,
    ) -> None:
        self._chdb = chdb
        self._writer = writer
        self._log = log
        self._snapshots = snapshots
        self._load_loop = LoadLoop(
            loader=loader, log_reader=log_reader, interval_s=load_interval_s, log=log
        )
        self._reader = ChdbReader(chdb, threads=scheduler_limits.slots.slots, log=log)
        self._healing_reader = SelfHealingReader(
            self._reader,
            reopen_tables=writer.reopen,
            run_exclusive=self._load_loop.run_exclusive,
            clock=SystemClock(),
            log=log,
        )
        self._server = EngineServer(
            socket=socket,
            runner=self._healing_reader,
            executor=CoalescingExecutor(
                slots=FairSemaphore(scheduler_limits.slots, metrics=metrics),
                load_barrier=self._load_loop.barrier,
                versions=versions,
                cache=ResultCache(scheduler_limits.cache_bytes),
                wait_timeout_s=scheduler_limits.wait_timeout_s,
                metrics=metrics,
            ),
            limiter=limiter,
            load_barrier=self._load_loop.barrier,
            is_ready=lambda: self._load_loop.is_caught_up,
            snapshots=LiveSnapshots(snapshots, self._load_loop),
            log=log,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then store what is durable and leave nothing running.

        Raises `OperatorError` when the store or the socket cannot be opened, `StoreUnavailable`
        when the tables cannot be made.
        """
        self._snapshots.clear()
        self._chdb.open()
        try:
            await asyncio.to_thread(self._writer.prepare)  # a migration may take minutes
            self._reader.open()
            await self._server.open()
            self._log.info("engine_ready")
            await run_until_stopped(
                stop, load_loop=self._load_loop, server=self._server, log=self._log
            )
        finally:
            await self._close()

    async def _close(self) -> None:
        """Nothing may run in the engine when the process leaves: chDB would crash."""
        await self._server.close()
        self._writer.request_stop()
        await self._healing_reader.finish()
        await asyncio.to_thread(self._load_loop.close)
        await self._reader.close()
        self._writer.close()
        self._chdb.close()
        self._log.info("engine_closed")
