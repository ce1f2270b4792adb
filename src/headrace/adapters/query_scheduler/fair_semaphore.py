"""Hands out the places of selects that run at once, so that no website can keep others out."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator

from msgspec import Struct

from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import Metrics


class PlaceBounds(Struct, frozen=True):
    """How many selects run at once, wait in all, and wait of one website."""

    places: int
    max_waiting: int
    max_waiting_of_website: int


class FairPlaces:
    """Places for one event loop.

    The website that holds the fewest places is next, of equal ones the one that was served longest
    ago. The last free place is kept for a website that holds none: so where there are two or more,
    a newcomer finds one however many selects of another website run and wait. Where too many wait,
    the website that has the most of them loses the last one that came.
    """

    def __init__(self, bounds: PlaceBounds, *, metrics: Metrics) -> None:
        self._bounds = bounds
        self._metrics = metrics
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # who was served goes last
        self._waiting_count = 0
        self._show()  # or the metrics would tell of those of a process that was killed

    @contextlib.asynccontextmanager
    async def held(self, website: str) -> AsyncGenerator[None]:
        """Wait for a place and hold it; raises `StoreUnavailable` where too many wait already."""
        await self._take(website)
        try:
            yield
        finally:
            self._give_back(website)

    async def _take(self, website: str) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(website, deque()).append(waiter)
        self._waiting_count += 1
        self._hand_out()
        if not waiter.done():
            self._turn_away_who_is_too_many(website)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._leave(website, waiter)
            else:
                self._give_back(website)
            raise

    def _turn_away_who_is_too_many(self, newcomer: str) -> None:
        if len(self._waiting[newcomer]) > self._bounds.max_waiting_of_website:
            greedy = newcomer
        elif self._waiting_count > self._bounds.max_waiting:
            greedy = max(
                self._waiting, key=lambda name: (len(self._waiting[name]), name == newcomer)
            )
        else:
            return
        waiter = self._waiting[greedy][-1]
        self._leave(greedy, waiter)
        if not waiter.done():  # or it is leaving already
            self._metrics.count("headrace_selects_refused_total", 1, "full")
            waiter.set_exception(StoreUnavailable("too many queries are waiting"))

    def _leave(self, website: str, waiter: asyncio.Future[None]) -> None:
        queue = self._waiting.get(website, deque())
        if waiter not in queue:
            return  # its turn came after it was cancelled and before it could tell
        queue.remove(waiter)
        if not queue:
            del self._waiting[website]
        self._waiting_count -= 1
        self._show()

    def _give_back(self, website: str) -> None:
        self._held[website] -= 1
        if not self._held[website]:
            del self._held[website]
        self._hand_out()

    def _hand_out(self) -> None:
        while (website := self._next()) is not None:
            queue = self._waiting.pop(website)
            waiter = queue.popleft()
            if queue:
                self._waiting[website] = queue
            self._waiting_count -= 1
            if waiter.cancelled():
                continue
            self._held[website] += 1
            waiter.set_result(None)
        self._show()

    def _next(self) -> str | None:
        free = self._bounds.places - self._held.total()
        website = min(self._waiting, key=lambda name: self._held[name], default=None)
        if website is None or not free or (free == 1 and self._held[website]):
            return None
        return website

    def _show(self) -> None:
        self._metrics.set("headrace_selects_waiting", self._waiting_count)
        self._metrics.set("headrace_selects_running", self._held.total())


class SelectBounds(Struct, frozen=True):
    """What selects may take together; a select waits at most `wait_timeout_s` for its turn."""

    places: PlaceBounds
    wait_timeout_s: float
    cache_bytes: int
