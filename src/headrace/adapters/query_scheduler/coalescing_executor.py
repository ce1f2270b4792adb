"""Schedules all selects of a machine: equal selects share one run, each website gets its turn.

It does not depend on a store: how a select runs, how to wait for loading, and the version of a
website's rows are passed in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.versions import Version
from headrace.base.errors import QueryTimedOut, StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.ports.store import QueryLimits

ResultT = TypeVar("ResultT")

_MIN_RUN_S = 0.001
_MIN_RETRY_GAIN_S = 0.5
"""A run that timed out is repeated if the new one has at least this much more time."""


Run = Callable[[QueryLimits], Coroutine[Any, Any, ResultT]]
"""Runs a select within limits. Cancelled, it returns once the select has ended in the store."""

LoadBarrier = Callable[[], Awaitable[None]]
"""Returns when selects that start afterwards see everything acknowledged before the call."""


class ResultStore(Protocol[ResultT]):
    """Stores results by query and version: `ResultCache`."""

    def get(self, key: QueryKey, version: Version) -> ResultT | None:
        """Return the result for this version of the rows, or None."""
        ...

    def put(self, key: QueryKey, version: Version, result: ResultT) -> None:
        """Store the result for this version of the rows."""
        ...


class VersionSource(Protocol):
    """Tracks versions of rows: `DataVersions`."""

    def version_of(self, website: str) -> Version | None:
        """Return the version of a website's rows; None while they change or if it is unknown."""
        ...


class NoVersions:
    """For a store with other writers: a result may be out of date at any time."""

    def version_of(self, website: str) -> Version | None:  # noqa: ARG002 - the same for all
        """Return None."""
        return None


class Executed(Struct, Generic[ResultT], frozen=True):
    """The result of a select, and whether it was cached."""

    result: ResultT
    cached: bool


class StartedRun(Struct, frozen=True):
    """A run that has its slot: the version of the rows that it reads, and the time it has."""

    version: Version | None
    budget_s: float


class InFlight(Generic[ResultT]):
    """A select that is queued (`started` is None) or runs, with the number of its waiters."""

    def __init__(self, key: QueryKey) -> None:
        self.key = key
        self.waiters = 0
        self.deadline_s = 0.0  # the latest of its waiters' deadlines
        self.left_queue = asyncio.Event()  # the run has started, or ended before it could start
        self.started: StartedRun | None = None
        self.task: asyncio.Task[ResultT]


