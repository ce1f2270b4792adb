"""The steps of funnels and the cohorts of retention are those of the oracle."""

import json
from typing import Final

import pytest

from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import DAYS, GERMANY, MARKS, KnownPage, Row
from tests.oracle.funnel import evaluate_funnel
from tests.oracle.retention import evaluate_retention

pytestmark = MARKS

LONG_AFTER_MS: Final = 4_000_000_000_000
"""A time at which all periods are over."""

FUNNEL: Final[Row] = {
    "steps": [
        {"name": "Saw a page", "filters": [{"field": "path", "operator": "is_set"}]},
        {
            "filters": [
                {"field": "event_name", "operator": "in", "value": ["search", "add_to_cart"]}
            ]
        },
        {
            "name": "Bought",
            "filters": [{"field": "event_name", "operator": "eq", "value": "purchase"}],
        },
    ],
    "window": 604_800,
    "by": "anonymous_id",
}


@pytest.mark.parametrize(
    "change",
    [{}, {"by": "session_id", "window": 1800}],
    ids=["visitors", "sessions"],
)
def test_steps_of_a_funnel_are_those_of_the_oracle(known: KnownPage, change: Row) -> None:
    funnel = {**FUNNEL, **change}
    rows = evaluate_funnel({**DAYS, **funnel}, known.stored)

    known.open("funnels", query=json.dumps(funnel))

    assert known.texts(".funnel li", ".name", ".track > span", "b.number", "small") == [
        [
            f"{row['step']} {row['name'] or 'Step ' + str(row['step'])}",
            shown.percent(row["rate"]),
            shown.short(row["count"]),
            _beside_step(row, rows[number - 1]),
        ]
        for number, row in enumerate(rows)
    ]
    assert known.page.problems() == []


def _beside_step(row: Row, before: Row, separator: str = " ") -> str:
    if row["step"] == 1:
        return ""
    share = row["count"] / before["count"] if before["count"] else None
    text = f"{shown.percent(share)} of the step before"
    if row["medianSeconds"] is None:
        return text
    return f"{text}{separator}median {shown.duration(row['medianSeconds'])} after the first"


def test_groups_of_a_funnel_are_those_of_the_oracle(known: KnownPage) -> None:
    funnel = {**FUNNEL, "groupBy": "country"}
    rows = evaluate_funnel({**DAYS, **funnel}, known.stored)
    together = evaluate_funnel({**DAYS, **FUNNEL}, known.stored)
    groups = [rows[start : start + 3] for start in range(0, len(rows), 3)]

    known.open("funnels", query=json.dumps(funnel))
    titles = known.page.until(
        "[...document.querySelectorAll('.cohorts tbody tr:not(.all) td')].map((one) => one.title)"
    )

    assert known.table(".cohorts") == [
        ["Country", "Saw a page", "Step 2", "Bought"],
        ["All", *map(_group_cell, together)],
        *(
            [shown.group("country", steps[0]["country"]), *map(_group_cell, steps)]
            for steps in groups
        ),
    ]
    assert titles == [_beside_step(row, rows[number - 1], ", ") for number, row in enumerate(rows)]
    assert len(groups) > 5
    assert known.page.problems() == []


def _group_cell(row: Row) -> str:
    count = shown.short(row["count"])
    return count if row["step"] == 1 else f"{shown.percent(row['rate'])} {count}"


@pytest.mark.parametrize(
    ("granularity", "periods", "first"),
    [("weekly", 5, []), ("daily", 7, [GERMANY])],
    ids=["weeks", "days of one country"],
)
def test_cohorts_are_those_of_the_oracle(
    known: KnownPage, granularity: str, periods: int, first: list[Row]
) -> None:
    query: Row = {
        "first": {"filters": first},
        "return": {"filters": []},
        "granularity": granularity,
        "periods": periods,
        "by": "anonymous_id",
    }
    days = {**DAYS, "startDate": "2025-10-06"}
    cohorts = evaluate_retention({**days, **query}, known.stored, LONG_AFTER_MS)
    size = sum(row["size"] for row in cohorts)
    together = [sum(counts) for counts in zip(*(row["returned"] for row in cohorts), strict=True)]

    known.open("retention", query=json.dumps(query), **{"from": "2025-10-06"})

    unit = {"weekly": "week", "daily": "day"}[granularity]
    later = [f"+{number}" for number in range(1, periods)]
    assert known.table(".cohorts") == [
        ["First in", "Size", f"Same {unit}", *later],
        ["All", shown.short(size), *(shown.percent(count / size) for count in together)],
        *(
            [
                shown.bucket(row["date"], granularity),
                shown.short(row["size"]),
                *(shown.percent(count / row["size"]) for count in row["returned"]),
            ]
            for row in cohorts
        ),
    ]
    assert known.page.problems() == []
