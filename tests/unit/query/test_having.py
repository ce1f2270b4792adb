"""Conditions for a row that the store returns whatever they are."""

import pytest

from headrace.model.catalog import Operator
from headrace.model.plan import PlannedHaving
from headrace.query.having import matches_having
from testing.queries import plan_of, query_body, select, where

BODY = query_body(select("*", "count", "n"), select("value", "avg", "mean"))


@pytest.mark.parametrize(
    ("operator", "matching"),
    [
        ("eq", {2}),
        ("ne", {1, 3, None}),
        ("gt", {3}),
        ("gte", {2, 3}),
        ("lt", {1}),
        ("lte", {1, 2}),
    ],
)
def test_null_matches_only_ne(operator: str, matching: set[float | None]) -> None:
    plan = plan_of({**BODY, "having": [where("mean", operator, 2)]})
    assert plan.having == (PlannedHaving(1, Operator(operator), 2),)
    assert {value for value in (1, 2, 3, None) if matches_having(plan, [9, value])} == matching


def test_all_conditions_must_match() -> None:
    plan = plan_of({**BODY, "having": [where("n", "gt", 1), where("mean", "lt", 5)]})
    rows = [[1, 1], [2, 1], [2, 5]]
    assert [row for row in rows if matches_having(plan, row)] == [[2, 1]]
