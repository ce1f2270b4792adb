"""Slots of concurrent selects, shared so that no website can starve the others."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator

from msgspec import Struct

from headrace.base.errors import StoreUnavailable
from headrace.base.metrics import Metrics


class SlotLimits(Struct, frozen=True):
    """How many selects may run at once, be queued in all, and be queued for one website."""

    slots: int
    max_queued: int
    max_queued_per_website: int


class FairSemaphore:
    """A semaphore for one event loop that serves websites in turn.

    A free slot goes to the website that uses the fewest; of equal ones, to the one that was served
    least recently. The last free slot is reserved for a website that uses none: with two or more
    slots, a newcomer gets one at once however many selects of another website run and wait. When
    the queue is full, the website with the longest queue loses its newest waiter.
    """

    def __init__(self, limits: SlotLimits, *, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._acquired: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}  # least recently served first
        self._queued_count = 0
        self._update_gauges()  # overwrite the values of an earlier process that was killed

    @contextlib.asynccontextmanager
    async def acquire(self, website: str) -> AsyncGenerator[None]:
        """Wait for a slot and use it; raises `StoreUnavailable` when the queue is full."""
        await self._acquire(website)
        try:
            yield
        finally:
            self._release(website)

    async def _acquire(self, website: str) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(website, deque()).append(waiter)
        self._queued_count += 1
        self._grant()
        if not waiter.done():
            self._shed_excess(website)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._dequeue(website, waiter)
            elif waiter.exception() is None:  # it has a slot, and was not shed
                self._release(website)
            raise

    def _shed_excess(self, newcomer: str) -> None:
        if len(self._queues[newcomer]) > self._limits.max_queued_per_website:
            greedy = newcomer
        elif self._queued_count > self._limits.max_queued:
            greedy = max(self._queues, key=lambda name: (len(self._queues[name]), name == newcomer))
        else:
            return
        waiter = self._queues[greedy][-1]
        self._dequeue(greedy, waiter)
        if not waiter.done():  # it may be cancelled already
            self._metrics.count("headrace_selects_refused_total", 1, "full")
            waiter.set_exception(StoreUnavailable("too many queries are waiting"))

    def _dequeue(self, website: str, waiter: asyncio.Future[None]) -> None:
        queue = self._queues.get(website, deque())
        if waiter not in queue:
            return  # it was granted a slot after its cancellation, before it ran again
        queue.remove(waiter)
        if not queue:
            del self._queues[website]
        self._queued_count -= 1
        self._update_gauges()

    def _release(self, website: str) -> None:
        self._acquired[website] -= 1
        if not self._acquired[website]:
            del self._acquired[website]
        self._grant()

    def _grant(self) -> None:
        while (website := self._next_website()) is not None:
            queue = self._queues.pop(website)
            waiter = queue.popleft()
            if queue:
                self._queues[website] = queue
            self._queued_count -= 1
            if waiter.cancelled():
                continue
            self._acquired[website] += 1
            waiter.set_result(None)
        self._update_gauges()

    def _next_website(self) -> str | None:
        free = self._limits.slots - self._acquired.total()
        website = min(self._queues, key=lambda name: self._acquired[name], default=None)
        if website is None or not free or (free == 1 and self._acquired[website]):
            return None
        return website

    def _update_gauges(self) -> None:
        self._metrics.set("headrace_selects_waiting", self._queued_count)
        self._metrics.set("headrace_selects_running", self._acquired.total())


class SchedulerLimits(Struct, frozen=True):
    """What all selects may use together; a select waits at most `wait_timeout_s` for a slot."""

    slots: SlotLimits
    wait_timeout_s: float
    cache_bytes: int
