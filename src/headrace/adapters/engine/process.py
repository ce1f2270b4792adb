"""The engine process: loads the logs into the store and serves the workers over its socket."""

import asyncio
from pathlib import Path
from typing import Protocol

from headrace.adapters.backup.snapshots import Snapshots
from headrace.adapters.engine.exports import EngineExports, TakeWatermark
from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.engine.ipc.services import (
    ErasureRunner,
    LiveHub,
    Pruner,
    RangeVersions,
    SelectRunner,
    SnapshotTaker,
)
from headrace.adapters.engine.load_loop import LAST_LOAD_TIMEOUT_S, LoadLoop, run_until_stopped
from headrace.adapters.query_scheduler.coalescing_executor import (
    CoalescingExecutor,
    NoVersions,
    ResultStore,
    VersionSource,
)
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SchedulerLimits
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import Logger
from headrace.base.metrics import Metrics
from headrace.ports.rate_limiter import RateLimiters
from headrace.ports.store import QueryLimits, StoreStatus


class StoreLifecycle(Protocol):
    """Opens and closes the store that the load loop writes to; used from one event loop."""

    def open(self) -> None:
        """Open the store. Raises `OperatorError`; nothing must be closed then."""
        ...

    async def prepare(self, stop: asyncio.Event) -> None:
        """Create or migrate the tables, which may take minutes; `stop` ends it early.

        Raises `OperatorError`, or `StoreUnavailable` where the process cannot run without tables.
        """
        ...

    def request_stop(self) -> None:
        """Reject every batch after the running one."""
        ...

    def close(self) -> None:
        """Close the store. No load and no select may be running."""
        ...


class QueryService(SelectRunner, Protocol):
    """Runs the workers' selects within the engine process; used from one event loop."""

    @property
    def versions(self) -> VersionSource:
        """The versions of each website's rows, which decide whether a cached result is current."""
        ...

    @property
    def ranges(self) -> RangeVersions | None:
        """The versions of ranges of rows; None where other machines store rows, too."""
        ...

    @property
    def cache(self) -> ResultStore[bytes] | None:
        """The results of earlier selects."""
        ...

    def open(self) -> None:
        """Open the connections; the tables must have been prepared."""
        ...

    def status(self) -> StoreStatus:
        """Return whether selects over what is loaded succeed."""
        ...

    async def finish_repair(self) -> None:
        """Wait until no repair of the tables runs."""
        ...

    async def close(self) -> None:
        """End the running selects and close the connections. The load loop must be closed."""
        ...


class Erasures(ErasureRunner, Protocol):
    """Runs erasures within the engine process: `EngineErasures`."""

    async def restore_answers(self) -> None:
        """Return when no answer has the rows of an erasure that had none of them before."""
        ...

    async def resume_pending(self) -> None:
        """Go on with the erasures that an earlier process began; the store must be open."""
        ...

    def follow_others(self) -> None:
        """Begin to carry out the erasures of other machines."""
        ...

    async def close(self) -> None:
        """End after the running step."""
        ...


class Pruning(Pruner, Protocol):
    """Prunes within the engine process: `EnginePruning`."""

    def start(self) -> None:
        """Begin to prune every day."""
        ...

    async def close(self) -> None:
        """End after the running step."""
        ...


class Live(LiveHub, Protocol):
    """Reads new rows while somebody watches: `LiveTail`."""

    async def close(self) -> None:
        """Stop to read. The load loop must be open still."""
        ...


