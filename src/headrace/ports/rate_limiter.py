"""How often a caller may ask."""

import math
from typing import Protocol

from msgspec import Struct


class RateLimitResult(Struct, frozen=True):
    """What became of one call: whether it is within the limit, and what is left.

    `reset_s` is the seconds until the window is free again; for a refused call, until one more
    would be accepted.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_s: int


def rate_limit_result(
    *, allowed: bool, limit: int, remaining: int, window_s: int, oldest_expires_in_s: float
) -> RateLimitResult:
    """Return what a caller is told of a window, once one more call was counted or refused.

    `oldest_expires_in_s` is when the oldest counted call leaves the window.
    """
    waiting_s = min(max(1, math.ceil(oldest_expires_in_s)), window_s)
    return RateLimitResult(
        allowed=allowed,
        limit=limit,
        remaining=max(0, remaining),
        reset_s=window_s if allowed else waiting_s,
    )


class RateLimiter(Protocol):
    """A sliding window for each caller, shared by all workers, and by all machines that agree."""

    async def hit(self, caller: str) -> RateLimitResult | None:
        """Count one call of a caller. A refused call is not counted.

        Returns None when the limiter is away and nothing is answered without it anyway: the call
        is then let through. Raises `SharedStateUnavailable` when the server that counts for several
        machines is away: the call is then refused.
        """
        ...
