"""The rate limit of queries, counted in memory by the one process that all workers ask."""

import math

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from millrace.base.clock import Clock
from millrace.ports.limiter import RateVerdict

_FEW_CALLERS = 1024


class WindowLimiter:
    """The `Limiter` over a sliding window in memory: `limit` calls in any `window_s` seconds.

    The library reads the machine's clock itself; `clock` must be the same one.
    """

    def __init__(self, limit: int, *, window_s: int = 60, clock: Clock) -> None:
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._item = RateLimitItemPerSecond(limit, window_s)
        self._storage = MemoryStorage()
        self._window = MovingWindowRateLimiter(self._storage)
        self._forget_at = _FEW_CALLERS

    @property
    def known_callers(self) -> int:
        """How many callers are held in memory."""
        return len(self._storage.events)

    async def hit(self, caller: str) -> RateVerdict:
        """Count one call of a caller; see `Limiter.hit`."""
        self._forget_idle_callers()
        allowed = self._window.hit(self._item, caller)
        oldest_ends_s, remaining = self._window.get_window_stats(self._item, caller)
        waiting_s = math.ceil(oldest_ends_s - self._clock.now_ms() / 1000)
        return RateVerdict(
            allowed=allowed,
            limit=self._limit,
            remaining=max(0, remaining),
            reset_s=self._window_s if allowed else min(max(1, waiting_s), self._window_s),
        )

    def _forget_idle_callers(self) -> None:
        """Remove callers whose calls have all left the window: the library keeps their names."""
        if self.known_callers < self._forget_at:
            return
        for key in [key for key, calls in self._storage.events.items() if not calls]:
            self._storage.clear(key)
        self._forget_at = max(_FEW_CALLERS, 2 * self.known_callers)
