"""Deletes stored rows for good: what pruning and erasing need of a store."""

from typing import Protocol

from msgspec import Struct

from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import Table


class DeletionLost(StoreUnavailable):
    """A deletion was lost before its rows were gone: begin it again."""


class DeletionState(Struct, frozen=True):
    """How far the deletions of one table are, those of other processes and machines included.

    `parts_left` are the parts that selects read and that may have rows to delete. `is_failing`
    says that the store meets an error, which it keeps retrying: a full disk, for example.
    `replaced_parts` are no longer read, and their files are still on disk: the store removes them
    within ten minutes.
    """

    parts_left: int
    is_failing: bool
    replaced_parts: int


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
