"""Time limits for request bodies that stall or arrive too slowly."""

import asyncio

from msgspec import Struct
from starlette.types import Message, Receive

from headrace.base.errors import RequestTimeout

_SWEEPS_PER_TIMEOUT = 4


class MinThroughput(Struct, frozen=True):
    """The least average throughput of a body that has taken longer than `after_s`.

    A phone with almost no signal still sends several times the default of the settings. A slower
    client only occupies a connection and the memory of what it has sent.
    """

    after_s: float
    bytes_per_s: int


class SlowBodyGuard:
    """Raises `RequestTimeout` for slow bodies; one timer serves all requests of a worker.

    Nearly every body has arrived before the application reads it, and a timer per request would be
    the most expensive part of reading it.
    """

    def __init__(self, timeout_s: float, *, min_throughput: MinThroughput | None = None) -> None:
        """Without `min_throughput` a body may take any time, if it never stalls."""
        self._timeout_s = timeout_s
        self._min_throughput = min_throughput
        self._waiting: dict[asyncio.Task[object], float] = {}
        self._stalled: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def next_message(self, receive: Receive) -> Message:
        """Return the next message of a request; raises `RequestTimeout` when none comes in time.

        The sweep interval makes the effective limit up to a quarter longer than the timeout.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a body can only be received in a task")
        self._waiting[task] = loop.time()
        if self._timer is None:
            self._timer = self._schedule_sweep(loop)
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
        """Raise `RequestTimeout` if `size` bytes since `since_s` are below the least throughput.

        `since_s` is a time of the event loop's clock.
        """
        minimum = self._min_throughput
        if minimum is None:
            return
        elapsed_s = asyncio.get_running_loop().time() - since_s
        if elapsed_s > minimum.after_s and size < elapsed_s * minimum.bytes_per_s:
            raise RequestTimeout

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> asyncio.TimerHandle:
        return loop.call_later(self._timeout_s / _SWEEPS_PER_TIMEOUT, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        latest_s = loop.time() - self._timeout_s
        for task, since_s in self._waiting.items():
            if since_s <= latest_s and task not in self._stalled:
                self._stalled.add(task)
                task.cancel()
        self._timer = self._schedule_sweep(loop) if self._waiting else None
