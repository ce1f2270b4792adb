"""The rate limit of queries, counted in memory by the engine process for all workers."""

from collections import OrderedDict, deque

from headrace.base.clock import Clock
from headrace.base.errors import StoreUnavailable
from headrace.ports.rate_limiter import RateLimiter, RateLimitResult, rate_limit_result


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
        calls = self._calls_in_window(caller, now_s)
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

    def add(self, caller: str) -> None:
        """Count one call that was allowed elsewhere, also beyond the limit."""
        now_s = self._clock.monotonic_s()
        self._calls_in_window(caller, now_s).append(now_s)
        self._calls.move_to_end(caller)

    def _calls_in_window(self, caller: str, now_s: float) -> deque[float]:
        window_start_s = now_s - self._window_s
        self._evict_idle_callers(window_start_s)
        calls = self._calls.setdefault(caller, deque())
        while calls and calls[0] <= window_start_s:
            calls.popleft()
        return calls

    def _evict_idle_callers(self, cutoff_s: float) -> None:
        """Remove callers whose calls have all left the window."""
        while self._calls:
            caller, calls = next(iter(self._calls.items()))
            if calls[-1] > cutoff_s:
                return
            del self._calls[caller]


class WorkerLimiter:
    """The `RateLimiter` of one worker: the engine process counts for all workers.

    While the engine does not answer, the worker counts alone, up to its share of the limit. Its own
    window has all calls that it allowed, those that the engine counted too. So no worker alone
    exceeds the limit, and all together do so only by what the engine had allowed on other workers.
    """

    def __init__(self, engine: RateLimiter, limit: int, *, workers: int, clock: Clock) -> None:
        self._engine = engine
        self._own = WindowLimiter(max(1, limit // workers), clock=clock)

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one call of a caller; see `RateLimiter.hit`."""
        try:
            result = await self._engine.hit(caller)
        except StoreUnavailable:
            return await self._own.hit(caller)
        if result.allowed:
            self._own.add(caller)
        return result
