"""chDB within the engine process: the life of the store and its query service."""

import asyncio
from collections.abc import Awaitable, Callable

from headrace.adapters.engine.kept_versions import KeptVersions
from headrace.adapters.engine.store_recovery import StoreRecovery
from headrace.adapters.query_scheduler.fair_semaphore import SchedulerLimits
from headrace.adapters.query_scheduler.result_cache import ResultCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.adapters.store.chdb.rollup import RollupRebuilder
from headrace.adapters.store.chdb.self_healing_reader import SelfHealingReader
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.clock import SystemClock
from headrace.base.logs import Logger
from headrace.ports.store import QueryLimits, StoreStatus


class ChdbLifecycle:
    """The `StoreLifecycle` of chDB. `writer` must write to `chdb`."""

    def __init__(self, chdb: ChdbInstance, writer: ChdbWriter, recovery: StoreRecovery) -> None:
        self._chdb = chdb
        self._writer = writer
        self._recovery = recovery

    def open(self) -> None:
        """Open the store directory. Raises `OperatorError`."""
        self._chdb.open()

    async def prepare(self, stop: asyncio.Event) -> None:
        """Create or migrate the tables. Raises `OperatorError` or `StoreUnavailable`."""
        del stop  # a migration of an embedded store runs to its end
        await asyncio.to_thread(self._writer.prepare)
        await asyncio.to_thread(self._recovery.reconcile, self._writer.prepare)

    def request_stop(self) -> None:
        """Reject every batch after the running one."""
        self._writer.request_stop()

    def close(self) -> None:
        """Close the connection of the writer, then the store directory."""
        self._writer.close()
        self._chdb.close()


class ChdbQueryService:
    """The `QueryService` over chDB. `versions` must be the change listener of `writer`.

    `run_exclusive` runs a callable while nothing is loaded.
    """

    def __init__(
        self,
        chdb: ChdbInstance,
        *,
        writer: ChdbWriter,
        recovery: StoreRecovery,
        run_exclusive: Callable[[Callable[[], None]], Awaitable[None]],
        versions: DataVersions,
        kept_versions: KeptVersions,
        limits: SchedulerLimits,
        log: Logger,
    ) -> None:
        self._kept_versions = kept_versions
        self.versions = versions
        self.ranges = versions.ranges
        self._recovery = recovery
        self.cache = ResultCache(limits.cache_bytes)
        self._reader = ChdbReader(chdb, threads=limits.slots.slots, log=log)
        self._rebuilder = RollupRebuilder(writer.rollup)
        self._healing_reader = SelfHealingReader(
            self._reader,
            rollup=self._rebuilder,
            reopen_tables=writer.reopen,
            run_exclusive=run_exclusive,
            clock=SystemClock(),
            log=log,
        )

    def open(self) -> None:
        """Open a connection for each thread; the tables must have been prepared.

        Raises `OperatorError`.
        """
        self._kept_versions.restore()
        self._reader.open()
        self._rebuilder.start()

    def status(self) -> StoreStatus:
        """Return whether selects over what is loaded succeed."""
        if not self._recovery.is_complete:
            return StoreStatus.INCOMPLETE
        return StoreStatus.READY if self._rebuilder.is_whole else StoreStatus.REBUILDING

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT; see `ChdbReader.select`. An incomplete store rejects all of them."""
        self._recovery.check_complete()
        return await self._healing_reader.select(sql, parameters, limits, query_id)

    async def finish_repair(self) -> None:
        """Wait until no repair of the tables and no rebuilding runs."""
        await self._healing_reader.finish()
        await asyncio.to_thread(self._rebuilder.close)

    async def close(self) -> None:
        """Kill the running selects and close the connections. No row may change any more."""
        await self._reader.close()
        await asyncio.to_thread(self._kept_versions.keep)
