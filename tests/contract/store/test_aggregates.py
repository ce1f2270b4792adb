"""Edges of aggregates over a real store: thresholds, no rows, zeros, sums that overflow."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.model.catalog import EVENTS, PERFORMANCE
from testing.queries import COUNT, WEBSITE, query_body, query_rows, select, where
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

JANUARY_5 = 1_767_571_200_000
SHARES = [
    select("metric_value", f"{level}_share", level)
    for level in ("good", "needs_improvement", "poor")
]
VITALS: list[tuple[str, float | None]] = [
    *(("LCP", value) for value in (0.0, 2500.0, 2500.5, 4000.0, 4000.5, None)),
    *(("CLS", value) for value in (0.1, 0.25, 0.26)),
    ("FPS", 60.0),
]
"""Values on both sides of each threshold, one that is missing, and a metric without thresholds."""


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def measured(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Tables with VITALS, and with events whose `value` is a zero, none or close to overflow."""
    common: dict[str, Any] = {"website_id": WEBSITE, "time": JANUARY_5}
    values = [("zeros", 0.0), ("zeros", -0.0), ("none", None), ("large", 1.7e308)]
    with made_tables(request, request.param) as store:
        store.insert(
            PERFORMANCE,
            [{**common, "metric_name": name, "metric_value": value} for name, value in VITALS],
        )
        store.insert(
            EVENTS,
            [{**common, "event_name": name, "value": value} for name, value in values]
            + [{**common, "event_name": "large", "value": 1.7e308}],
        )
        yield store


@pytest.mark.parametrize(
    ("metric", "good", "needs_improvement", "poor"),
    [
        pytest.param("LCP", 2 / 5, 2 / 5, 1 / 5, id="LCP"),
        pytest.param("CLS", 1 / 3, 1 / 3, 1 / 3, id="CLS"),
        pytest.param("FPS", None, None, None, id="no thresholds"),
        pytest.param("TTFB", None, None, None, id="no rows"),
    ],
)
def test_share_is_of_values_that_are_rated_and_a_threshold_is_the_better_side(
    measured: Tables,
    metric: str,
    good: float | None,
    needs_improvement: float | None,
    poor: float | None,
) -> None:
    body = query_body(*SHARES, table="performance", filters=[where("metric_name", "eq", metric)])
    assert query_rows(measured, body) == [
        {"good": good, "needs_improvement": needs_improvement, "poor": poor}
    ]


def test_minus_zero_and_zero_are_one_distinct_value(measured: Tables) -> None:
    filters = [where("event_name", "eq", "zeros")]
    body = query_body(select("value", "uniq", "n"), filters=filters)
    assert query_rows(measured, body) == [{"n": 1}]


def test_count_of_a_column_counts_rows_without_a_value_too(measured: Tables) -> None:
    body = query_body(select("value", "count", "n"), group_by=["event_name"])
    assert query_rows(measured, body) == [
        {"event_name": "large", "n": 2},
        {"event_name": "zeros", "n": 2},
        {"event_name": "none", "n": 1},
    ]


def test_first_and_last_datetime_of_no_rows_are_null(measured: Tables) -> None:
    never = [where("event_name", "eq", "never")]
    seen = [select("time", "earliest", "first"), select("time", "latest", "last")]
    body = query_body(COUNT, *seen, filters=never)
    assert query_rows(measured, body) == [{"n": 0, "first": None, "last": None}]


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        pytest.param("gt", [], id="not greater than any number"),
        pytest.param("ne", ["large", "none", "zeros"], id="null matches ne alone"),
    ],
)
@pytest.mark.parametrize("aggregate", ["sum", "avg"])
def test_result_that_overflows_is_null_in_having(
    measured: Tables, aggregate: str, operator: str, names: list[str]
) -> None:
    body = query_body(
        select("value", aggregate, "x"),
        group_by=["event_name"],
        having=[where("x", operator, 1)],
        orderBy=[{"field": "event_name"}],
    )
    assert [row["event_name"] for row in query_rows(measured, body)] == names
