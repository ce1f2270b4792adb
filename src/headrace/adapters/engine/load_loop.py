"""Keeps the store up with the log: loads at intervals, at once when asked, again after failures."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from headrace.adapters.engine.ipc.server import EngineServer
from headrace.base.clock import Clock, SystemClock
from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import Logger
from headrace.ports.event_log import LogPosition, LogReader

LAST_LOAD_TIMEOUT_S: Final = 2.0
"""What is not stored by then stays in the log, and the next engine stores it."""


_LEAST_SPACING_S = 0.02
_MOST_SPACING_S = 0.05
"""Between two loads, however many selects ask: each makes parts, which are kept for minutes, and a
small one costs more than 20 ms of a core. One of a backlog is worth its cost.
"""

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0


class Loads(Protocol):
    """What stores the log's records: `ingest.load.Loader`. Blocking, used from one thread."""

    def load_until(self, ends: Mapping[str, LogPosition]) -> object:
        """Store everything before these places; safe to repeat after any failure."""
        ...


def spacing_s(load_s: float) -> float:
    """Return how long to wait after a load that took so long, however many selects ask.

    As long again, so that loads on demand take at most half of the loader's time: they take longer
    where the machine is busy, and then come less often.
    """
    return min(max(load_s, _LEAST_SPACING_S), _MOST_SPACING_S)


class LoadLoop:
    """Drives a loader on one thread; used from one event loop.

    From the beginning of a load to that of the next are `interval_s`, or as long as the load and
    its rest take: a load that takes longer has gathered enough meanwhile.
    """

    def __init__(
        self,
        *,
        loader: Loads,
        log_reader: LogReader,
        interval_s: float,
        log: Logger,
        longest_pause_s: float = _LONGEST_PAUSE_S,
        rest_s: Callable[[float], float] = spacing_s,
        clock: Clock | None = None,
    ) -> None:
        self._loader = loader
        self._log_reader = log_reader
        self._interval_s = interval_s
        self._longest_pause_s = longest_pause_s
        self._rest_s = rest_s
        self._clock = clock or SystemClock()
        self._log = log
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._waiters: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._loaded: Mapping[str, LogPosition] | None = None
        self._is_failing = False

    @property
    def is_current(self) -> bool:
        """Whether the last load stored all there was; False until the first one has."""
        has_loaded = self._loaded is not None and not self._is_failing
        return has_loaded and not self._log_reader.unreadable()

    async def barrier(self) -> None:
        """Return when everything that was durable at the call is in the store.

        Callers that come while a load runs share the next one. Cancelling a caller stops nothing.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wanted.set()
        await waiter

    async def between_loads(self, work: Callable[[], None]) -> None:
        """Run something on the loader's thread, so that nothing is loaded meanwhile.

        Raises what it raises. Once it has begun it goes on, whatever becomes of the caller.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def run(self) -> None:
        """Load until cancelled; a running load then goes on, and `finish` waits for it."""
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = self._clock.monotonic_s()
            something_new = await self._load()
            if self._is_failing:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, self._longest_pause_s)
                continue
            pause_s = _FIRST_PAUSE_S
            if something_new:
                await self._rest(self._rest_s(self._clock.monotonic_s() - began_s))
            await self._wait(began_s + self._interval_s - self._clock.monotonic_s())

    async def finish(self, *, timeout_s: float) -> bool:
        """Load what is durable, once `run` has ended. Tells whether it was done in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._load()
        except TimeoutError:
            return False
        return not self._is_failing

    def close(self) -> None:
        """Wait for the thread to end. What it runs must be ending: see `ChdbWriter.refuse`."""
        self._thread.shutdown()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()

    async def _rest(self, seconds: float) -> None:
        """Load nothing for so long, but keep nobody waiting for whom there is nothing to load."""
        until_s = asyncio.get_running_loop().time() + seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until_s):
                await self._wanted.wait()
                while await self._wake_if_all_is_loaded():
                    await self._wanted.wait()
        await asyncio.sleep(until_s - asyncio.get_running_loop().time())

    async def _wake_if_all_is_loaded(self) -> bool:
        self._wanted.clear()
        waiters, self._waiters = self._waiters, []
        is_loaded = False
        try:
            is_loaded = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._is_all_loaded
            )
        finally:
            if is_loaded:
                _wake(waiters, None)
            else:
                self._waiters = [*waiters, *self._waiters]
                self._wanted.set()
        return is_loaded

    def _is_all_loaded(self) -> bool:
        try:
            return dict(self._log_reader.durable_ends()) == self._loaded
        except Exception:  # noqa: BLE001 - the next load meets it too, and tells
            return False

    async def _load(self) -> bool:
        """Load once and wake who waits for it; tell whether there was something to load."""
        self._wanted.clear()
        waiters, self._waiters = self._waiters, []
        loop = asyncio.get_running_loop()
        try:
            something_new = await loop.run_in_executor(self._thread, self._load_durable)
        except asyncio.CancelledError:
            self._waiters = [*waiters, *self._waiters]  # the next load is theirs too
            raise
        except Exception as error:  # noqa: BLE001 - nothing that happens here may end the loading
            self._note_failure(error, waiters)
            return False
        self._is_failing = False
        _wake(waiters, None)
        return something_new

    def _note_failure(self, error: Exception, waiters: list[asyncio.Future[None]]) -> None:
        self._is_failing = True
        self._log.error("load_failed", exc_info=error)
        _wake(waiters, StoreUnavailable("what came before cannot be stored now"))

    def _load_durable(self) -> bool:
        ends = dict(self._log_reader.durable_ends())
        if ends == self._loaded:
            return False
        self._loader.load_until(ends)
        self._loaded = ends
        return True


def _wake(waiters: list[asyncio.Future[None]], error: Exception | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue  # its caller went away
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)


async def load_until(
    stop: asyncio.Event, *, loading: LoadLoop, server: EngineServer, log: Logger
) -> None:
    """Load until `stop` is set, then close the server and store what is durable."""
    running = asyncio.create_task(loading.run())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await server.close()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running  # raises where it ended by itself, which it never should
    if not await loading.finish(timeout_s=LAST_LOAD_TIMEOUT_S):
        log.warning("left_in_the_log")
