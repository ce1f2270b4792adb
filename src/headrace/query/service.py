"""The query use case: body → request → plan → statement → rows → result."""

from collections.abc import Mapping
from typing import Any

from headrace.base.clock import Clock
from headrace.base.errors import (
    HeadraceError,
    InvalidQuery,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)
from headrace.base.telemetry import Metrics
from headrace.model.plan import CompiledQuery, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect, QueryLimits, Rows, Store
from headrace.query.gap_fill import fill_buckets
from headrace.query.result_values import QueryResult, format_rows
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query

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


class QueryService:
    """Runs queries over a store; for one event loop and many tasks."""

    def __init__(
        self,
        *,
        store: Store,
        limits: QueryLimits,
        metrics: Metrics,
        clock: Clock,
        dialect: Dialect,
    ) -> None:
        self._store = store
        self._limits = limits
        self._metrics = metrics
        self._clock = clock
        self._dialect = dialect

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        """Run the query of a request body over one website and return its result.

        The website must be authorized already. Raises `InvalidQuery` for a query that breaks a
        rule, and what `Store.select` raises. Cancelling the call ends the query in the store.
        """
        table, outcome = NO_TABLE, FAILED
        try:
            plan = check_query(decode_query(body), website_id)
            table = plan.table.name
            result = await self._execute(plan)
            outcome = SUCCEEDED
        except HeadraceError as error:
            outcome = OUTCOMES.get(type(error), FAILED)
            raise
        finally:
            self._metrics.count("headrace_queries_total", 1, table, outcome)
        return result

    async def _execute(self, plan: QueryPlan) -> QueryResult:
        query = compile_query(plan, self._dialect)
        started_s = self._clock.monotonic_s()
        rows = await self._select(query)
        page, truncated = _slice_page(plan, query, rows)
        kinds = tuple(output.kind for output in query.outputs)
        formatted = format_rows(page, kinds)
        return QueryResult(
            names=tuple(output.name for output in query.outputs),
            kinds=kinds,
            rows=formatted,
            limit=plan.limit,
            truncated=truncated,
            execution_ms=round((self._clock.monotonic_s() - started_s) * 1000, 3),
        )

    async def _select(self, query: CompiledQuery) -> Rows:
        started_s = self._clock.monotonic_s()
        try:
            return await self._store.select(query, self._limits)
        finally:
            self._metrics.observe("headrace_query_seconds", self._clock.monotonic_s() - started_s)


def _slice_page(plan: QueryPlan, query: CompiledQuery, rows: Rows) -> tuple[Rows, bool]:
    """Return the rows of the requested page, and whether more rows follow it.

    The store has applied the offset already, except to a plan with `fill`.
    """
    if not plan.fill:
        return rows[: plan.limit], len(rows) > plan.limit
    filled: list[list[Any]] = fill_buckets(plan, query.outputs, rows)
    end = plan.offset + plan.limit
    return filled[plan.offset : end], len(filled) > end
