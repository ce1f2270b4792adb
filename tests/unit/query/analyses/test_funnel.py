"""Funnels: refusals with their full messages, the plan, the statement and the rows of steps."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.base.clock import date_from_days
from headrace.base.errors import InvalidQuery
from headrace.model.catalog import EVENTS, Operator
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import CompiledQuery, OutputKind, PlannedFilter
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT, QueryLimits, Rows, StoreResult, StoreStatus
from headrace.query.funnel.check import check_funnel, decode_funnel
from headrace.query.funnel.compile import compile_funnel
from headrace.query.funnel.plan import FunnelPlan, PlannedStep
from headrace.query.funnel.service import FunnelService
from headrace.query.result_values import QueryResult
from testing.queries import WEBSITE, as_bytes, execution_over_store, where

GOLDEN = Path(__file__).parents[3] / "golden" / "funnel.sql"
CART = {"name": "cart", "filters": [where("path", "eq", "/cart")]}
PAID = {"filters": [where("event_name", "eq", "purchase")]}


def funnel_body(*steps: Any, **root: Any) -> dict[str, Any]:
    return {
        "steps": list(steps or (CART, PAID)),
        "startDate": "2026-01-01",
        "endDate": "2026-01-31",
        **root,
    }


def plan_of(body: Any) -> FunnelPlan:
    return check_funnel(decode_funnel(as_bytes(body)), WEBSITE, now_ms=0)


REFUSED = [
    pytest.param({}, "Invalid request body", ': missing key "steps"', id="empty"),
    pytest.param(
        funnel_body(windw=5),
        "Invalid request body",
        ': unknown key "windw" (did you mean "window"?)',
        id="unknown key",
    ),
    pytest.param(
        funnel_body(CART, {**PAID, "filter": []}),
        "Invalid request body",
        ': unknown key "filter" in steps[1] (did you mean "filters"?)',
        id="unknown key of a step",
    ),
    pytest.param(
        funnel_body(CART, {"filters": [{"or": [{"feld": "path"}]}]}),
        "Invalid request body",
        ': unknown key "feld" in steps[1].filters[0].or[0] (did you mean "field"?)',
        id="unknown key of a filter in a group",
    ),
    pytest.param(
        funnel_body(CART, {"filters": [{"and": [{"field": "path"}]}]}),
        "Invalid request body",
        ': missing key "operator" in steps[1].filters[0].and[0]',
        id="filter without operator",
    ),
    pytest.param(
        funnel_body({"name": "x"}, PAID),
        "Invalid request body",
        ': missing key "filters" in steps[0]',
        id="step without filters",
    ),
    pytest.param(
        funnel_body(groupBy=["path"]),
        "Invalid request body",
        ": groupBy must be a string, not an array",
        id="several groups",
    ),
    pytest.param(
        funnel_body(CART, window=0),
        "Invalid steps",
        ": 1 given, a funnel has 2 to 10",
        id="one step",
    ),
    pytest.param(
        funnel_body(*[CART] * 11),
        "Invalid steps",
        ": 11 given, a funnel has 2 to 10",
        id="eleven steps",
    ),
    pytest.param(
        funnel_body(CART, {"filters": [where("pth", "eq", "/")]}, window=0),
        "Invalid column",
        ' "pth" for table "events" (did you mean "path"?)',
        id="column",
    ),
    pytest.param(
        funnel_body(CART, {"filters": [where("path", "eq", "/")] * 21}),
        "Too many filters",
        " in steps[1].filters: 21 given, maximum is 20",
        id="filters of a step",
    ),
    pytest.param(
        funnel_body(window=0, by="x"),
        "Invalid window",
        ": must be a whole number of seconds from 1 to 7776000",
        id="no window",
    ),
    pytest.param(
        funnel_body(window=7_776_001),
        "Invalid window",
        ": must be a whole number of seconds from 1 to 7776000",
        id="long window",
    ),
    pytest.param(
        funnel_body(window="60"),
        "Invalid window",
        ": must be a whole number of seconds from 1 to 7776000",
        id="window as text",
    ),
    pytest.param(
        funnel_body(by="anonymousid", groupBy="x"),
        "Invalid by",
        ' "anonymousid" (did you mean "anonymous_id"?)',
        id="by",
    ),
    pytest.param(
        funnel_body(groupBy="contry", startDate="x"),
        "Invalid column",
        ' "contry" for table "events" (did you mean "country"?)',
        id="group column",
    ),
    pytest.param(
        funnel_body(startDate="2026-02-30", timezone="x"),
        "Invalid startDate",
        ' "2026-02-30": there is no such day',
        id="date",
    ),
    pytest.param(
        funnel_body(timezone="Berlin"),
        "Invalid timezone",
        ' "Berlin" (did you mean "Europe/Berlin"?)',
        id="timezone",
    ),
]


@pytest.mark.parametrize(("body", "cause", "detail"), REFUSED)
def test_funnel_that_breaks_a_rule_is_refused(body: Any, cause: str, detail: str) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        plan_of(body)
    assert (refusal.value.code.value, str(refusal.value)) == (cause, f"{cause}{detail}")


def test_by_is_named_where_it_is_no_text() -> None:
    with pytest.raises(InvalidQuery, match=r"^Invalid by: must be one of anonymous_id, session_id"):
        plan_of(funnel_body(by=5))


def test_plan_has_defaults_and_resolved_names() -> None:
    plan = plan_of(funnel_body())
    path, name = EVENTS.column("path"), EVENTS.column("event_name")
    assert path is not None
    assert name is not None
    assert plan.steps == (
        PlannedStep("cart", (PlannedFilter(path, Operator.EQ, ("/cart",)),)),
        PlannedStep(None, (PlannedFilter(name, Operator.EQ, ("purchase",)),)),
    )
    assert (plan.window_ms, plan.by.name, plan.group_by) == (86_400_000, "anonymous_id", None)


def compiled(body: Any, website: WebsiteId = WEBSITE) -> CompiledQuery:
    return compile_funnel(
        check_funnel(decode_funnel(as_bytes(body)), website, now_ms=0), CHDB_DIALECT
    )


def test_statement_is_the_golden_one() -> None:
    query = compiled(funnel_body(groupBy="properties.plan", window=60, by="session_id"))
    values = [f"-- {name} = {json.dumps(value)}" for name, value in query.parameters.items()]
    text = "\n".join([query.sql, "", *values, ""])
    if os.environ.get("HEADRACE_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text


def test_statement_depends_on_the_shape_alone() -> None:
    other = {"name": "'; DROP", "filters": [where("path", "eq", "'{p0:String}")]}
    assert (
        compiled(funnel_body(other, PAID, window=5), WebsiteId("'")).sql
        == compiled(funnel_body()).sql
    )


def test_statement_names_its_website_once() -> None:
    query = compiled(funnel_body(groupBy="path"), WebsiteId("web_x"))
    assert list(query.parameters.values()).count("web_x") == 1
    assert query.sql.count("{p0:String}") == 1
    assert query.website_id == "web_x"


class StoreOfGroups:
    """Returns the same groups for every funnel."""

    def __init__(self, groups: Rows) -> None:
        self._groups = groups

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert (query.website_id, limits.max_rows) == (WEBSITE, 10_001)
        return StoreResult(self._groups)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


def run(body: Any, groups: Rows) -> QueryResult:
    service = FunnelService(execution_over_store(StoreOfGroups(groups)))
    return asyncio.run(service.run(WEBSITE, as_bytes(body)))


def test_every_step_is_a_row_also_one_that_nobody_reached() -> None:
    assert run(funnel_body(CART, PAID, CART), [[[8, 2], [1500.5]]]) == QueryResult(
        names=("step", "name", "count", "rate", "medianSeconds"),
        kinds=(
            OutputKind.NUMBER,
            OutputKind.TEXT,
            OutputKind.NUMBER,
            OutputKind.NUMBER,
            OutputKind.NUMBER,
        ),
        rows=[
            [1, "cart", 8, 1, None],
            [2, None, 2, 0.25, 1.5005],
            [3, "cart", 0, 0, None],
        ],
        limit=1000,
        truncated=False,
        execution_ms=0,
    )


def test_rates_over_nobody_are_null() -> None:
    assert run(funnel_body(), [[[], []]]).rows == [
        [1, "cart", 0, None, None],
        [2, None, 0, None, None],
    ]


def test_groups_beyond_the_limit_are_dropped_whole() -> None:
    groups = [[str(number), [1], []] for number in range(1001)]
    result = run(funnel_body(groupBy="path"), groups)
    assert (len(result.rows), result.truncated, result.rows[-1]) == (
        2000,
        True,
        ["999", 2, None, 0, 0, None],
    )
    assert run(funnel_body(groupBy="path"), groups[:-1]).truncated is False


def test_statement_reads_no_row_before_the_cutoff() -> None:
    body, cutoffs = decode_funnel(as_bytes(funnel_body())), Cutoffs(events=1_767_225_600_000)
    query = compile_funnel(check_funnel(body, WEBSITE, cutoffs, now_ms=0), CHDB_DIALECT)
    assert "time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC')" in query.sql
    assert query.parameters["p1"] == 1_767_225_600_000


def test_range_can_be_the_last_days() -> None:
    body = funnel_body(lastDays=2, startDate=None, endDate=None, timezone="Pacific/Kiritimati")
    now_ms = 1_767_790_800_000  # 2026-01-07T13:00Z, the 8th there
    plan = check_funnel(decode_funnel(as_bytes(body)), WEBSITE, now_ms=now_ms)
    days = (plan.range.first_day, plan.range.last_day)
    assert [date_from_days(day).isoformat() for day in days] == ["2026-01-07", "2026-01-08"]


def test_dates_and_last_days_at_once_are_refused() -> None:
    with pytest.raises(InvalidQuery) as refusal:
        plan_of(funnel_body(lastDays=2))
    message = "Invalid startDate: lastDays is in the place of startDate and endDate"
    assert str(refusal.value) == message
