"""Closes connections that are too slow: to send a head, to be used, or to read responses."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Protocol


class WriteProgress:
    """How a client reads its responses, sampled by the sweep over all connections."""

    __slots__ = ("_queued_bytes", "_since_s", "_unsent_bytes", "drained_bytes")

    def __init__(self) -> None:
        self._unsent_bytes = 0
        self._queued_bytes = 0
        self._since_s = 0.0
        self.drained_bytes: int | None = None
        """Bytes that the client read between the last two samples; None if none were unsent."""

    def sample(self, now_s: float, unsent_bytes: int, queued_bytes: int) -> None:
        """Record how many bytes of responses the client has not read yet.

        Unsent ones are in the memory of the process, queued ones behind them in that of the kernel.
        """
        before, self._unsent_bytes = self._unsent_bytes, unsent_bytes
        queued_before, self._queued_bytes = self._queued_bytes, queued_bytes
        self.drained_bytes = max(before - unsent_bytes, 0) if before else None
        if unsent_bytes == 0 or (unsent_bytes, queued_bytes) != (before, queued_before):
            self._since_s = now_s

    def is_stalled(self, now_s: float, timeout_s: float) -> bool:
        """Return whether the client has read nothing of unsent responses for the timeout."""
        return now_s - self._since_s > timeout_s


class SlowReader(Protocol):
    """A connection whose client may read slowly."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has not read yet."""
        ...

    @property
    def drained_bytes(self) -> int | None:
        """See `WriteProgress.drained_bytes`."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


class SweptConnection(SlowReader, Protocol):
    """A connection with timeouts."""

    def close_if_timed_out(self, *, head_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if one of its timeouts is over."""
        ...


async def reap_slow_connections(
    open_connections: Callable[[], Iterable[SweptConnection]],
    *,
    head_timeout_s: float,
    idle_timeout_s: float,
    max_unsent_bytes: int,
) -> None:
    """Sweep over all connections until cancelled; one timer serves them all."""
    while True:
        await asyncio.sleep(head_timeout_s / 4)
        connections = tuple(open_connections())
        for connection in connections:
            connection.close_if_timed_out(
                head_timeout_s=head_timeout_s, idle_timeout_s=idle_timeout_s
            )
        drop_slowest_readers(connections, max_unsent_bytes)


def drop_slowest_readers(connections: Collection[SlowReader], max_unsent_bytes: int) -> None:
    """When total unsent bytes exceed the limit, drop the slowest readers first.

    A response stays in memory until the client has read it, and a client may read a byte now and
    then. The slowest reader is the one that needs the longest for its unsent bytes.
    """
    unsent = {each: each.unsent_bytes for each in connections}
    excess_bytes = sum(unsent.values()) - max_unsent_bytes
    if excess_bytes <= 0:
        return
    drain_estimates = {
        each: size / (each.drained_bytes + 1)
        for each, size in unsent.items()
        if each.drained_bytes is not None
    }
    for connection in sorted(drain_estimates, key=drain_estimates.__getitem__, reverse=True):
        connection.abort()
        excess_bytes -= unsent[connection]
        if excess_bytes <= 0:
            return
