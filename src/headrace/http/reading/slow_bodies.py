"""Ending the wait for bodies that bring nothing, or next to nothing for a long time."""

import asyncio
import math

from starlette.types import Message, Receive

from headrace.base.errors import RequestTimeout

_SWEEPS_PER_TIMEOUT = 4


class SlowBodyGuard:
    """Watches all calls that wait for a piece of their body, with one timer for all of them.

    Nearly every body is there already when it is asked for, and a timer for each would be the
    dearest part of reading it.
    """

    def __init__(
        self, timeout_s: float, *, slow_after_s: float = math.inf, min_bytes_per_s: int = 0
    ) -> None:
        self._timeout_s = timeout_s
        self._slow_after_s = slow_after_s
        self._min_bytes_per_s = min_bytes_per_s
        self._waiting: dict[asyncio.Task[object], float] = {}
        self._stalled: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def next_message(self, receive: Receive) -> Message:
        """Return the next message of a call; raises `RequestTimeout` when none comes in time.

        The time is the timeout, and up to a quarter of it more.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a body can only be waited for in a task")
        self._waiting[task] = loop.time()
        if self._timer is None:
            self._timer = self._next_sweep(loop)
        try:
            return await receive()
        except asyncio.CancelledError:
            if task not in self._stalled or task.uncancel() > 0:
                raise
            raise RequestTimeout from None
        finally:
            del self._waiting[task]
            self._stalled.discard(task)

    def check_throughput(self, since_s: float, size: int) -> None:
        """Raise `RequestTimeout` where a body comes since then, for long, and brought too little.

        A phone with hardly any signal sends several times the least; who sends less keeps a
        connection and what it has brought for nothing. `since_s` is of the event loop's clock.
        """
        taken_s = asyncio.get_running_loop().time() - since_s
        if taken_s > self._slow_after_s and size < taken_s * self._min_bytes_per_s:
            raise RequestTimeout

    def _next_sweep(self, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        return loop.call_later(self._timeout_s / _SWEEPS_PER_TIMEOUT, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        latest_s = loop.time() - self._timeout_s
        for task, since_s in self._waiting.items():
            if since_s <= latest_s and task not in self._stalled:
                self._stalled.add(task)
                task.cancel()
        self._timer = self._next_sweep(loop) if self._waiting else None
