"""Deletes stored rows for good: what pruning and erasing need of a store."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import Table


class DeletionLost(StoreUnavailable):
    """A deletion was lost before its rows were gone: begin it again."""


class DeletionState(Struct, frozen=True):
    """How far the deletions of one table are, those of other processes and machines included.

    `parts_left` are the parts that selects read and that may have rows to delete. `is_failing`
    says that the store meets an error, which it keeps retrying; `is_waiting`, that it has parts
    left, and rewrites none of them or puts some off, but not behind merges of the embedded store.
    `replaced_parts` are no longer read, and their files are still on disk: the store removes them
    within ten minutes.
    """

    parts_left: int
    is_failing: bool
    is_waiting: bool
    replaced_parts: int


class DeletionWatch:
    """Notices deletions that do not go on: a store whose disk is full reports no error.

    They may wait for `patience_s` for each part.
    """

    def __init__(self, clock: Clock, *, patience_s: float) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._waiting: dict[str, tuple[int, float]] = {}  # parts left, and since when

    def check(self, states: Mapping[str, DeletionState]) -> None:
        """Raise `StoreUnavailable` where a table's deletions fail, or have waited for too long."""
        now_s = self._clock.monotonic_s()
        for table, state in states.items():
            parts_left, since_s = self._waiting.get(table, (0, now_s))
            if not state.is_waiting:
                self._waiting.pop(table, None)
            elif parts_left != state.parts_left:
                self._waiting[table] = (state.parts_left, now_s)
            elif now_s - since_s > self._patience_s:
                raise StoreUnavailable(
                    "the deletion waits in the store, as on a full disk; it goes on by itself"
                )
        if any(state.is_failing for state in states.values()):
            raise StoreUnavailable("the store cannot delete rows now; it keeps trying")


class TableSize(Struct, frozen=True):
    """The rows and the bytes on disk of the parts of a table that selects read.

    Where each row is on several replicas, all of them count.
    """

    rows: int
    bytes: int

    def share_of(self, rows: int) -> int:
        """Return what so many rows of the table take on disk, on average."""
        return self.bytes * rows // self.rows if self.rows else 0


class RowDeleter(Protocol):
    """Blocking, used from one thread at a time. Raises `StoreUnavailable` if a retry may help."""

    def begin(self, table: Table, condition: str) -> None:
        """Begin to delete the rows that match and are stored now; return before they are gone.

        `condition` is SQL over the stored columns, without values of a caller. Rows that are
        stored later are kept. The store goes on by itself, also after it was killed.

        Begin while no batch is pending: a writer recognizes a batch by its first row, and stores a
        batch without it once more. Cached results must be dropped when the rows are gone.
        """
        ...

    def state(self, table: Table) -> DeletionState:
        """Return how far the deletions of a table are: with no part left, all rows are gone."""
        ...

    def lost_deletions(self) -> int:
        """Return how often this process may have lost deletions of any table.

        A loss counts before `state` shows it. Its rows stay until the deletion is begun once more.
        A caller that waits for one compares the numbers before it and after `state`.
        """
        ...

    def size(self, table: Table) -> TableSize:
        """Return the size of a table."""
        ...

    def close(self) -> None:
        """Close the connections. May be called twice."""
        ...
