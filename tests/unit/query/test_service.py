"""The complete use case over a store with given rows."""

import asyncio
from typing import Any

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import (
    HeadraceError,
    InvalidQuery,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)
from headrace.base.metrics import Metrics
from headrace.model.plan import CompiledQuery, OutputKind
from headrace.ports.rows.retention import FixedCutoffs
from headrace.ports.store import CHDB_DIALECT, QueryLimits, Rows, StoreResult, StoreStatus
from headrace.query.execution import QueryExecution
from headrace.query.result_values import QueryResult
from headrace.query.service import QueryService
from testing.queries import WEBSITE, PickledCalls, as_bytes, query_body, statement_of

LIMITS = QueryLimits(timeout_s=15.0, max_memory_bytes=2**31)


class StoreOfRows:
    """Returns the same rows for every query, or raises, after `takes_ms` milliseconds."""

    def __init__(
        self,
        rows: Rows = (),
        *,
        error: Exception | None = None,
        clock: FixedClock | None = None,
        takes_ms: int = 0,
    ) -> None:
        self.sent_query: list[tuple[CompiledQuery, QueryLimits]] = []
        self._rows, self._error = rows, error
        self._clock, self._takes_ms = clock, takes_ms

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        self.sent_query.append((query, limits))
        if self._clock is not None:
            self._clock.advance(self._takes_ms)
        if self._error is not None:
            raise self._error
        return StoreResult(self._rows)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY if self._error is None else StoreStatus.UNAVAILABLE


def run(
    store: StoreOfRows,
    body: Any,
    *,
    metrics: Metrics | None = None,
    clock: FixedClock | None = None,
) -> QueryResult:
    execution = QueryExecution(
        cutoffs=FixedCutoffs(),
        background=PickledCalls(),
        store=store,
        limits=LIMITS,
        dialect=CHDB_DIALECT,
        metrics=metrics or Metrics(),
        clock=clock or FixedClock(0),
    )
    return asyncio.run(QueryService(execution).run(WEBSITE, as_bytes(body)))


def test_result_has_formatted_rows_by_output_name() -> None:
    clock = FixedClock(0)
    store = StoreOfRows([[20_458, "/", 2.0]], clock=clock, takes_ms=25)
    body = query_body(group_by=["path"], granularity="daily", limit=5)
    assert run(store, body, clock=clock) == QueryResult(
        names=("date", "path", "n"),
        kinds=(OutputKind.DAY, OutputKind.TEXT, OutputKind.NUMBER),
        rows=[["2026-01-05", "/", 2]],
        limit=5,
        truncated=False,
        execution_ms=25.0,
    )


def test_store_gets_the_compiled_plan_and_limits() -> None:
    store = StoreOfRows([[1]])
    run(store, query_body())
    assert store.sent_query == [(statement_of(query_body()), LIMITS)]


def test_row_past_the_limit_is_dropped_and_sets_truncated() -> None:
    result = run(StoreOfRows([["/a", 2], ["/b", 1]]), query_body(group_by=["path"], limit=1))
    assert (result.rows, result.truncated) == ([["/a", 2]], True)


@pytest.mark.parametrize(("value", "rows"), [(6, [[6]]), (5, [])])
def test_having_leaves_out_the_one_row_without_groups_and_not_its_totals(
    value: int, rows: list[list[int]]
) -> None:
    body = query_body(totals=True, having=[{"field": "n", "operator": "gt", "value": 5}])
    result = run(StoreOfRows([[value]]), body)
    assert (result.rows, result.totals) == (rows, {"n": value})


@pytest.mark.parametrize(
    ("limit", "offset", "days", "truncated"),
    [
        (2, 0, ["2026-01-05", "2026-01-06"], True),
        (2, 1, ["2026-01-06", "2026-01-07"], False),
        (3, 0, ["2026-01-05", "2026-01-06", "2026-01-07"], False),
        (1, 3, [], False),
    ],
)
def test_limit_and_offset_apply_after_filling(
    limit: int, offset: int, days: list[str], truncated: bool
) -> None:
    body = query_body(
        granularity="daily",
        fill=True,
        startDate="2026-01-05",
        endDate="2026-01-07",
        limit=limit,
        offset=offset,
    )
    result = run(StoreOfRows([[20_459, 7]]), body)
    assert ([row[0] for row in result.rows], result.truncated) == (days, truncated)


OUTCOMES = [
    pytest.param(query_body(), None, ("events", "answered"), id="answered"),
    pytest.param(query_body(table="error_spans"), None, ("errors", "answered"), id="other name"),
    pytest.param({}, InvalidQuery, ("none", "refused"), id="no table known"),
    pytest.param(query_body(limit=0), InvalidQuery, ("none", "refused"), id="no plan"),
    pytest.param(query_body(), QueryTimedOut, ("events", "timed_out"), id="timed out"),
    pytest.param(query_body(), QueryTooLarge, ("events", "too_large"), id="too large"),
    pytest.param(query_body(), StoreUnavailable, ("events", "unavailable"), id="unavailable"),
    pytest.param(query_body(), RuntimeError, ("events", "failed"), id="our fault"),
]


@pytest.mark.parametrize(("body", "raised", "labels"), OUTCOMES)
def test_every_query_is_counted_with_its_outcome(
    body: Any, raised: type[Exception] | None, labels: tuple[str, str]
) -> None:
    error = None if raised in (None, InvalidQuery) else (raised or HeadraceError)("why")
    metrics = Metrics()
    store = StoreOfRows([[1]], error=error)
    if raised is None:
        run(store, body, metrics=metrics)
    else:
        with pytest.raises(raised):
            run(store, body, metrics=metrics)
    table, outcome = labels
    line = f'headrace_queries_total{{outcome="{outcome}",table="{table}"}} 1.0'
    assert [line] == [
        line
        for line in metrics.render().decode().split("\n")
        if line.startswith("headrace_queries_total{")
    ]


def test_store_time_is_measured_on_failure_too() -> None:
    metrics, clock = Metrics(), FixedClock(0)
    store = StoreOfRows(error=QueryTimedOut("late"), clock=clock, takes_ms=2000)
    with pytest.raises(QueryTimedOut):
        run(store, query_body(), metrics=metrics, clock=clock)
    assert "headrace_query_seconds_sum 2.0" in metrics.render().decode()


def test_rejected_query_does_not_reach_the_store() -> None:
    store = StoreOfRows()
    with pytest.raises(InvalidQuery):
        run(store, query_body(table="nope"))
    assert store.sent_query == []
