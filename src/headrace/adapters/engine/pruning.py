"""Prunes within the engine process: on demand, and by itself every day."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from headrace.adapters.engine.background_steps import BackgroundSteps
from headrace.adapters.engine.load_loop import LoadLoop
from headrace.base.clock import MILLISECONDS_PER_DAY, Clock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import Logger
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId

FIRST_PRUNE_S: Final = 120.0
"""After a start other work goes first: loading what is in the logs, merges, pending deletions."""

PRUNE_INTERVAL_S: Final = 3_600.0
"""Looking for expired rows reads two columns of each table."""

QUIET_AFTER_MIDNIGHT_MS: Final = MILLISECONDS_PER_DAY // 24
"""Rows expire at midnight UTC. Those that were received shortly before may still be stored again by
another machine, so one deletion an hour later finds all of them: each rewrites the same parts."""

_POLL_S: Final = 0.2


class PruneSteps(Protocol):
    """The steps of pruning: `pruning.service.PruneSteps`. Blocking, for one thread at a time."""

    def find_expired(self) -> tuple[ExpiredRows, ...]:
        """Return the rows to delete."""
        ...

    def begin(self, expired: Sequence[ExpiredRows]) -> int:
        """Begin to delete them; return how many deletions were lost before."""
        ...

    def is_deleting(self, lost_before: int | None = None) -> bool:
        """Return whether rows that are being deleted may still be read.

        Raises `StoreUnavailable` where deletions were lost since the `begin` that returned it.
        """
        ...


class StorageDescriber(Protocol):
    """Describes what is stored: `pruning.description.StorageDescriber`. As `PruneSteps`."""

    def describe(self, website_id: WebsiteId | None = None) -> tuple[StoredRows, ...]:
        """Return the rows of one website, or of all."""
        ...


class EnginePruning:
    """Runs on one event loop; the steps run on a thread of their own or the loader's.

    `check_may_begin` raises `StoreUnavailable` while a batch is pending or the rows are migrated;
    `forget_results` drops all cached results. Both run on the loader's thread. `close_store` closes
    the connections of the steps.
    """

    def __init__(
        self,
        steps: PruneSteps,
        describer: StorageDescriber,
        *,
        load_loop: LoadLoop,
        check_may_begin: Callable[[], None],
        forget_results: Callable[[], None],
        close_store: Callable[[], None],
        clock: Clock,
        log: Logger,
        first_prune_s: float = FIRST_PRUNE_S,
        interval_s: float = PRUNE_INTERVAL_S,
    ) -> None:
        self._steps = steps
        self._describer = describer
        self._load_loop = load_loop
        self._check_may_begin = check_may_begin
        self._forget_results = forget_results
        self._close_store = close_store
        self._clock = clock
        self._log = log
        self._first_prune_s = first_prune_s
        self._interval_s = interval_s
        self._background = BackgroundSteps("prune")
        self._prune_lock = asyncio.Lock()

    def start(self) -> None:
        """Begin to prune every day."""
        self._background.start(self._run())

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        """Return what is stored of one website, or of all, with everything durable at the call.

        Raises `StoreUnavailable` or `OperatorError`.
        """
        await self._load_loop.barrier()
        return await self._background.to_end(
            self._background.run(partial(self._describer.describe, website_id))
        )

    async def prune(self, *, dry_run: bool = False) -> tuple[ExpiredRows, ...]:
        """Delete all expired rows; return when they are in no part that is read.

        A dry run deletes nothing. A prune that is cancelled goes on in the store. Raises
        `StoreUnavailable` or `OperatorError`.
        """
        return await self._background.to_end(self._prune(dry_run=dry_run))

    async def _prune(self, *, dry_run: bool) -> tuple[ExpiredRows, ...]:
        await self._load_loop.barrier()
        async with self._prune_lock:
            expired = await self._background.run(self._steps.find_expired)
            if dry_run or not expired:
                return expired
            async with self._background.lock:
                lost_before = await self._load_loop.run_exclusive(partial(self._begin, expired))
            await self._until_deleted(lost_before)
        self._log.info("rows_pruned", rows=sum(one.rows for one in expired))
        return expired

    async def close(self) -> None:
        """End after the running step; what was begun goes on at the next start."""
        await self._background.close()
        await asyncio.to_thread(self._close_store)

    def _begin(self, expired: Sequence[ExpiredRows]) -> int:
        self._check_may_begin()
        return self._steps.begin(expired)

    async def _until_deleted(self, lost_before: int | None = None) -> None:
        is_deleting = partial(self._steps.is_deleting, lost_before)
        while await self._background.run(is_deleting):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)  # no store notifies anybody
        # A longer retention would show results again that were cached before.
        await self._load_loop.run_exclusive(self._forget_results)

    async def _run(self) -> None:
        await asyncio.sleep(self._first_prune_s)
        while True:
            if self._clock.now_ms() % MILLISECONDS_PER_DAY >= QUIET_AFTER_MIDNIGHT_MS:
                await self._prune_once()
            await asyncio.sleep(self._interval_s)

    async def _prune_once(self) -> None:
        """Prune when no deletions run: those before a restart, another machine's, an erasure's."""
        try:
            await self._until_deleted()
            await self.prune()
        except (StoreUnavailable, OperatorError) as error:
            self._log.warning("prune_failed", reason=str(error))
        except Exception as error:  # noqa: BLE001 - no error may end the task
            self._log.error("prune_failed", exc_info=error)
