"""The column store: inserts for the loader, selects for queries."""

import contextlib
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from headrace.model.catalog import QUERY_LIMITS, Table
from headrace.model.plan import CompiledQuery


class BatchRejected(Exception):
    """The store rejected a batch for its contents, and would reject it again."""


class QueryLimits(Struct, frozen=True):
    """The resources that one query may use. A result of more than `max_rows` is an error."""

    timeout_s: float
    max_memory_bytes: int
    max_rows: int = QUERY_LIMITS["maxLimit"] + 1


class Dialect(Struct, frozen=True):
    """The differences between stores that the SQL compiler must know.

    A store that `needs_big_int_workaround` extracts nothing from a JSON document with an integer
    beyond 64 bits. A store that `is_distributed` has its rows on several machines.
    """

    needs_big_int_workaround: bool = False
    is_distributed: bool = False


CHDB_DIALECT = Dialect()

SERVER_DIALECT = Dialect(needs_big_int_workaround=True, is_distributed=True)
"""The dialect of ClickHouse servers, a single one included."""

Rows = Sequence[Sequence[Any]]
"""Rows of plain JSON values (text, int, float, bool, None), columns in the query's order."""


class StoreResult(Struct, frozen=True):
    """The result of a select, and the rows and bytes that were read for it.

    `totals` is a row over all groups, of a statement WITH TOTALS. Nothing is read for a `cached`
    result; selects that share one run all report what it has read.
    """

    rows: Rows
    totals: Sequence[Any] | None = None
    rows_read: int = 0
    bytes_read: int = 0
    cached: bool = False


class StoredTimes(Protocol):
    """The rows of a batch that is stored: their table and their times."""

    @property
    def table(self) -> str:
        """The stored table."""
        ...

    def of_website(self, website_id: str) -> Collection[int]:
        """Return the times of a website's rows in epoch milliseconds."""
        ...


class ChangeListener(Protocol):
    """Receives notice of changing rows; used from the loader's thread."""

    def rows_changing(
        self, websites: Collection[str], times: StoredTimes | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Rows of these websites change within the context, even where it ends with an error.

        `times` are those of the rows; None means any rows of any table.
        """
        ...

    def all_rows_changing(self) -> contextlib.AbstractContextManager[None]:
        """Rows of any website may change within the context."""
        ...


class NullChangeListener:
    """A `ChangeListener` that ignores all changes."""

    def rows_changing(
        self,
        websites: Collection[str],  # noqa: ARG002 - the protocol names it
        times: StoredTimes | None = None,  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()

    def all_rows_changing(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()


class StoreWriter(Protocol):
    """The writing side; blocking, called from one thread at a time, not always the same."""

    def prepare(self) -> None:
        """Create or migrate the tables. Safe to call at every start."""
        ...

    def shards(self) -> int | None:
        """Return the number of shards that new batches go to; None where the store has none.

        Raises `StoreUnavailable` when it is not known.
        """
        ...

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,
        first_attempt: bool = False,
    ) -> None:
        """Insert a batch of rows, an Arrow IPC stream; missing columns get their defaults.

        Returns when the rows are on disk and visible to later selects. A batch whose token was
        stored before is not stored again, so repeating after any failure is safe. `shards` is what
        `shards()` returned before the first attempt, so that all attempts go to one shard. With
        `first_attempt` the batch was never passed to any writer, so no store has to look for it.
        Raises `BatchRejected` for rows that can never be stored, `StoreUnavailable` when a retry
        may succeed.
        """
        ...


class StoreStatus(Enum):
    """Whether the store answers selects now.

    One that is rebuilding answers all selects, some of them slower. One that is incomplete rejects
    them: it lacks events that were stored, and no operator accepted the loss.
    """

    READY = "ready"
    REBUILDING = "rebuilding"
    INCOMPLETE = "incomplete"
    UNAVAILABLE = "unavailable"


class Store(Protocol):
    """The reading side; used from one event loop by many tasks."""

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        """Run a query over everything acknowledged before the call.

        Raises `QueryTimedOut`, `QueryTooLarge`, or `StoreUnavailable` when the store is down.
        Cancelling the call cancels the query in the engine.
        """
        ...

    async def status(self) -> StoreStatus:
        """Return whether the store answers selects now. Never raises."""
        ...


class SelectFailed(Exception):
    """The engine rejected a select: a bug of ours. The engine's log has the cause."""
