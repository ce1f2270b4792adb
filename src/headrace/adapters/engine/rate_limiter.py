"""The rate limit of queries, counted in memory by the engine process for all workers."""

from collections import OrderedDict, deque

from headrace.base.clock import Clock
from headrace.ports.rate_limiter import RateLimitResult, rate_limit_result


class WindowLimiter:
    """The `RateLimiter` over a sliding window in memory: `limit` calls in any `window_s` seconds.

    Not the library's memory storage, which starts a thread at each call: ADR 8.
    """

    def __init__(self, limit: int, *, window_s: int = 60, clock: Clock) -> None:
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._calls: OrderedDict[str, deque[float]] = OrderedDict()  # ordered by the last call

    @property
    def known_callers(self) -> int:
        """Number of callers in memory: those with a call within the window."""
        return len(self._calls)

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one call of a caller; see `RateLimiter.hit`."""
        now_s = self._clock.monotonic_s()
        window_start_s = now_s - self._window_s
        self._evict_idle_callers(window_start_s)
        calls = self._calls.setdefault(caller, deque())
        while calls and calls[0] <= window_start_s:
            calls.popleft()
        allowed = len(calls) < self._limit
        if allowed:
            calls.append(now_s)
            self._calls.move_to_end(caller)
        return rate_limit_result(
            allowed=allowed,
            limit=self._limit,
            remaining=self._limit - len(calls),
            window_s=self._window_s,
            oldest_expires_in_s=calls[0] + self._window_s - now_s,
        )

    def _evict_idle_callers(self, cutoff_s: float) -> None:
        """Remove callers whose calls have all left the window."""
        while self._calls:
            caller, calls = next(iter(self._calls.items()))
            if calls[-1] > cutoff_s:
                return
            del self._calls[caller]
