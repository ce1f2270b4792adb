"""Keeps the connections of a worker below its limit of open files."""

import resource
from collections.abc import Iterable
from typing import Final, Protocol

RESERVED_FILE_DESCRIPTORS: Final = 256
"""For the log, the directory, the engine's socket and libraries: without them nothing works."""

_UNLIMITED: Final = 1_048_576


def resolve_max_connections(configured: int) -> int:
    """Return the connection limit of a worker; 0 derives it from RLIMIT_NOFILE."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return configured or _UNLIMITED
    available = max(soft - RESERVED_FILE_DESCRIPTORS, soft // 2)
    return min(configured or available, available)


class EvictableConnection(Protocol):
    """A connection that closes to make room for a new one."""

    def is_idle(self) -> bool:
        """Return whether no request of the connection is being answered."""
        ...

    def evict(self) -> None:
        """Close the connection, which stops counting at once."""
        ...


class ConnectionLimit:
    """Evicts idle connections for new ones.

    A client opens an evicted connection again; a client that cannot connect has no other option.
    """

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections

    def make_room(self, open_count: int, connections: Iterable[EvictableConnection]) -> bool:
        """Evict an idle connection if the limit is reached; return whether a new one may open."""
        if open_count < self._max_connections:
            return True
        idle = next((each for each in connections if each.is_idle()), None)
        if idle is None:
            return False
        idle.evict()
        return True