class EngineProcess:
    """Everything that runs in the engine process, on one event loop. Constructing it opens nothing.

    `load_loop` must write to `store`. Without a `query_service` every select is rejected: the
    store is ClickHouse then, which the workers query themselves.
    """

    def __init__(
        self,
        *,
        store: StoreLifecycle,
        load_loop: LoadLoop,
        query_service: QueryService | None,
        limiters: RateLimiters,
        snapshots: Snapshots,
        snapshot_taker: SnapshotTaker,
        take_watermark: TakeWatermark,
        erasures: Erasures,
        pruning: Pruning,
        live: Live,
        prunes_daily: bool,
        socket: Path,
        scheduler_limits: SchedulerLimits,
        metrics: Metrics,
        log: Logger,
    ) -> None:
        self._store = store
        self._load_loop = load_loop
        self._query_service: QueryService = query_service or _NoQueryService()
        self._snapshots = snapshots
        self._erasures = erasures
        self._pruning = pruning
        self._live = live
        self._prunes_daily = prunes_daily
        self._log = log
        slots = FairSemaphore(scheduler_limits.slots, metrics=metrics)
        self._server = EngineServer(
            socket=socket,
            runner=self._query_service,
            executor=CoalescingExecutor(
                slots=slots,
                load_barrier=load_loop.barrier,
                versions=self._query_service.versions,
                cache=self._query_service.cache,
                wait_timeout_s=scheduler_limits.wait_timeout_s,
                metrics=metrics,
            ),
            limiters=limiters,
            load_barrier=load_loop.barrier,
            complete_barrier=load_loop.complete_barrier,
            status=self._status,
            snapshots=snapshot_taker,
            exports=EngineExports(take_watermark, runner=self._query_service, slots=slots),
            erasures=erasures,
            pruner=pruning,
            versions=self._query_service.ranges,
            live=live,
            log=log,
        )

    async def run(
        self, stop: asyncio.Event, *, last_load_timeout_s: float = LAST_LOAD_TIMEOUT_S
    ) -> None:
        """Load and serve until `stop` is set, then store what is durable and end everything.

        What takes longer to store than `last_load_timeout_s` is left in the log.

        Raises `OperatorError` when the store or the socket cannot be opened or the store rejects
        its user, `StoreUnavailable` when the tables of an embedded store cannot be prepared.
        """
        self._snapshots.clear()
        self._store.open()
        try:
            await self._store.prepare(stop)
            self._query_service.open()
            if not await self._restore_answers(stop):
                return
            await self._server.open()
            await self._erasures.resume_pending()
            self._erasures.follow_others()
            if self._prunes_daily:
                self._pruning.start()
            self._log.info("engine_ready")
            await run_until_stopped(
                stop,
                load_loop=self._load_loop,
                server=self._server,
                timeout_s=last_load_timeout_s,
                log=self._log,
            )
        finally:
            await self._close()

    async def _restore_answers(self, stop: asyncio.Event) -> bool:
        """Return whether selects may begin; False where `stop` came first.

        Servers of a cluster keep what they deleted when this machine loses its power.
        """
        if isinstance(self._query_service, _NoQueryService):
            return True
        restoring = asyncio.create_task(self._erasures.restore_answers())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({restoring, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not restoring.done():
            restoring.cancel()
            return False
        await restoring
        return True

    def _status(self) -> StoreStatus:
        if not self._load_loop.is_caught_up:
            return StoreStatus.UNAVAILABLE
        return self._query_service.status()

    async def _close(self) -> None:
        """Close in this order: chDB crashes when the process exits while a statement runs."""
        await self._server.close()
        await self._erasures.close()
        await self._pruning.close()
        await self._live.close()
        self._store.request_stop()
        await self._query_service.finish_repair()
        await asyncio.to_thread(self._load_loop.close)
        await self._query_service.close()
        self._store.close()
        self._log.info("engine_closed")


class _NoQueryService:
    """The `QueryService` of a process whose workers query the store themselves.

    A worker of another version might still send a select, during an upgrade.
    """

    def __init__(self) -> None:
        self.versions = NoVersions()
        self.ranges = None
        self.cache = None

    def open(self) -> None:
        """Do nothing."""

    def status(self) -> StoreStatus:
        """Return READY: the workers check the servers themselves."""
        return StoreStatus.READY

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Raise `StoreUnavailable`."""
        del sql, parameters, limits, query_id
        raise StoreUnavailable("the store is ClickHouse, which workers query directly")

    async def finish_repair(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
