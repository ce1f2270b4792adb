"""Where all selects of a machine meet: equal ones share a run, each website gets its turn.

Knows no store: it is given what runs a select, what waits for loading, and what tells the version
of a website's rows.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.versions import Version
from headrace.base.errors import QueryTimedOut, StoreUnavailable
from headrace.base.telemetry import Metrics
from headrace.ports.store import QueryLimits

ResultT = TypeVar("ResultT")

_MIN_RUN_S = 0.001
_MIN_RETRY_GAIN_S = 0.5
"""So much more time than a run had that timed out is worth another one."""


Run = Callable[[QueryLimits], Coroutine[Any, Any, ResultT]]
"""Runs a select within guards. Cancelled, it returns when the select has ended in the store."""

LoadBarrier = Callable[[], Awaitable[None]]
"""Returns when everything acknowledged before the call is seen by selects that begin then."""


class ResultStore(Protocol[ResultT]):
    """Keeps answers by question and version: `ResultCache`."""

    def get(self, key: QueryKey, version: Version) -> ResultT | None:
        """Return the answer over this version of the rows."""
        ...

    def put(self, key: QueryKey, version: Version, result: ResultT) -> None:
        """Keep an answer over this version of the rows."""
        ...


class VersionSource(Protocol):
    """Tells versions of rows: `DataVersions`."""

    def version_of(self, website: str) -> Version | None:
        """Return the version of a website's rows; None while they change, or if nobody knows."""
        ...


class NoVersions:
    """For a store that others write to as well: what was seen may be old at once."""

    def version_of(self, website: str) -> Version | None:  # noqa: ARG002 - nobody knows of any
        """Return None."""
        return None


class InFlight(Generic[ResultT]):
    """One run, waiting or begun, and how many wait for its answer."""

    def __init__(self, key: QueryKey) -> None:
        self.key = key
        self.waiters = 0
        self.deadline_s = 0.0
        self.budget_s = math.inf  # what the run may take, once it has begun
        self.turn = asyncio.Event()  # it has begun, or has ended before it could
        self.has_begun = False
        self.version: Version | None = None
        self.task: asyncio.Task[ResultT]


class CoalescingExecutor(Generic[ResultT]):
    """Answers questions; for one event loop and many tasks.

    A question waits for loading and for its turn at most `wait_timeout_s`, and its deadline counts
    from its arrival.
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

    async def execute(self, key: QueryKey, run: Run[ResultT]) -> ResultT:
        """Return the answer over everything acknowledged before the call.

        `run` gives it where nobody else has it. It is called with what is left of the guards.

        Raises `QueryTimedOut` past the deadline, `StoreUnavailable` where the turn does not come
        in time or too many wait, and what the run raises. Cancelling the caller ends the run when
        nobody else waits for it.
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
                    return cached
                in_flight = self._join_or_start(key, run)
                try:
                    return await self._join(in_flight, wait_deadline_s, deadline_s)
                except QueryTimedOut:
                    if _remaining_s(deadline_s) < in_flight.budget_s + _MIN_RETRY_GAIN_S:
                        raise
                # It had waited for its turn longer than who came after it had begun.
                return await self._join(self._join_or_start(key, run), deadline_s, deadline_s)
        except TimeoutError as error:
            raise QueryTimedOut("Query timed out") from error

    async def close(self) -> None:
        """End all runs and wait until they have ended."""
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
            await self._wait(in_flight.turn.wait(), wait_deadline_s, "turn")
            return await asyncio.shield(in_flight.task)
        finally:
            in_flight.waiters -= 1
            if not in_flight.waiters:
                self._retire(in_flight)
                in_flight.task.cancel()

    def _join_or_start(self, key: QueryKey, run: Run[ResultT]) -> InFlight[ResultT]:
        """Return a run that sees everything that is loaded now: under way, or a new one."""
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
        """Tell whether nothing has changed since a run began: one that has not will see all."""
        if not in_flight.has_begun:
            return True
        version = self._versions.version_of(in_flight.key.website_id)
        return version is not None and version == in_flight.version

    async def _run(self, in_flight: InFlight[ResultT], run: Run[ResultT]) -> ResultT:
        key = in_flight.key
        try:
            async with self._slots.acquire(key.website_id):
                in_flight.version = self._versions.version_of(key.website_id)
                in_flight.has_begun = True
                in_flight.turn.set()
                self._metrics.count("headrace_selects_total", 1, "run")
                in_flight.budget_s = max(_remaining_s(in_flight.deadline_s), _MIN_RUN_S)
                result = await run(_remaining_limits(in_flight))
        finally:
            in_flight.turn.set()
            self._retire(in_flight)
        self._cache_result(in_flight, result)
        return result

    def _cache_result(self, in_flight: InFlight[ResultT], result: ResultT) -> None:
        """Keep an answer of which it is sure which version of the rows it shows."""
        version = self._versions.version_of(in_flight.key.website_id)
        if self._cache is not None and version is not None and version == in_flight.version:
            self._cache.put(in_flight.key, version, result)

    def _retire(self, in_flight: InFlight[ResultT]) -> None:
        """Let nobody board a run any more; a newer one may have taken its place."""
        if self._in_flight.get(in_flight.key) is in_flight:
            del self._in_flight[in_flight.key]

    def _on_run_done(self, task: asyncio.Task[ResultT]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # all who waited may be gone, and nobody else looks


_REASONS = {
    "loading": "the engine is still storing what came before",
    "turn": "too many queries are running",
}


def _remaining_s(deadline_s: float) -> float:
    return deadline_s - asyncio.get_running_loop().time()


def _remaining_limits(in_flight: InFlight[ResultT]) -> QueryLimits:
    limits = in_flight.key.limits
    return QueryLimits(
        timeout_s=in_flight.budget_s,
        max_memory_bytes=limits.max_memory_bytes,
        max_rows=limits.max_rows,
    )
