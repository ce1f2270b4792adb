"""What all query use cases share: one select in the store under limits, counted and timed."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from headrace.base.clock import Clock
from headrace.base.errors import (
    HeadraceError,
    InvalidQuery,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)
from headrace.base.telemetry import Metrics
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.data_retention import CutoffSource
from headrace.ports.store import Dialect, QueryLimits, Rows, Store

SUCCEEDED = "answered"
FAILED = "failed"
OUTCOMES: Mapping[type[HeadraceError], str] = {
    InvalidQuery: "refused",
    QueryTimedOut: "timed_out",
    QueryTooLarge: "too_large",
    StoreUnavailable: "unavailable",
}
NO_TABLE = "none"
"""The metric label of queries that were rejected before their table was known."""


class RunningQuery:
    """One query of a caller from its body to its result. Its services set `table` once known."""

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.table = NO_TABLE


class QueryExecution:
    """Runs the selects of queries over a store; for one event loop and many tasks."""

    def __init__(
        self,
        *,
        store: Store,
        limits: QueryLimits,
        metrics: Metrics,
        clock: Clock,
        dialect: Dialect,
        cutoffs: CutoffSource,
    ) -> None:
        self._store = store
        self._limits = limits
        self._metrics = metrics
        self._clock = clock
        self.dialect = dialect
        self._cutoffs = cutoffs

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

    async def select(self, query: CompiledQuery) -> Rows:
        """Return the rows of a statement. Raises what `Store.select` raises."""
        started_s = self._clock.monotonic_s()
        try:
            return await self._store.select(query, self._limits)
        finally:
            self._metrics.observe("headrace_query_seconds", self._clock.monotonic_s() - started_s)

    async def cutoffs(self, website_id: WebsiteId) -> Cutoffs:
        """Return the cutoffs of a website: a query reads no row before them."""
        return await self._cutoffs.cutoffs(website_id)

    def now_ms(self) -> int:
        """Return the current time in epoch milliseconds."""
        return self._clock.now_ms()

    def elapsed_ms(self, running: RunningQuery) -> float:
        """Return the milliseconds since a query began, as results report them."""
        return round((self._clock.monotonic_s() - running.started_s) * 1000, 3)
