"""Loads the logs into the store: at intervals, on demand, and again after failures."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from headrace.adapters.engine.ipc.server import EngineServer
from headrace.adapters.event_log.unreadable_logs import describe_unreadable
from headrace.base.clock import Clock, SystemClock
from headrace.base.errors import HeadraceError, StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.event_log import LogOffset, LogReader

LAST_LOAD_TIMEOUT_S: Final = 2.0
"""What is not stored by then stays in the log; the next engine process stores it."""


_MIN_COOLDOWN_S = 0.02
_MAX_COOLDOWN_S = 0.05
"""The pause between two loads, however many selects wait: each load creates parts, which chDB keeps
for minutes, and a small part costs more than 20 ms of CPU. A load of a backlog is worth its cost.
"""

_LONG_LOAD_S = 0.25
"""A load that takes longer has filled large buffers."""

_INITIAL_BACKOFF_S = 0.1
_ResultT = TypeVar("_ResultT")
_Waiter = asyncio.Future[Sequence[str]]
"""Waits for a load; its result are the names of the logs that the load could not read."""
MAX_BACKOFF_S = 10.0

LoadAll = Callable[[], Mapping[str, LogOffset]]
"""Loads everything that is durable, and returns the ends of the logs.

Raises `StoreUnavailable`, also where a log cannot be read."""


class LogLoader(Protocol):
    """Stores the log's records: `ingest.load.Loader`. Blocking, used from one thread."""

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store all records before these offsets; safe to repeat after any failure."""
        ...


def cooldown_s(load_s: float) -> float:
    """Return the pause after a load that took `load_s`, however many selects wait.

    The pause is as long as the load, within limits, so loads on demand take at most half of the
    loader's time: on a busy machine they take longer and come less often.
    """
    return min(max(load_s, _MIN_COOLDOWN_S), _MAX_COOLDOWN_S)


class LoadLoop:
    """Drives a loader on one thread; used from one event loop.

    A load begins `interval_s` after the previous one began, or after that one and its cooldown if
    they take longer: enough records have arrived meanwhile. Queries wait for a load for at most
    `query_wait_s`. `return_memory` is called on the thread when a short load, or none, follows a
    long one: the memory of that is not needed again soon.
    """

    def __init__(
        self,
        *,
        loader: LogLoader,
        log_reader: LogReader,
        interval_s: float,
        query_wait_s: float,
        log: Logger,
        max_backoff_s: float = MAX_BACKOFF_S,
        cooldown: Callable[[float], float] = cooldown_s,
        clock: Clock | None = None,
        return_memory: Callable[[], None] = lambda: None,
    ) -> None:
        self._loader = loader
        self._log_reader = log_reader
        self._interval_s = interval_s
        self._query_wait_s = query_wait_s
        self._max_backoff_s = max_backoff_s
        self._cooldown = cooldown
        self._clock = clock or SystemClock()
        self._return_memory = return_memory
        self._keeps_memory = False
        self._log = log
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._waiters: list[_Waiter] = []
        self._load_requested = asyncio.Event()
        self._loaded: Mapping[str, LogOffset] | None = None
        self._unreadable: Sequence[str] = ()  # the logs that the last load could not read
        self._is_failing = False
        self._load_began_s: float | None = None

    @property
    def is_caught_up(self) -> bool:
        """Whether queries wait for no load in vain: False before the first one has succeeded."""
        has_loaded = self._loaded is not None and not self._is_failing and not self._is_late
        return has_loaded and not self._unreadable and not self._log_reader.unreadable()

    @property
    def _is_late(self) -> bool:
        """Whether the running load takes longer than queries wait for it, as on a hung server."""
        if self._load_began_s is None:
            return False
        return self._clock.monotonic_s() - self._load_began_s > self._query_wait_s

    async def barrier(self) -> None:
        """Return when everything that was durable at the call and can be read is in the store.

        Callers that arrive during a load share the next one. Cancelling a caller stops no load.
        Raises `StoreUnavailable` when the load fails.
        """
        await self._wait_for_load()

    async def complete_barrier(self) -> None:
        """Return when everything that was durable at the call is in the store.

        As `barrier`, but also raises `StoreUnavailable` when a log could not be read: what is
        missing then may be any event.
        """
        if unreadable := await self._wait_for_load():
            raise StoreUnavailable(describe_unreadable(unreadable))

    async def run_exclusive(self, work: Callable[[], _ResultT]) -> _ResultT:
        """Run `work` on the loader's thread, so that nothing is loaded meanwhile.

        Returns what `work` returns, raises what it raises. Cancelling the caller does not stop
        `work` once it runs.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def run_loaded(self, work: Callable[[LoadAll], _ResultT]) -> _ResultT:
        """Run `work` on the loader's thread with what loads everything; see `run_exclusive`.

        No batch is pending after that. Raises what `work` raises.
        """
        return await self.run_exclusive(lambda: work(self._load_all))

    def _load_all(self) -> Mapping[str, LogOffset]:
        ends = dict(self._log_reader.durable_offsets())
        if unreadable := self._log_reader.unreadable():
            raise StoreUnavailable(describe_unreadable(unreadable))
        try:
            self._loader.load_until(ends)
        except Exception as error:
            self._log_failure(error)
            raise _not_stored(error) from error
        return ends

    async def run(self) -> None:
        """Load until cancelled; a running load then goes on, and `finish` waits for it."""
        backoff_s = _INITIAL_BACKOFF_S
        while True:
            began_s = self._clock.monotonic_s()
            has_new_records = await self._load()
            if self._is_failing:
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, self._max_backoff_s)
                continue
            backoff_s = _INITIAL_BACKOFF_S
            load_s = self._clock.monotonic_s() - began_s
            if has_new_records:
                await self._cool_down(self._cooldown(load_s))
            await self._return_unused_memory(load_s)
            await self._wait(began_s + self._interval_s - self._clock.monotonic_s())

    async def _return_unused_memory(self, load_s: float) -> None:
        if self._keeps_memory and load_s < _LONG_LOAD_S:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._return_memory)
        self._keeps_memory = load_s >= _LONG_LOAD_S

    async def finish(self, *, timeout_s: float) -> bool:
        """Load what is durable, after `run` has ended. Return whether that succeeded in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._load()
        except TimeoutError:
            return False
        return not self._is_failing

    def close(self) -> None:
        """Wait for the thread to end. The writer must have been requested to stop before."""
        self._thread.shutdown()

    async def _wait_for_load(self) -> Sequence[str]:
        """Wait for a load that begins after the call; return the logs that it could not read."""
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._load_requested.set()
        return await waiter

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._load_requested.wait()

    async def _cool_down(self, seconds: float) -> None:
        """Load nothing for this time, but release barriers that have nothing to load at once."""
        until_s = asyncio.get_running_loop().time() + seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until_s):
                await self._load_requested.wait()
                while await self._wake_if_all_loaded():
                    await self._load_requested.wait()
        await asyncio.sleep(until_s - asyncio.get_running_loop().time())

    async def _wake_if_all_loaded(self) -> bool:
        self._load_requested.clear()
        waiters, self._waiters = self._waiters, []
        is_loaded = False
        try:
            is_loaded = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._is_all_loaded
            )
        finally:
            if is_loaded:
                _wake(waiters, self._unreadable)
            else:
                self._waiters = [*waiters, *self._waiters]
                self._load_requested.set()
        return is_loaded

    def _is_all_loaded(self) -> bool:
        try:
            ends = dict(self._log_reader.durable_offsets())
            return ends == self._loaded and self._unreadable == self._log_reader.unreadable()
        except Exception:  # noqa: BLE001 - the next load meets it, too, and logs it
            return False

    async def _load(self) -> bool:
        """Load once and release the waiting barriers; return whether there were new records."""
        self._load_requested.clear()
        waiters, self._waiters = self._waiters, []
        loop = asyncio.get_running_loop()
        self._load_began_s = self._clock.monotonic_s()
        try:
            has_new_records = await loop.run_in_executor(self._thread, self._load_durable)
        except asyncio.CancelledError:
            self._waiters = [*waiters, *self._waiters]  # the next load releases them
            raise
        except Exception as error:  # noqa: BLE001 - no error may end the load loop
            self._record_failure(error, waiters)
            return False
        finally:
            self._load_began_s = None
        self._is_failing = False
        _wake(waiters, self._unreadable)
        return has_new_records

    def _record_failure(self, error: Exception, waiters: list[_Waiter]) -> None:
        self._is_failing = True
        self._log_failure(error)
        _wake(waiters, _not_stored(error))

    def _log_failure(self, error: Exception) -> None:
        """Log why a load failed; of an error that nobody foresaw, also where it was raised."""
        if isinstance(error, HeadraceError):
            self._log.error("load_failed", reason=str(error))
        else:
            self._log.error("load_failed", exc_info=error)

    def _load_durable(self) -> bool:
        ends = dict(self._log_reader.durable_offsets())
        # Noted here and not when a barrier resumes: the next load may have read the log by then.
        unreadable = self._log_reader.unreadable()
        has_new_records = ends != self._loaded
        if has_new_records:
            self._loader.load_until(ends)
        self._loaded, self._unreadable = ends, unreadable
        return has_new_records


def _not_stored(error: Exception) -> StoreUnavailable:
    """Return the error for those who wait for a load that failed."""
    reason = f": {error}" if isinstance(error, HeadraceError) else ""
    return StoreUnavailable(f"earlier events cannot be stored now{reason}")


def _wake(waiters: list[_Waiter], result: Sequence[str] | Exception) -> None:
    for waiter in waiters:
        if waiter.done():
            continue  # its caller was cancelled
        if isinstance(result, Exception):
            waiter.set_exception(result)
        else:
            waiter.set_result(result)


async def run_until_stopped(
    stop: asyncio.Event,
    *,
    load_loop: LoadLoop,
    server: EngineServer,
    timeout_s: float,
    log: Logger,
) -> None:
    """Load until `stop` is set, then close the server and store what is durable, in this time."""
    running = asyncio.create_task(load_loop.run())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await server.close()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running  # raises if the loop ended by itself, which would be a bug
    if not await load_loop.finish(timeout_s=timeout_s):
        log.warning("left_in_the_log")
