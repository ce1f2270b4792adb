"""The steps of funnels and the cohorts of retention are those of the oracle."""

import json
from datetime import datetime, timedelta
from typing import Final

import pytest

from testing.browsers.page import Page
from testing.service import Service, bearer
from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import DAYS, GERMANY, MARKS, KnownPage, Row
from tests.e2e.page.oracle.known_traffic import ZONE
from tests.oracle import Stored
from tests.oracle.funnel import evaluate_funnel
from tests.oracle.retention import evaluate_retention
from tests.oracle.stored import event_row

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
            f"{row['step']} {row['name'] or 'search, add_to_cart'}",
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
        ["Country", "Saw a page", "search, add_to_cart", "Bought"],
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


@pytest.mark.parametrize(("granularity", "bucket_days"), [("weekly", 7), ("daily", 1)])
def test_periods_that_are_not_over_are_empty_or_so_far(
    known: KnownPage, service: Service, granularity: str, bucket_days: int
) -> None:
    now = datetime.now(ZONE)
    recent = KnownPage(Page(known.page.tab, service, service.website()), Stored())
    _send_returning_visitors(recent, now, bucket_days)
    first_day = (now - timedelta(days=4 * bucket_days)).date().isoformat()
    days = {**DAYS, "startDate": first_day, "endDate": now.date().isoformat()}
    query: Row = {
        "first": {"filters": []},
        "return": {"filters": []},
        "granularity": granularity,
        "periods": 7,
        "by": "anonymous_id",
    }
    now_ms = int(now.timestamp() * 1000)
    cohorts = evaluate_retention({**days, **query}, recent.stored, now_ms)
    begun = max(sum(count is not None for count in row["returned"]) for row in cohorts)

    recent.open("retention", query=json.dumps(query), **{"from": first_day, "to": days["endDate"]})
    titles = recent.page.until(
        "[...document.querySelectorAll('.cohorts tbody tr')].map((row) =>"
        " [...row.querySelectorAll('.heat')].map((one) => one.title))"
    )

    assert 4 <= begun < query["periods"]
    assert [row[2:] for row in recent.table(".cohorts")[1:]] == [
        [
            shown.percent(share) if share is not None else ""
            for share in _shares_together(cohorts, begun)
        ],
        *(
            [
                "" if count is None else shown.percent(count / row["size"])
                for count in row["returned"][:begun]
            ]
            for row in cohorts
        ),
    ]
    assert titles[1:] == [_titles(row, begun) for row in cohorts]
    assert titles[1:][-1] == [f"{cohorts[-1]['returned'][0]} of {cohorts[-1]['size']} so far"] + [
        "Not yet"
    ] * (begun - 1)
    assert recent.page.problems() == []


def _send_returning_visitors(known: KnownPage, now: datetime, bucket_days: int) -> None:
    """Store visitors who began in one of the last buckets and came back in some later ones."""
    items: list[Row] = []
    for visitor in range(40):
        began = visitor % 5
        for back in range(began, -1, -1):
            if back == began or (visitor + back) % 3:
                time = now - timedelta(days=back * bucket_days, seconds=1)
                items += [
                    {
                        "name": "seen",
                        "anonymousId": f"visitor {visitor}",
                        "timestamp": int(time.timestamp() * 1000) - more,
                    }
                    for more in range(1 + visitor % 2)
                ]
    response = known.page.service.post(
        f"/track?website_id={known.page.website}", items, headers=bearer(known.page.service.master)
    )
    assert response.status_code == 200, response.text
    for item in items:
        known.stored.events.append(event_row(item, arrival=len(known.stored.events), visitor={}))


def _shares_together(cohorts: list[Row], begun: int) -> list[float | None]:
    """Return the share of each period, of the cohorts for which it is over."""
    shares: list[float | None] = []
    for number in range(begun):
        over = [row for row in cohorts if row["returned"][number + 1] is not None]
        size = sum(row["size"] for row in over)
        shares.append(sum(row["returned"][number] for row in over) / size if over else None)
    return shares


def _titles(row: Row, begun: int) -> list[str]:
    counts = row["returned"]
    return [
        "Not yet"
        if counts[number] is None
        else f"{counts[number]} of {row['size']}{' so far' if counts[number + 1] is None else ''}"
        for number in range(begun)
    ]
