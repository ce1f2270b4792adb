"""Bounds the bytes of bodies that one worker holds at a time."""

from typing import Protocol

from headrace.base.errors import Unavailable


class ReservationOwner(Protocol):
    """A call, which keeps count of what it has brought."""

    reserved_bytes: int


class InflightLimiter:
    """Counts what the calls under way have brought; used from one event loop.

    A body counts as it comes and not as it is announced, encoded and again decoded, until its
    call is answered. One call alone is never refused: its own limits bound it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._reserved_bytes = 0

    def has_room(self, size: int) -> bool:
        """Tell whether so many bytes can be held whatever else a call has brought."""
        return self._reserved_bytes + size <= self._max_bytes

    def reserve(self, owner: ReservationOwner, size: int) -> None:
        """Count bytes of a call. Raises `Unavailable` where there are too many of all calls."""
        owner.reserved_bytes += size
        self._reserved_bytes += size
        if self._reserved_bytes > self._max_bytes and self._reserved_bytes > owner.reserved_bytes:
            raise Unavailable("too many bytes of bodies are under way", retry_after_s=1)

    def release(self, owner: ReservationOwner) -> None:
        """Let go of all that a call has brought. May be called twice."""
        self._reserved_bytes -= owner.reserved_bytes
        owner.reserved_bytes = 0
