"""What all query use cases share: one select in the store under limits, counted and timed."""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from headrace.base.clock import Clock
from headrace.base.errors import (
    HeadraceError,
    InvalidQuery,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
    Unavailable,
)
from headrace.base.metrics import Metrics
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.model.wire import Filter
from headrace.ports.background import BackgroundProcess
from headrace.ports.rows.retention import CutoffSource
from headrace.ports.store import Dialect, QueryLimits, Rows, Store
from headrace.query.result_values import ReadInfo
from headrace.query.validate.conditions.patterns import are_costly, patterns_of

_RequestT = TypeVar("_RequestT")
_PlanT = TypeVar("_PlanT")

SUCCEEDED = "answered"
FAILED = "failed"
OUTCOMES: Mapping[type[HeadraceError], str] = {
    InvalidQuery: "refused",
    QueryTimedOut: "timed_out",
    QueryTooLarge: "too_large",
    StoreUnavailable: "unavailable",
    Unavailable: "unavailable",
}
NO_TABLE = "none"
"""The metric label of queries that were rejected before their table was known."""


STATEMENTS_AT_ONCE = 2
"""Of the statements of one query: so none of them waits long for a slot because of the others."""

VISIBILITY_LAG_MS = 2000
"""On a cluster an event of another machine is in every result this time after its response."""


class Selected(Struct, frozen=True):
    """Rows of the store; see `StoreResult`."""

    rows: Rows
    totals: Sequence[Any] | None
    read: ReadInfo


class RunningQuery:
    """One query of a caller from its body to its result. Its services set `table` once known."""

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.table = NO_TABLE


class QueryExecution:
    """Runs the selects of queries over a store; for one event loop and many tasks.

    In a cluster other machines store events too. `background` checks what takes long to check.
    """

    def __init__(
        self,
        *,
        store: Store,
        limits: QueryLimits,
        metrics: Metrics,
        clock: Clock,
        dialect: Dialect,
        cutoffs: CutoffSource,
        background: BackgroundProcess,
        is_cluster: bool = False,
    ) -> None:
        self._store = store
        self._limits = limits
        self._metrics = metrics
        self._clock = clock
        self.dialect = dialect
        self._cutoffs = cutoffs
        self._background = background
        self._visibility_lag_ms = VISIBILITY_LAG_MS if is_cluster else 0

    @contextmanager
    def counted(self) -> Generator[RunningQuery]:
        """Count one query by its table and by how it ends."""
        running, outcome = RunningQuery(self._clock.monotonic_s()), FAILED
        try:
            yield running
            outcome = SUCCEEDED
        except HeadraceError as error:
            outcome = OUTCOMES.get(type(error), FAILED)
            raise
        finally:
            self._metrics.count("headrace_queries_total", 1, running.table, outcome)

    async def check(
        self, check: Callable[[_RequestT], _PlanT], request: _RequestT, filters: Iterable[Filter]
    ) -> _PlanT:
        """Return the plan of a request, which has these filters, as `check` makes it.

        Patterns that take long to compile are checked in the background, one request at a time;
        `check` and its result are picklable. Raises what it raises, and `Unavailable`.
        """
        if not are_costly(patterns_of(filters)):
            return check(request)
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                return await self._background.run(check, request)
        except TimeoutError as error:
            raise Unavailable("checking patterns takes too long") from error

    async def select(self, query: CompiledQuery) -> Selected:
        """Return the rows of a statement. Raises what `Store.select` raises."""
        started_s, started_ms = self._clock.monotonic_s(), self._clock.now_ms()
        try:
            result = await self._store.select(query, self._limits_of(query))
            watermark_ms = started_ms - self._visibility_lag_ms
            read = ReadInfo(result.rows_read, result.bytes_read, result.cached, watermark_ms)
            return Selected(result.rows, result.totals, read)
        finally:
            self._metrics.observe("headrace_query_seconds", self._clock.monotonic_s() - started_s)

    async def select_all(self, queries: Sequence[CompiledQuery]) -> list[Selected]:
        """Return the rows of the statements of one query, which share its deadline.

        A few run at once; where one fails, the others end. Raises what `select` raises.
        """
        turns = asyncio.Semaphore(STATEMENTS_AT_ONCE)

        async def select(query: CompiledQuery) -> Selected:
            async with turns:
                return await self.select(query)

        try:
            async with asyncio.timeout(self._limits.timeout_s), asyncio.TaskGroup() as group:
                tasks = [group.create_task(select(query)) for query in queries]
        except TimeoutError:
            raise QueryTimedOut("Query timed out") from None
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    def _limits_of(self, query: CompiledQuery) -> QueryLimits:
        return replace(self._limits, max_rows=query.max_rows)

    async def cutoffs(self, website_id: WebsiteId) -> Cutoffs:
        """Return the cutoffs of a website: a query reads no row before them."""
        return await self._cutoffs.cutoffs(website_id)

    def now_ms(self) -> int:
        """Return the current time in epoch milliseconds."""
        return self._clock.now_ms()

    def elapsed_ms(self, running: RunningQuery) -> float:
        """Return the milliseconds since a query began, as results report them."""
        return round((self._clock.monotonic_s() - running.started_s) * 1000, 3)
