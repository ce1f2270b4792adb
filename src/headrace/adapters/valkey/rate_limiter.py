"""The rate limit of queries, counted in a server that machines share."""

from collections.abc import Awaitable, Callable
from hashlib import blake2b

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from headrace.adapters.valkey.client import PREFIX, AsyncValkeyClient
from headrace.base.clock import Clock
from headrace.base.errors import SharedStateUnavailable
from headrace.ports.rate_limiter import RateLimitResult, rate_limit_result

KEY_CALLER_PREFIX = "key:"
"""Names of callers that begin so hold a key's public id, and no address."""

_NAME_BYTES = 16


class ValkeyRateLimiter:
    """The `RateLimiter` over all machines: `limit` calls in any `window_s` seconds.

    The library's script decides and counts in one step. It takes the time from this machine's
    clock, so clocks that differ move the window by as much. Callers that are told by their address
    are counted under a digest made with the day's secret salt, as the server writes to its disk;
    their windows begin anew with the UTC day.
    """

    def __init__(
        self,
        client: AsyncValkeyClient,
        limit: int,
        *,
        get_salt: Callable[[int], Awaitable[bytes]],
        clock: Clock,
        window_s: int = 60,
    ) -> None:
        self._limit = limit
        self._window_s = window_s
        self._salt_at = get_salt
        self._clock = clock
        self._item = RateLimitItemPerSecond(limit, window_s, namespace="rate")
        self._window = MovingWindowRateLimiter(
            RedisStorage(
                "async+valkey://",
                wrap_exceptions=True,
                implementation="valkey",
                key_prefix=PREFIX.rstrip(":"),
                connection_pool=client.pool,  # type: ignore[arg-type]  # passed on as it is
            )
        )

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one call of a caller; see `RateLimiter.hit`. Raises `SharedStateUnavailable`."""
        name = await self._counter_name(caller)
        try:
            allowed = await self._window.hit(self._item, name)
            oldest_ends_s, remaining = await self._window.get_window_stats(self._item, name)
        except (StorageError, OSError) as error:
            raise SharedStateUnavailable("the shared rate limit cannot be counted") from error
        return rate_limit_result(
            allowed=allowed,
            limit=self._limit,
            remaining=remaining,
            window_s=self._window_s,
            oldest_expires_in_s=oldest_ends_s - self._clock.now_ms() / 1000,
        )

    async def _counter_name(self, caller: str) -> str:
        if caller.startswith(KEY_CALLER_PREFIX):
            return caller
        salt = await self._salt_at(self._clock.now_ms())
        return blake2b(caller.encode(), digest_size=_NAME_BYTES, key=salt).hexdigest()
