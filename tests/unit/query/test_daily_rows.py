"""Which queries over events read the daily rollup, and which days they read as events."""

from typing import Any

import pytest

from headrace.query.sql.sources.daily_rows import divided_days, reads_daily_rows
from testing.queries import COUNT, plan_of, query_body, select, where

VISITORS = select("anonymous_id", "uniq", "visitors")
PAGE_VIEW_NAMES = ["page_view", "pageview", "screen_view"]


def counted(operator: str, names: list[str]) -> Any:
    """Return a count of the events whose name matches."""
    return {**COUNT, "alias": "views", "filters": [where("event_name", operator, names)]}


PAGE_VIEWS = counted("in", PAGE_VIEW_NAMES)
BOTS = {**COUNT, "alias": "bots", "filters": [where("is_bot", "eq", value=True)]}
BERLIN = {"timezone": "Europe/Berlin"}
LONDON = {"timezone": "Europe/London"}
SUMMER = {"startDate": "2025-07-01", "endDate": "2025-07-31"}
JANUARY_FIRST = 20_454


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(query_body(), True, id="a count of whole days"),
        pytest.param(query_body(**BERLIN), False, id="a count of divided days"),
        pytest.param(query_body(VISITORS, **BERLIN), True, id="visitors of divided days"),
        pytest.param(query_body(VISITORS, PAGE_VIEWS), True, id="page views"),
        pytest.param(
            query_body(counted("in", PAGE_VIEW_NAMES[:2])), False, id="some names of page views"
        ),
        pytest.param(
            query_body(counted("in", [*PAGE_VIEW_NAMES, "buy"])), False, id="another name too"
        ),
        pytest.param(
            query_body(counted("not_in", PAGE_VIEW_NAMES)), False, id="all but page views"
        ),
        pytest.param(query_body(COUNT, group_by=["country"]), True, id="a label"),
        pytest.param(query_body(COUNT, group_by=["session_id"]), True, id="an id"),
        pytest.param(query_body(VISITORS, group_by=["path"]), False, id="a path"),
        pytest.param(
            query_body(VISITORS, filters=[where("event_name", "eq", "buy")]),
            False,
            id="names of events",
        ),
        pytest.param(query_body(COUNT, BOTS), False, id="a select that sees bots"),
        pytest.param(query_body(select("value", "sum", "s")), False, id="a sum"),
        pytest.param(query_body(granularity="daily"), True, id="days"),
        pytest.param(query_body(granularity="hourly"), False, id="hours"),
        pytest.param(
            query_body(VISITORS, granularity="daily", **BERLIN), False, id="days of a zone"
        ),
        pytest.param(
            query_body(VISITORS, granularity="daily", **LONDON), True, id="days of London in winter"
        ),
        pytest.param(
            query_body(VISITORS, granularity="daily", **LONDON, compare=SUMMER),
            False,
            id="beside days of London in summer",
        ),
        pytest.param(
            query_body(VISITORS, **BERLIN) | {"endDate": "2026-01-01"},
            False,
            id="no whole day",
        ),
        pytest.param(query_body(table="sessions"), False, id="another table"),
    ],
)
def test_rollup_is_read_where_it_has_all_that_a_query_needs(
    body: dict[str, Any], expected: bool
) -> None:
    plan = plan_of(body)
    assert reads_daily_rows(plan, is_distributed=False) == expected
    assert not reads_daily_rows(plan, is_distributed=True)


def test_days_at_the_ends_of_a_range_are_divided_unless_it_has_whole_utc_days() -> None:
    assert divided_days([plan_of(query_body()).range]) == []
    assert divided_days([plan_of(query_body(**BERLIN)).range]) == [
        JANUARY_FIRST - 1,
        JANUARY_FIRST + 30,
    ]
