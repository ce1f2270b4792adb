"""The column store: where rows end up and where answers come from."""

import contextlib
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from msgspec import Struct

from headrace.model.catalog import QUERY_LIMITS, Table
from headrace.model.plan import CompiledQuery


class BatchRejected(Exception):
    """The store refused a batch for what is in it; it would refuse it again."""


class QueryLimits(Struct, frozen=True):
    """What one query may use. `max_rows` ends a query that would return more."""

    timeout_s: float
    max_memory_bytes: int
    max_rows: int = QUERY_LIMITS["maxLimit"] + 1


class Dialect(Struct, frozen=True):
    """What a store makes of a statement, where stores differ.

    One that `needs_big_int_workaround` finds nothing in a JSON document with an integer past 64
    bits. One that `is_distributed` has its rows on several machines.
    """

    needs_big_int_workaround: bool = False
    is_distributed: bool = False


CHDB_DIALECT = Dialect()

SERVER_DIALECT = Dialect(needs_big_int_workaround=True, is_distributed=True)
"""The dialect of ClickHouse servers, a single one included."""

Rows = Sequence[Sequence[Any]]
"""Rows of plain JSON values (text, int, float, bool, None), columns in the query's order."""


class ChangeListener(Protocol):
    """Who has to know when rows change; used from the loader's thread."""

    def rows_changing(self, websites: Collection[str]) -> contextlib.AbstractContextManager[None]:
        """Note that rows of these websites change within, whether it ends well or not."""
        ...

    def all_rows_changing(self) -> contextlib.AbstractContextManager[None]:
        """Note that rows of any website may change within."""
        ...


class NullChangeListener:
    """A `ChangeListener` for where nobody has to know."""

    def rows_changing(
        self,
        websites: Collection[str],  # noqa: ARG002 - nobody is told
    ) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()

    def all_rows_changing(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()


class StoreWriter(Protocol):
    """The loader's side; blocking, called from one thread at a time, not always the same."""

    def prepare(self) -> None:
        """Create or migrate the tables. Safe to call at every start."""
        ...

    def insert(
        self, table: Table, arrow_stream: bytes, *, token: str, first_attempt: bool = False
    ) -> None:
        """Store a batch of rows, an Arrow IPC stream; what it has no column for, no row has.

        Returns when the rows are on disk and seen by later selects. A batch whose token was
        stored before is not stored again, so repeating after any failure is safe. One that
        `first_attempt` was never given to any writer before, so no store has to look for it. Raises
        `BatchRejected` when the rows themselves are refused, `StoreUnavailable` when a repeat
        may help.
        """
        ...


class Store(Protocol):
    """The asking side; used from one event loop by many tasks."""

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> Rows:
        """Run a query over everything acknowledged before the call.

        Raises `QueryTimedOut`, `QueryTooLarge`, or `StoreUnavailable` when the engine is away.
        Cancelling the caller ends the query in the engine.
        """
        ...

    async def is_ready(self) -> bool:
        """Tell whether a select would be answered now. Never raises."""
        ...


class SelectFailed(Exception):
    """The engine could not make sense of a select: our own fault. Its log has the cause."""
