"""Standard queries: refusals with their full messages, the plans of types, and shared scans."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import InvalidQuery, QueryTimedOut, StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery, single_filters
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.retention import FixedCutoffs
from headrace.ports.store import (
    CHDB_DIALECT,
    QueryLimits,
    StoreResult,
    StoreStatus,
)
from headrace.query.execution import QueryExecution
from headrace.query.standard.check import check_standard, decode_standard
from headrace.query.standard.compile import compile_breakdowns, split_scans
from headrace.query.standard.definitions import STANDARD_TYPES, Form, plans_of_type
from headrace.query.standard.plan import StandardPlan
from headrace.query.standard.service import StandardService
from testing.queries import WEBSITE, PickledCalls, as_bytes, where

NOW_MS = 1_767_790_800_000  # 2026-01-07T13:00Z
DAYS = {"startDate": "2026-01-01", "endDate": "2026-01-03"}
BOTH = ["pages", "countries"]
GOLDEN = Path(__file__).parents[3] / "golden" / "standard.sql"
GROUPED = [name for name, one in STANDARD_TYPES.items() if one.form is Form.GROUPS]


def plan_of(*types: str, cutoffs: Cutoffs | None = None, **root: Any) -> StandardPlan:
    body = as_bytes({"types": types, **DAYS, **root})
    return check_standard(decode_standard(body), WEBSITE, cutoffs or Cutoffs(), now_ms=NOW_MS)


REFUSED = [
    pytest.param(
        {"types": "summary"}, "Invalid request body: types must be an array, not a string"
    ),
    pytest.param({"types": [1]}, "Invalid request body: types[0] must be a string, not a number"),
    pytest.param({}, 'Invalid request body: missing key "types"'),
    pytest.param(
        {"types": [], "group": 1},
        'Invalid request body: unknown key "group" (one of types, filters, startDate, endDate,'
        " lastDays, timezone, granularity, limit, compare)",
    ),
    pytest.param(
        {"types": [], "compare": {"start": 1}},
        'Invalid request body: unknown key "start" (did you mean "startDate"?)',
    ),
    pytest.param({"types": []}, "Invalid types: at least one is required"),
    pytest.param({"types": ["page"] * 21}, "Invalid types: 21 given, maximum is 20"),
    pytest.param(
        {"types": ["pages", "entry_page"], "filters": [where("x", "eq", "")]},
        'Invalid types "entry_page" (did you mean "entry_pages"?)',
    ),
    pytest.param({"types": ["pages", "pages"]}, 'Invalid types "pages": given twice'),
    pytest.param(
        {"types": ["pages", "vitals"], "filters": [where("session", "eq", "")]},
        'Invalid column "session" for table "events" (did you mean "session_id"?);'
        ' type "pages" reads this table',
    ),
    pytest.param(
        {"types": ["pages", "referrers"], "filters": [where("path", "eq", "/")], "lastDays": 0},
        'Invalid column "path" for table "sessions" (did you mean "entry_path"?);'
        ' type "referrers" reads this table',
    ),
    pytest.param(
        {"types": ["errors"], "filters": [where("stack", "eq", "/")]},
        'Column not filterable "stack" for table "errors" in filters[0]; type "errors" reads this'
        " table",
    ),
    pytest.param(
        {"types": ["pages"], "filters": [where("path", "eq", "/")] * 21},
        "Too many filters in filters: 21 given, maximum is 20",
    ),
    pytest.param(
        {"types": ["pages"], "lastDays": 0, "timezone": "x"},
        "Invalid lastDays: must be a whole number from 1 to 3652",
    ),
    pytest.param(
        {"types": ["pages"], "lastDays": 1, "timezone": "Berlin", "granularity": 1},
        'Invalid timezone "Berlin" (did you mean "Europe/Berlin"?)',
    ),
    pytest.param(
        {"types": ["pages"], "lastDays": 1, "granularity": "dayly", "limit": 0},
        'Invalid granularity "dayly" (did you mean "daily"?)',
    ),
    pytest.param(
        {"types": ["pages"], "lastDays": 1, "limit": 0, "compare": "x"},
        "Invalid limit: must be a whole number from 1",
    ),
    pytest.param(
        {"types": ["timeseries"], "lastDays": 1000, "granularity": "hourly", "compare": "x"},
        'Invalid granularity "hourly": the timeseries would have 24000 rows, maximum is 10000;'
        " use fewer days or a coarser granularity",
    ),
    pytest.param(
        {
            "types": ["timeseries"],
            "lastDays": 1,
            "granularity": "hourly",
            "compare": {"startDate": "2023-01-01", "endDate": "2024-12-31"},
        },
        'Invalid granularity "hourly": the compared timeseries would have 17544 rows, maximum is'
        " 10000; use fewer days or a coarser granularity",
    ),
    pytest.param(
        {"types": ["online"], "lastDays": 1, "compare": "previous_perid"},
        'Invalid compare "previous_perid" (did you mean "previous_period"?)',
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=lambda value: str(value)[:60])
def test_invalid_bodies_are_refused_in_the_order_of_the_checks(
    body: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        check_standard(decode_standard(as_bytes(body)), WEBSITE, now_ms=NOW_MS)
    assert str(refusal.value) == message


def test_twenty_filters_of_the_request_stand_beside_those_of_a_type() -> None:
    plan = plan_of("pages", filters=[where("path", "ne", "/")] * 20)
    (breakdown,) = plan.breakdowns["events"]
    assert len(breakdown.plan.filters) == 22


@pytest.mark.parametrize(("limit", "expected"), [(None, 10), (7, 7), (100, 100), (5000, 100)])
def test_limit_is_that_of_each_type(limit: int | None, expected: int) -> None:
    plan = plan_of("pages", "countries", limit=limit)
    limits = {breakdown.plan.limit for breakdown in plan.breakdowns["events"]}
    assert (plan.limit, limits) == (expected, {expected})


def test_summary_beside_a_timeseries_is_its_totals() -> None:
    both, alone = plan_of("timeseries", "summary"), plan_of("summary")
    assert [(plan.table.name, plan.totals, plan.fill) for plan in both.summary] == [
        ("events", True, True),
        ("sessions", True, True),
    ]
    assert [plan.totals for plan in plan_of("timeseries").summary] == [False, False]
    assert [(plan.totals, plan.granularity) for plan in alone.summary] == [(False, None)] * 2


def test_cutoff_is_that_of_each_table() -> None:
    plan = plan_of("errors", "vitals", "pages", cutoffs=Cutoffs(events=1, errors=2, performance=3))
    cutoffs = {table: rows[0].plan.cutoff_ms for table, rows in plan.breakdowns.items()}
    assert cutoffs == {"errors": 2, "performance": 3, "events": 1}


@pytest.mark.parametrize("name", GROUPED)
def test_rows_that_a_type_counts_have_a_text_in_one_of_its_columns(name: str) -> None:
    """A scan that types share leaves out the group without one."""
    (plan,) = plans_of_type(name)
    tested = [one.column for one in single_filters(plan.filters) if one.operator.value == "is_set"]
    assert not plan.filters or tuple(tested) == plan.group_by


@pytest.mark.parametrize("table", ["events", "sessions"])
def test_no_column_belongs_to_two_types_of_a_table(table: str) -> None:
    """A scan that types share tells them apart by their columns."""
    plans = [plan for name in GROUPED for plan in plans_of_type(name) if plan.table.name == table]
    columns = [column.name for plan in plans for column in plan.group_by]
    assert len(columns) == len(set(columns))


def test_types_of_one_table_are_one_statement_which_names_the_website_once() -> None:
    plan = plan_of(*GROUPED, compare="previous_period")
    scans = {
        table: compile_breakdowns(rows, CHDB_DIALECT) for table, rows in plan.breakdowns.items()
    }
    assert list(scans) == ["events", "sessions", "performance", "errors"]
    for scan in scans.values():
        assert [value for value in scan.query.parameters.values() if value == WEBSITE] == [WEBSITE]


def test_types_that_the_daily_rollup_can_answer_share_a_scan_of_it() -> None:
    scans = split_scans(plan_of(*GROUPED).breakdowns["events"], CHDB_DIALECT)
    assert [[breakdown.type_name for breakdown in scan] for scan in scans] == [
        ["pages", "events"],
        ["countries", "browsers", "systems", "devices"],
    ]


def shared_scan(table: str, website_id: WebsiteId = WEBSITE, **root: Any) -> CompiledQuery:
    body = decode_standard(as_bytes({"types": GROUPED, **DAYS, **root}))
    plan = check_standard(body, website_id, now_ms=NOW_MS)
    (scan, *_) = split_scans(plan.breakdowns[table], CHDB_DIALECT)
    return compile_breakdowns(scan, CHDB_DIALECT).query


def test_statement_of_shared_scans_matches_its_golden_file() -> None:
    text = "\n\n".join(
        f"-- {table}\n{shared_scan(table, compare='previous_period').sql}"
        for table in ("events", "sessions")
    )
    if os.environ.get("HEADRACE_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(f"{text}\n")
    assert GOLDEN.read_text() == f"{text}\n"


def test_statement_depends_on_the_shape_alone() -> None:
    one, other = ([where("country", "eq", value)] for value in ("DE", "'{p0:String}"))
    assert shared_scan("events", WebsiteId("'"), filters=other, limit=99, types=BOTH).sql == (
        shared_scan("events", filters=one, types=BOTH).sql
    )


class CountingStore:
    """Counts how many selects run at once, and fails the select of one table."""

    def __init__(self, *, takes_s: float = 0.0, fails: str = "nothing") -> None:
        self.running = self.most = self.ended = 0
        self._takes_s, self._fails = takes_s, fails

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert limits.max_rows == query.max_rows
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self._fails in query.sql:
                raise StoreUnavailable("why")
            await asyncio.sleep(self._takes_s)
            return StoreResult([])
        finally:
            self.running -= 1
            self.ended += 1

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


def run(store: CountingStore, *types: str, metrics: Metrics, timeout_s: float = 15.0) -> None:
    execution = QueryExecution(
        cutoffs=FixedCutoffs(),
        background=PickledCalls(),
        store=store,
        limits=QueryLimits(timeout_s=timeout_s, max_memory_bytes=2**31),
        dialect=CHDB_DIALECT,
        metrics=metrics,
        clock=FixedClock(NOW_MS),
    )
    body = as_bytes({"types": types, **DAYS})
    asyncio.run(StandardService(execution).run(WEBSITE, body))


def outcomes(metrics: Metrics) -> list[str]:
    lines = metrics.render().decode().split("\n")
    return [line for line in lines if line.startswith("headrace_queries_total{")]


def test_two_statements_of_a_query_run_at_once_and_it_counts_as_one() -> None:
    store, metrics = CountingStore(), Metrics()
    run(store, *GROUPED, metrics=metrics)
    assert (store.most, store.ended) == (2, 5)
    assert outcomes(metrics) == ['headrace_queries_total{outcome="answered",table="standard"} 1.0']


def test_failure_of_one_statement_ends_the_others() -> None:
    store, metrics = CountingStore(takes_s=60, fails="message AS c0"), Metrics()
    with pytest.raises(StoreUnavailable):
        run(store, "errors", "pages", metrics=metrics)
    assert (store.running, store.ended) == (0, 2)
    assert outcomes(metrics) == [
        'headrace_queries_total{outcome="unavailable",table="standard"} 1.0'
    ]


def test_all_statements_share_the_deadline_of_one_query() -> None:
    store, metrics = CountingStore(takes_s=60), Metrics()
    with pytest.raises(QueryTimedOut):
        run(store, *GROUPED, metrics=metrics, timeout_s=0.01)
    assert store.running == 0
