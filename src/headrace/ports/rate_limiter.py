"""Rate limits per caller."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct


class CountedCall(Enum):
    """What a rate limit counts; each has windows of its own."""

    QUERY = "query"
    STANDARD = "standard query"
    WRITE = "write"
    FAILED_SIGN_IN = "failed sign-in"


STANDARD_QUERIES_PER_MINUTE = 240


def calls_per_minute(queries: int) -> Mapping[CountedCall, int]:
    """Return the limits, of which the settings have that of queries."""
    return {
        CountedCall.QUERY: queries,
        CountedCall.STANDARD: STANDARD_QUERIES_PER_MINUTE,
        CountedCall.WRITE: 60,
        CountedCall.FAILED_SIGN_IN: 10,
    }


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


def unused_rate_limit(limit: int) -> RateLimitResult:
    """Return the state of a caller that has no counted request in its window."""
    return RateLimitResult(allowed=True, limit=limit, remaining=limit, reset_s=0)


class RateLimiter(Protocol):
    """A sliding window per caller, shared by all workers, and by all machines with one server."""

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one request of a caller. A refused request is not counted.

        Raises `Unavailable` when it cannot be counted now: the request is then refused.
        """
        ...


RateLimiters = Mapping[CountedCall, RateLimiter]
"""A limiter for everything that is counted."""
