"""How often a caller may ask."""

from typing import Protocol

from msgspec import Struct


class RateVerdict(Struct, frozen=True):
    """What became of one call: whether it is within the limit, and what is left.

    `reset_s` is the seconds until the window is free again; for a refused call, until one more
    would be accepted.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_s: int


class Limiter(Protocol):
    """A sliding window for each caller, shared by all workers, and by all machines that agree."""

    async def hit(self, caller: str) -> RateVerdict | None:
        """Count one call of a caller. A refused call is not counted.

        Returns None when the limiter is away and nothing is answered without it anyway: the call
        is then let through. Raises `SharedUnavailable` when the server that counts for several
        machines is away: the call is then refused.
        """
        ...
