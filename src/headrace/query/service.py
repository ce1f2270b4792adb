"""The query use case: body → request → plan → statement → rows → answer."""

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

ANSWERED = "answered"
FAILED = "failed"
OUTCOMES: Mapping[type[HeadraceError], str] = {
    InvalidQuery: "refused",
    QueryTimedOut: "timed_out",
    QueryTooLarge: "too_large",
    StoreUnavailable: "unavailable",
}
NO_TABLE = "none"
"""The label of queries that were refused before it was known which table they ask."""


class QueryService:
    """Answers queries from a store, one call at a time for each caller, many at once."""

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
        """Answer the query of a body over one website.

        Raises `InvalidQuery` for what the caller can mend, and what `Store.select` raises. The
        caller was found to have the right to read the website.
        """
        table, outcome = NO_TABLE, FAILED
        try:
            plan = check_query(decode_query(body), website_id)
            table = plan.table.name
            result = await self._execute(plan)
            outcome = ANSWERED
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
    """Return the rows of the page that was asked for, and whether there are more behind it."""
    if not plan.fill:
        return rows[: plan.limit], len(rows) > plan.limit
    filled: list[list[Any]] = fill_buckets(plan, query.outputs, rows)
    end = plan.offset + plan.limit
    return filled[plan.offset : end], len(filled) > end
