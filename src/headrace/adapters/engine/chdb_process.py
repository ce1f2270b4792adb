"""The engine process: opens the store, keeps it up with the log, answers the workers."""

import asyncio
from pathlib import Path

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshots
from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.engine.load_loop import LoadLoop, Loads, load_until
from headrace.adapters.query_scheduler.coalescing_executor import SharedSelects
from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces, SelectBounds
from headrace.adapters.query_scheduler.result_cache import AnswerCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.adapters.store.chdb.self_healing_reader import MendingSelects
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.clock import SystemClock
from headrace.base.telemetry import Logger, Metrics
from headrace.ports.event_log import LogReader
from headrace.ports.rate_limiter import Limiter


class EngineProcess:
    """Everything that happens in the engine process, on one event loop.

    Constructing it opens nothing. `writer` must write to `engine` and tell `versions` of it,
    `loader` must write to `writer`.
    """

    def __init__(
        self,
        *,
        engine: ChdbEngine,
        writer: ChdbWriter,
        loader: Loads,
        versions: DataVersions,
        log_reader: LogReader,
        limiter: Limiter,
        snapshots: Snapshots,
        socket: Path,
        select_bounds: SelectBounds,
        load_interval_s: float,
        metrics: Metrics,
        log: Logger,
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._log = log
        self._snapshots = snapshots
        self._loading = LoadLoop(
            loader=loader, log_reader=log_reader, interval_s=load_interval_s, log=log
        )
        self._reader = ChdbReader(engine, threads=select_bounds.places.places, log=log)
        self._selects = MendingSelects(
            self._reader,
            mend=writer.reopen,
            between_loads=self._loading.between_loads,
            clock=SystemClock(),
            log=log,
        )
        self._server = EngineServer(
            socket=socket,
            runner=self._selects,
            shared=SharedSelects(
                places=FairPlaces(select_bounds.places, metrics=metrics),
                load_barrier=self._loading.barrier,
                versions=versions,
                cache=AnswerCache(select_bounds.cache_bytes),
                wait_timeout_s=select_bounds.wait_timeout_s,
                metrics=metrics,
            ),
            limiter=limiter,
            load_barrier=self._loading.barrier,
            is_ready=lambda: self._loading.is_current,
            snapshots=LiveSnapshots(snapshots, self._loading),
            log=log,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then store what is durable and leave nothing running.

        Raises `OperatorError` when the store or the socket cannot be opened, `StoreUnavailable`
        when the tables cannot be made.
        """
        self._snapshots.clear()
        self._engine.open()
        try:
            await asyncio.to_thread(self._writer.prepare)  # a migration may take minutes
            self._reader.open()
            await self._server.open()
            self._log.info("engine_ready")
            await load_until(stop, loading=self._loading, server=self._server, log=self._log)
        finally:
            await self._close()

    async def _close(self) -> None:
        """Nothing may run in the engine when the process leaves: chDB would crash."""
        await self._server.close()
        self._writer.refuse()
        await self._selects.finish()
        await asyncio.to_thread(self._loading.close)
        await self._reader.close()
        self._writer.close()
        self._engine.close()
        self._log.info("engine_closed")
