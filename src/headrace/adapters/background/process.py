"""A process for long computations. It starts at the first one and ends when it is not needed."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Final

from headrace.base.errors import Unavailable
from headrace.ports.background import ArgumentT, ResultT

_IDLE_TIMEOUT_S: Final = 60.0
_NICENESS: Final = 10


class PooledProcess:
    """A `BackgroundProcess` of its own priority, below that of the event loop's process."""

    def __init__(self, *, idle_timeout_s: float = _IDLE_TIMEOUT_S) -> None:
        self._idle_timeout_s = idle_timeout_s
        self._pool: ProcessPoolExecutor | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._running = 0

    async def run(self, function: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
        """Run a function in the process; see the port."""
        pool = self._pool = self._pool or _start_pool()
        self._running += 1
        try:
            return await asyncio.wrap_future(pool.submit(function, argument))
        except BrokenProcessPool as error:
            if self._pool is pool:
                self.close()
            raise Unavailable("a background process has ended", retry_after_s=1) from error
        finally:
            self._running -= 1
            self._schedule_end()

    def close(self) -> None:
        """End the process after what it is running. A later call starts another."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _schedule_end(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        loop = asyncio.get_running_loop()
        self._idle_timer = loop.call_later(self._idle_timeout_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._running:
            self.close()


def _start_pool() -> ProcessPoolExecutor:
    # A fork would copy the event loop, its sockets and the locks of other threads.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_start_process)


def _start_process() -> None:
    """Prepare the process: the parent decides on its end, signals to the group do not."""
    os.nice(_NICENESS)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()


def _exit_with(sentinel: int) -> None:
    """Exit when the parent has ended, even by SIGKILL. Nothing here needs a cleanup."""
    wait([sentinel])
    os._exit(1)