class CoalescingExecutor(Generic[ResultT]):
    """Executes selects; for one event loop and many tasks.

    A select waits at most `wait_timeout_s` for loading and for its slot. Its deadline counts from
    its arrival.
    """

    def __init__(
        self,
        *,
        slots: FairSemaphore,
        load_barrier: LoadBarrier,
        versions: VersionSource,
        cache: ResultStore[ResultT] | None,
        wait_timeout_s: float,
        metrics: Metrics,
    ) -> None:
        self._slots = slots
        self._load_barrier = load_barrier
        self._versions = versions
        self._cache = cache
        self._wait_timeout_s = wait_timeout_s
        self._metrics = metrics
        self._in_flight: dict[QueryKey, InFlight[ResultT]] = {}
        self._tasks: set[asyncio.Task[ResultT]] = set()

    async def execute(self, key: QueryKey, run: Run[ResultT]) -> Executed[ResultT]:
        """Return the result over everything acknowledged before the call.

        `run` is called, with what remains of the limits, if no other run and no cached result
        can serve the select.

        Raises `QueryTimedOut` past the deadline, `StoreUnavailable` when no slot is free in time
        or the queue is full, and what the run raises. Cancelling the last waiter of a run cancels
        the run.
        """
        now_s = asyncio.get_running_loop().time()
        wait_deadline_s = now_s + self._wait_timeout_s
        deadline_s = now_s + key.limits.timeout_s
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._wait(self._load_barrier(), wait_deadline_s, "loading")
                cached = self._cached_result(key)
                if cached is not None:
                    self._metrics.count("headrace_selects_total", 1, "cached")
                    return Executed(cached, cached=True)
                in_flight = self._join_or_start(key, run)
                try:
                    result = await self._join(in_flight, wait_deadline_s, deadline_s)
                    return Executed(result, cached=False)
                except QueryTimedOut:
                    if not _is_retry_worthwhile(in_flight, deadline_s):
                        raise
                # The run started before this select joined it, with the earlier deadline of others.
                in_flight = self._join_or_start(key, run)
                result = await self._join(in_flight, deadline_s, deadline_s)
                return Executed(result, cached=False)
        except TimeoutError as error:
            raise QueryTimedOut("Query timed out") from error

    async def close(self) -> None:
        """Cancel all runs and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self, step: Awaitable[object], wait_deadline_s: float, reason: str) -> None:
        wait_timeout = asyncio.timeout_at(wait_deadline_s)
        try:
            async with wait_timeout:
                await step
        except TimeoutError as error:
            if not wait_timeout.expired():
                raise
            self._metrics.count("headrace_selects_refused_total", 1, reason)
            raise StoreUnavailable(_REASONS[reason]) from error

    def _cached_result(self, key: QueryKey) -> ResultT | None:
        version = self._versions.version_of(key.website_id)
        if version is None or self._cache is None:
            return None
        return self._cache.get(key, version)

    async def _join(
        self, in_flight: InFlight[ResultT], wait_deadline_s: float, deadline_s: float
    ) -> ResultT:
        in_flight.waiters += 1
        in_flight.deadline_s = max(in_flight.deadline_s, deadline_s)
        try:
            await self._wait(in_flight.left_queue.wait(), wait_deadline_s, "turn")
            return await asyncio.shield(in_flight.task)
        finally:
            in_flight.waiters -= 1
            if not in_flight.waiters:
                self._retire(in_flight)
                in_flight.task.cancel()

    def _join_or_start(self, key: QueryKey, run: Run[ResultT]) -> InFlight[ResultT]:
        """Return a run that sees all rows loaded by now: one in flight, or a new one."""
        in_flight = self._in_flight.get(key)
        if in_flight is not None and self._is_up_to_date(in_flight):
            self._metrics.count("headrace_selects_total", 1, "shared")
            return in_flight
        in_flight = self._in_flight[key] = InFlight(key)
        in_flight.task = asyncio.create_task(self._run(in_flight, run))
        self._tasks.add(in_flight.task)
        in_flight.task.add_done_callback(self._on_run_done)
        return in_flight

    def _is_up_to_date(self, in_flight: InFlight[ResultT]) -> bool:
        """Return whether a run sees all current rows: it is still queued, or no row changed."""
        if in_flight.started is None:
            return True
        version = self._versions.version_of(in_flight.key.website_id)
        return version is not None and version == in_flight.started.version

    async def _run(self, in_flight: InFlight[ResultT], run: Run[ResultT]) -> ResultT:
        key = in_flight.key
        try:
            async with self._slots.acquire(key.website_id):
                started = in_flight.started = StartedRun(
                    version=self._versions.version_of(key.website_id),
                    budget_s=max(_remaining_s(in_flight.deadline_s), _MIN_RUN_S),
                )
                in_flight.left_queue.set()
                self._metrics.count("headrace_selects_total", 1, "run")
                result = await run(_remaining_limits(key.limits, started))
        finally:
            in_flight.left_queue.set()
            self._retire(in_flight)
        self._cache_result(key, started, result)
        return result

    def _cache_result(self, key: QueryKey, started: StartedRun, result: ResultT) -> None:
        """Cache a result unless rows changed during the run: its version would be unknown."""
        version = self._versions.version_of(key.website_id)
        if self._cache is not None and version is not None and version == started.version:
            self._cache.put(key, version, result)

    def _retire(self, in_flight: InFlight[ResultT]) -> None:
        """Stop later selects from joining a run; a newer run of the same key is left alone."""
        if self._in_flight.get(in_flight.key) is in_flight:
            del self._in_flight[in_flight.key]

    def _on_run_done(self, task: asyncio.Task[ResultT]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved: all waiters may have been cancelled


_REASONS = {
    "loading": "the engine is still loading earlier events",
    "turn": "too many queries are running",
}


def _remaining_s(deadline_s: float) -> float:
    return deadline_s - asyncio.get_running_loop().time()


def _is_retry_worthwhile(in_flight: InFlight[ResultT], deadline_s: float) -> bool:
    """Return whether a new run would have clearly more time than the one that timed out."""
    if in_flight.started is None:
        return False
    return _remaining_s(deadline_s) >= in_flight.started.budget_s + _MIN_RETRY_GAIN_S


def _remaining_limits(limits: QueryLimits, started: StartedRun) -> QueryLimits:
    return QueryLimits(
        timeout_s=started.budget_s,
        max_memory_bytes=limits.max_memory_bytes,
        max_rows=limits.max_rows,
    )
