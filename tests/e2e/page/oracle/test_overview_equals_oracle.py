"""The overview shows the totals, charts and lists that the oracle has of the same events."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import pytest

from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import (
    COUNT,
    DAYS,
    GERMANY,
    MARKS,
    KnownPage,
    Row,
    Texts,
    unique,
)
from tests.e2e.page.oracle.known_traffic import ZONE
from tests.oracle.standard import evaluate_standard

pytestmark = MARKS

Write = Callable[[float | None], str]

METRICS: Final[dict[str, tuple[str, Write, Write]]] = {
    "visitors": ("Visitors", shown.short, shown.exact),
    "pageViews": ("Page views", shown.short, shown.exact),
    "sessions": ("Sessions", shown.short, shown.exact),
    "bounceRate": (
        "Bounce rate",
        shown.percent,
        lambda value: shown.NOTHING if value is None else f"{shown.exact(value * 100)} %",
    ),
    "medianDuration": (
        "Median session",
        shown.duration,
        lambda value: shown.NOTHING if value is None else f"{shown.exact(value)} s",
    ),
}
LISTS: Final = {
    "pages": ("Pages", "views", "pageViews"),
    "entry_pages": ("Entry", "sessions", "sessions"),
    "exit_pages": ("Exit", "sessions", "sessions"),
    "countries": ("Countries", "visitors", "visitors"),
    "referrers": ("Referrers", "sessions", "sessions"),
    "campaigns": ("Campaigns", "sessions", "sessions"),
    "browsers": ("Browsers", "visitors", "visitors"),
    "systems": ("Systems", "visitors", "visitors"),
    "devices": ("Devices", "visitors", "visitors"),
    "events": ("Events", "events", "events"),
}
"""Each list of the overview: its tab, its number, and the total that shares are of."""

PERIODS: Final[tuple[tuple[str, dict[str, str], Row], ...]] = (
    ("daily", {}, {"granularity": "daily", "compare": "previous_period"}),
    (
        "hourly, with a day of 25 hours",
        {"from": "2025-11-01", "to": "2025-11-03"},
        {
            "startDate": "2025-11-01",
            "endDate": "2025-11-03",
            "granularity": "hourly",
            "compare": "previous_period",
        },
    ),
    (
        "weekly beside the year before, of one country",
        {
            "granularity": "weekly",
            "compare": "previous_year",
            "filters": json.dumps([GERMANY]),
        },
        {"granularity": "weekly", "compare": "previous_year", "filters": [GERMANY]},
    ),
    ("alone", {"compare": "none"}, {"granularity": "daily"}),
)


@pytest.mark.parametrize(
    ("parameters", "body"),
    [period[1:] for period in PERIODS],
    ids=[period[0] for period in PERIODS],
)
def test_overview_shows_the_totals_charts_and_lists_of_the_oracle(
    known: KnownPage, parameters: dict[str, str], body: Row
) -> None:
    types = ["summary", "timeseries", *LISTS]
    expected: Row = dict(
        evaluate_standard(
            {**DAYS, **body, "types": types}, lambda custom: known.answer({**custom}).rows, 0
        )
    )
    granularity = body["granularity"]
    if is_before_all := body.get("compare") == "previous_year":  # all events are of one autumn
        expected["summary"].pop("previous")
        expected["timeseries"] = [{**row, "previous": None} for row in expected["timeseries"]]
    nothing_before = f"{shown.NOTHING} {_no_events_before(known)}" if is_before_all else ""

    known.open("/", **parameters)

    assert known.texts(".figure", ".name", ".value", ".change") == [
        [
            name,
            short(expected["summary"][key]),
            nothing_before or _change(expected["summary"], key, short),
        ]
        for key, (name, short, _) in METRICS.items()
    ]
    for key, (name, _, exact) in METRICS.items():
        known.click(".figure", name)
        assert known.chart() == _chart(expected["timeseries"], key, name, exact, granularity)
    for kind, (tab, number, total) in LISTS.items():
        known.click(".breakdown [role=tab]", tab)
        lines = known.texts(f".breakdown[aria-label={tab}] .ranked li", "bdi", "small", "b")
        assert lines == _list(kind, expected[kind], number, expected["summary"].get(total))
    assert known.page.problems() == []


def _no_events_before(known: KnownPage) -> str:
    first_ms = min(row["time"] for row in known.stored.events)
    first = datetime.fromtimestamp(first_ms / 1000, UTC).isoformat()
    return f"Nothing to compare with: no events before {shown.instant(first, ZONE)}"


def _change(summary: Row, key: str, short: Write) -> str:
    if "previous" not in summary:
        return ""
    before = summary["previous"][key]
    return shown.change(summary[key], before, short(before))


def _chart(rows: list[Row], key: str, name: str, exact: Write, granularity: str) -> Texts:
    is_compared = any(row.get("previous") for row in rows)
    lines = [["Date", name, *(["Before"] if is_compared else [])]]
    for row in rows:
        compared: Row = row.get("previous") or {}
        before = [exact(compared.get(key))] if is_compared else []
        lines.append([shown.bucket(row["date"], granularity), exact(row[key]), *before])
    return lines


def _list(kind: str, rows: list[Row], number: str, total: int | None) -> Texts:
    words = {"countries": shown.country, "referrers": shown.referrer}.get(kind, str)
    numbers = {"views", "visitors", "sessions", "events", "bounces", "previous"}
    return [
        [
            " · ".join(
                words(value) for name, value in row.items() if name not in numbers and value
            ),
            shown.percent(row[number] / total) if total and row[number] <= total else "",
            shown.short(row[number]),
        ]
        for row in rows
    ]


def test_overview_filtered_by_a_page_shows_what_events_alone_have(known: KnownPage) -> None:
    is_page = {"field": "path", "operator": "eq", "value": "/beans"}
    view = {
        "field": "event_name",
        "operator": "in",
        "value": ["screen_view", "pageview", "page_view"],
    }
    selects = [
        unique("anonymous_id", "visitors"),
        unique("session_id", "sessions"),
        {**COUNT, "alias": "pageViews", "filters": [view]},
    ]
    answer = known.answer(
        {
            "query": {"table": "events", "selects": selects, "filters": [is_page]},
            "granularity": "daily",
            "compare": "previous_period",
            "fill": True,
            "totals": True,
        }
    )
    totals = answer.totals
    assert totals is not None

    known.open("/", filters=json.dumps([is_page]))

    counts = ("visitors", "pageViews", "sessions")
    assert known.texts(".figure", ".name", ".value", ".change") == [
        [METRICS[key][0], shown.short(totals[key]), _change(totals, key, shown.short)]
        for key in counts
    ] + [
        [METRICS[key][0], shown.NOTHING, "none before"] for key in ("bounceRate", "medianDuration")
    ]
    for key in counts:
        known.click(".figure", METRICS[key][0])
        assert known.chart() == _chart(answer.rows, key, METRICS[key][0], shown.exact, "daily")
