"""Retention: refusals with their full messages, the plan, the statement and unknown periods."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.base.clock import FixedClock, date_from_days
from headrace.base.errors import InvalidQuery
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT, QueryLimits, StoreResult, StoreStatus
from headrace.query.retention.check import check_retention, decode_retention
from headrace.query.retention.compile import compile_retention
from headrace.query.retention.plan import RetentionPlan
from headrace.query.retention.service import RetentionService
from testing.queries import WEBSITE, as_bytes, execution_over_store, where

GOLDEN = Path(__file__).parents[3] / "golden" / "retention.sql"
NOW_MS = 1_767_790_800_000  # 2026-01-07T13:00Z, a Wednesday
SIGNUP = {"filters": [where("event_name", "eq", "signup")]}


def retention_body(**root: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "first": SIGNUP,
        "return": {"filters": []},
        "granularity": "daily",
        "periods": 3,
        "startDate": "2026-01-01",
        "endDate": "2026-01-31",
        **root,
    }
    return {key: value for key, value in body.items() if value != "absent"}


def plan_of(body: Any, cutoffs: Cutoffs = Cutoffs()) -> RetentionPlan:  # noqa: B008 - frozen
    return check_retention(
        decode_retention(as_bytes(body)), WEBSITE, now_ms=NOW_MS, cutoffs=cutoffs
    )


PERIODS = ": must be a whole number from 1 to 60"
REFUSED = [
    pytest.param(
        retention_body(first="absent"),
        "Invalid request body",
        ': missing key "first"',
        id="no first",
    ),
    pytest.param(
        retention_body(**{"return": {}}),
        "Invalid request body",
        ': missing key "filters" in return',
        id="return without filters",
    ),
    pytest.param(
        retention_body(period=3),
        "Invalid request body",
        ': unknown key "period" (did you mean "periods"?)',
        id="unknown key",
    ),
    pytest.param(
        retention_body(first={"filters": [{"feld": "x"}]}),
        "Invalid request body",
        ': unknown key "feld" in first.filters[0] (did you mean "field"?)',
        id="unknown key of a filter",
    ),
    pytest.param(
        retention_body(**{"return": {"filters": [{"field": "path", "value": 1}]}}),
        "Invalid request body",
        ': missing key "operator" in return.filters[0]',
        id="filter without operator",
    ),
    pytest.param(
        retention_body(**{"return": {"filters": [where("pth", "eq", "/")]}}, periods=0),
        "Invalid column",
        ' "pth" for table "events" (did you mean "path"?)',
        id="column",
    ),
    pytest.param(
        retention_body(first={"filters": [where("path", "eq", "/")] * 21}),
        "Too many filters",
        " in first.filters: 21 given, maximum is 20",
        id="filters",
    ),
    pytest.param(
        retention_body(granularity="absent", periods=0),
        "Invalid granularity",
        ": must be one of daily, weekly, monthly",
        id="no granularity",
    ),
    pytest.param(
        retention_body(granularity="hourly"),
        "Invalid granularity",
        ' "hourly" (one of daily, weekly, monthly)',
        id="hours",
    ),
    pytest.param(
        retention_body(granularity="week"),
        "Invalid granularity",
        ' "week" (did you mean "weekly"?)',
        id="granularity",
    ),
    pytest.param(
        retention_body(periods="absent", by=1), "Invalid periods", PERIODS, id="no periods"
    ),
    pytest.param(retention_body(periods=61), "Invalid periods", PERIODS, id="many periods"),
    pytest.param(retention_body(periods=1.5), "Invalid periods", PERIODS, id="half a period"),
    pytest.param(
        retention_body(by="session", startDate="x"),
        "Invalid by",
        ' "session" (did you mean "session_id"?)',
        id="by",
    ),
    pytest.param(
        retention_body(by="visitor", startDate="x"),
        "Invalid by",
        ' "visitor" (did you mean "anonymous_id"?)',
        id="by another word",
    ),
    pytest.param(
        retention_body(endDate="2025-12-31", timezone="x"),
        "Invalid endDate",
        ' "2025-12-31": must not be before startDate',
        id="dates",
    ),
]


@pytest.mark.parametrize(("body", "cause", "detail"), REFUSED)
def test_retention_query_that_breaks_a_rule_is_refused(body: Any, cause: str, detail: str) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        plan_of(body)
    assert (refusal.value.code.value, str(refusal.value)) == (cause, f"{cause}{detail}")


@pytest.mark.parametrize(
    ("granularity", "end", "periods", "last"),
    [
        ("daily", "2026-01-31", 1, "2026-01-31"),
        ("daily", "2026-01-31", 3, "2026-02-02"),
        ("weekly", "2026-01-31", 1, "2026-02-01"),
        ("weekly", "2026-01-31", 2, "2026-02-08"),
        ("monthly", "2026-01-15", 1, "2026-01-31"),
        ("monthly", "2026-01-15", 14, "2027-02-28"),
        ("monthly", "9999-01-15", 60, "9999-01-15"),
    ],
)
def test_events_are_read_until_the_last_period_ends(
    granularity: str, end: str, periods: int, last: str
) -> None:
    start = f"{int(end[:4]) - 1}{end[4:]}"
    plan = plan_of(
        retention_body(granularity=granularity, startDate=start, endDate=end, periods=periods)
    )
    assert date_from_days(plan.read_range.last_day).isoformat() == last
    assert date_from_days(plan.range.last_day).isoformat() == end


def compiled(
    body: Any, website: WebsiteId = WEBSITE, cutoffs: Cutoffs | None = None
) -> CompiledQuery:
    plan = check_retention(
        decode_retention(as_bytes(body)), website, now_ms=NOW_MS, cutoffs=cutoffs or Cutoffs()
    )
    return compile_retention(plan, CHDB_DIALECT)


def test_statement_is_the_golden_one() -> None:
    query = compiled(
        retention_body(granularity="monthly", timezone="Europe/Berlin", periods=12),
        cutoffs=Cutoffs(events=1_767_225_600_000),
    )
    values = [f"-- {name} = {json.dumps(value)}" for name, value in query.parameters.items()]
    text = "\n".join([query.sql, "", *values, ""])
    if os.environ.get("HEADRACE_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text


def test_statement_depends_on_the_shape_alone() -> None:
    other = {"filters": [where("event_name", "eq", "'{p0:String}")]}
    assert compiled(retention_body(first=other, periods=60), WebsiteId("'")).sql == (
        compiled(retention_body()).sql
    )


class StoreOfCohorts:
    """Returns the same cohorts for every select."""

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert (query.website_id, limits.max_rows) == (WEBSITE, 10_001)
        return StoreResult([[20_459, 8, [1, 2, 3]], [20_460, 4, [1, 0, 0]]])

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


@pytest.mark.parametrize(
    ("timezone", "returned"),
    [
        ("UTC", [[1, 2, None], [1, None, None]]),
        ("Pacific/Kiritimati", [[1, 2, 3], [1, 0, None]]),  # the 8th has begun there
    ],
)
def test_periods_that_have_not_begun_are_null(
    timezone: str, returned: list[list[int | None]]
) -> None:
    service = RetentionService(execution_over_store(StoreOfCohorts(), FixedClock(NOW_MS)))
    body = as_bytes(retention_body(timezone=timezone))
    result = asyncio.run(service.run(WEBSITE, body))
    assert result.names == ("date", "size", "returned")
    assert result.rows == [["2026-01-06", 8, returned[0]], ["2026-01-07", 4, returned[1]]]


def test_first_events_can_be_of_the_last_days() -> None:
    plan = plan_of(retention_body(lastDays=7, startDate="absent", endDate="absent"))
    days = (plan.range.first_day, plan.range.last_day, plan.read_range.last_day)
    assert [date_from_days(day).isoformat() for day in days] == [
        "2026-01-01",
        "2026-01-07",
        "2026-01-09",
    ]
