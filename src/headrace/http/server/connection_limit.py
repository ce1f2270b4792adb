"""Keeps the connections of a worker below the files that it may open."""

import asyncio
import resource
from collections.abc import Collection
from typing import Final

from headrace.http.server.head_limits import HeadLimitProtocol

RESERVED_FILE_DESCRIPTORS: Final = 256
"""For the log, the directory, the engine's socket and libraries: without them nothing works."""


def resolve_max_connections(configured: int) -> int:
    """Return how many connections a worker takes: what is wanted, or 0 for what it may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return configured or 1_048_576
    available = max(soft - RESERVED_FILE_DESCRIPTORS, soft // 2)
    return min(configured or available, available)


class ConnectionLimitProtocol(HeadLimitProtocol):
    """A connection that may take the place of an idle one where there are too many.

    Clients open a closed connection again; a new client would have nothing else.
    """

    max_connections = 1_048_576

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Make room, or close what just came where all others are being answered."""
        if len(self.connections) >= self.max_connections and not self._evict_idle(self.connections):
            transport.abort()
        super().connection_made(transport)

    def _evict_idle(self, others: Collection[object]) -> bool:
        """Close an idle connection; tell whether there was one."""
        for other in others:
            if isinstance(other, ConnectionLimitProtocol) and other.is_idle():
                self.connections.discard(other)  # before its loss is told
                other.transport.abort()
                return True
        return False
