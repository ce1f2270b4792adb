"""The rate limit of queries, counted in the Valkey server that machines share."""

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
"""Prefix of a caller that is the public id of an API key; all others are IP addresses."""

_NAME_BYTES = 16


class ValkeyRateLimiter:
    """The `RateLimiter` over all machines: `limit` calls in any `window_s` seconds.

    The script of the library `limits` checks and counts atomically. It uses this machine's clock,
    so clock skew shifts the window by as much. The server writes its keys to disk, so an address is
    counted under a keyed hash with the daily salt; its window is reset at the end of the UTC day.
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
        self._get_salt = get_salt
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
        """Count a request of a caller; see `RateLimiter.hit`. Raises `SharedStateUnavailable`."""
        name = await self._counter_name(caller)
        try:
            allowed = await self._window.hit(self._item, name)
            oldest_ends_s, remaining = await self._window.get_window_stats(self._item, name)
        except (StorageError, OSError) as error:
            raise SharedStateUnavailable(f"cannot count the shared rate limit: {error}") from error
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
        salt = await self._get_salt(self._clock.now_ms())
        return blake2b(caller.encode(), digest_size=_NAME_BYTES, key=salt).hexdigest()
