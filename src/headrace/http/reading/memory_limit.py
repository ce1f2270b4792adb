"""Limits the bytes of request bodies that a worker has in memory."""

from typing import Final, Protocol

from headrace.base.errors import Unavailable

_SMALL_BYTES: Final = 65_536
_RESERVED_FOR_SMALL: Final = 4
"""The last quarter of the limit is for small requests: large ones cannot shut them out."""


class ReservationOwner(Protocol):
    """A request with the count of its reserved bytes."""

    reserved_bytes: int


class InflightLimiter:
    """Limits the body bytes of all active requests; used from one event loop.

    Bytes are charged as received, not by Content-Length, and again as decoded, until the request
    is answered. A single request is never refused: its own limits apply. Requests of more than
    64 KiB share three quarters of the limit.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_bytes_with_large = max_bytes - max_bytes // _RESERVED_FOR_SMALL
        self._reserved_bytes = 0

    def has_room(self, size: int) -> bool:
        """Return whether `size` more bytes fit within the limit."""
        return self._reserved_bytes + size <= self._max_bytes

    def reserve(self, owner: ReservationOwner, size: int) -> None:
        """Reserve bytes for a request. Raises `Unavailable` if all requests exceed the limit."""
        owner.reserved_bytes += size
        self._reserved_bytes += size
        is_small = owner.reserved_bytes <= _SMALL_BYTES
        limit = self._max_bytes if is_small else self._max_bytes_with_large
        if self._reserved_bytes > limit and self._reserved_bytes > owner.reserved_bytes:
            raise Unavailable("request bodies exceed the memory limit", retry_after_s=1)

    def release(self, owner: ReservationOwner) -> None:
        """Release all bytes of a request. Safe to call twice."""
        self._reserved_bytes -= owner.reserved_bytes
        owner.reserved_bytes = 0
