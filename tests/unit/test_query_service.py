"""The whole use case over rows that a store is made to give."""

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
from headrace.base.telemetry import Metrics
from headrace.model.plan import CompiledQuery, OutputKind
from headrace.ports.store import QueryGuards, Rows
from headrace.query.result_values import QueryAnswer
from headrace.query.service import QueryService
from tests.questions import WEBSITE, as_bytes, question, statement_of

GUARDS = QueryGuards(timeout_s=15.0, max_memory_bytes=2**31)


class StoreOfRows:
    """Answers every query with the same rows, or raises, after so many milliseconds."""

    def __init__(
        self,
        rows: Rows = (),
        *,
        error: Exception | None = None,
        clock: FixedClock | None = None,
        takes_ms: int = 0,
    ) -> None:
        self.asked: list[tuple[CompiledQuery, QueryGuards]] = []
        self._rows, self._error = rows, error
        self._clock, self._takes_ms = clock, takes_ms

    async def select(self, query: CompiledQuery, guards: QueryGuards) -> Rows:
        self.asked.append((query, guards))
        if self._clock is not None:
            self._clock.advance(self._takes_ms)
        if self._error is not None:
            raise self._error
        return self._rows

    async def is_ready(self) -> bool:
        return self._error is None


def run(
    store: StoreOfRows,
    body: Any,
    *,
    metrics: Metrics | None = None,
    clock: FixedClock | None = None,
) -> QueryAnswer:
    service = QueryService(
        store=store,
        guards=GUARDS,
        metrics=metrics or Metrics(),
        clock=clock or FixedClock(0),
    )
    return asyncio.run(service.run(WEBSITE, as_bytes(body)))


def test_answer_has_finished_rows_under_their_names() -> None:
    clock = FixedClock(0)
    store = StoreOfRows([[20_458, "/", 2.0]], clock=clock, takes_ms=25)
    body = question(group_by=["path"], granularity="daily", limit=5)
    assert run(store, body, clock=clock) == QueryAnswer(
        names=("date", "path", "n"),
        kinds=(OutputKind.DAY, OutputKind.TEXT, OutputKind.NUMBER),
        rows=[["2026-01-05", "/", 2]],
        limit=5,
        truncated=False,
        execution_ms=25.0,
    )


def test_store_is_asked_the_compiled_plan_within_the_guards() -> None:
    store = StoreOfRows([[1]])
    run(store, question())
    assert store.asked == [(statement_of(question()), GUARDS)]


def test_row_past_the_limit_is_left_out_and_told() -> None:
    answer = run(StoreOfRows([["/a", 2], ["/b", 1]]), question(group_by=["path"], limit=1))
    assert (answer.rows, answer.truncated) == ([["/a", 2]], True)


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
    body = question(
        granularity="daily",
        fill=True,
        startDate="2026-01-05",
        endDate="2026-01-07",
        limit=limit,
        offset=offset,
    )
    answer = run(StoreOfRows([[20_459, 7]]), body)
    assert ([row[0] for row in answer.rows], answer.truncated) == (days, truncated)


OUTCOMES = [
    pytest.param(question(), None, ("events", "answered"), id="answered"),
    pytest.param(question(table="error_spans"), None, ("errors", "answered"), id="other name"),
    pytest.param({}, InvalidQuery, ("none", "refused"), id="no table known"),
    pytest.param(question(limit=0), InvalidQuery, ("none", "refused"), id="no plan"),
    pytest.param(question(), QueryTimedOut, ("events", "timed_out"), id="timed out"),
    pytest.param(question(), QueryTooLarge, ("events", "too_large"), id="too large"),
    pytest.param(question(), StoreUnavailable, ("events", "unavailable"), id="unavailable"),
    pytest.param(question(), RuntimeError, ("events", "failed"), id="our fault"),
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


def test_time_in_the_store_is_measured_also_when_it_failed() -> None:
    metrics, clock = Metrics(), FixedClock(0)
    store = StoreOfRows(error=QueryTimedOut("late"), clock=clock, takes_ms=2000)
    with pytest.raises(QueryTimedOut):
        run(store, question(), metrics=metrics, clock=clock)
    assert "headrace_query_seconds_sum 2.0" in metrics.render().decode()


def test_store_is_not_asked_for_what_is_refused() -> None:
    store = StoreOfRows()
    with pytest.raises(InvalidQuery):
        run(store, question(table="nope"))
    assert store.asked == []
