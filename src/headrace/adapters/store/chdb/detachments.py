"""Which tables of the embedded store are detached now, and whether that cost a deletion."""

import contextlib
from collections.abc import Generator


class Detachments:
    """Written by the thread that detaches tables, read by any.

    `system.mutations` has no rows of a detached table: deletions look as if they were done.
    """

    def __init__(self) -> None:
        self._detached: set[str] = set()
        self._count = 0
        self._lost_deletions = 0

    @property
    def count(self) -> int:
        """How many times tables were detached."""
        return self._count

    @property
    def lost_deletions(self) -> int:
        """How many mutations were removed because their files were broken."""
        return self._lost_deletions

    def is_detached(self, table: str) -> bool:
        """Return whether a table is detached: after a failure it stays so until the next try."""
        return table in self._detached

    @contextlib.contextmanager
    def detaching(self, table: str) -> Generator[None]:
        """Detach and attach a table within the context; an error leaves it detached."""
        self._detached.add(table)
        self._count += 1
        yield
        self._detached.discard(table)

    def note_lost_deletions(self, number: int) -> None:
        """Add removed mutations."""
        self._lost_deletions += number
