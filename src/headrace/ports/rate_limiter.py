"""Rate limits per caller."""

import math
from typing import Protocol

from msgspec import Struct


class RateLimitResult(Struct, frozen=True):
    """The result for one request: whether it is within the limit, and the remaining quota.

    `reset_s` is the seconds until the window is empty again; for a refused request, until another
    one would be accepted.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_s: int


def rate_limit_result(
    *, allowed: bool, limit: int, remaining: int, window_s: int, oldest_expires_in_s: float
) -> RateLimitResult:
    """Return the result for a request that was counted or refused.

    `oldest_expires_in_s` is the time until the oldest counted request leaves the window.
    """
    waiting_s = min(max(1, math.ceil(oldest_expires_in_s)), window_s)
    return RateLimitResult(
        allowed=allowed,
        limit=limit,
        remaining=max(0, remaining),
        reset_s=window_s if allowed else waiting_s,
    )


class RateLimiter(Protocol):
    """A sliding window per caller, shared by all workers, and by all machines with one server."""

    async def hit(self, caller: str) -> RateLimitResult | None:
        """Count one request of a caller. A refused request is not counted.

        Returns None when the limiter is down and no query can be answered without it anyway: the
        request then passes. Raises `SharedStateUnavailable` when the server that counts for several
        machines is down: the request is then refused.
        """
        ...
