"""Errors are grouped, drawn, located and traced as the oracle has them."""

from decimal import ROUND_HALF_UP, Decimal

import pytest

from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import COUNT, MARKS, SPAN, KnownPage, Texts, unique
from tests.e2e.page.oracle.known_traffic import ZONE

pytestmark = MARKS


def test_error_groups_are_those_of_the_oracle(known: KnownPage) -> None:
    selects = [
        COUNT,
        unique("anonymous_id", "visitors"),
        unique("session_id", "sessions"),
        unique("browser_name", "browsers"),
        *SPAN,
    ]
    groups = known.rows("errors", selects, ["fingerprint"])
    texts = known.rows("errors", [COUNT], ["fingerprint", "error_type", "message"])
    first = {row["fingerprint"]: row for row in reversed(texts)}
    series = known.rows("errors", [COUNT], ["fingerprint"], granularity="daily", fill=True)

    known.open("errors")

    lines = known.texts(
        *(".error-groups li > a", ".what b", ".what .message"),
        *("b.number", "span.number"),
    )
    links = "[...document.querySelectorAll('.error-groups li > a')].map((one) => %s)"
    spans = known.page.until(links % "one.querySelector('.seen').title")
    drawn = known.page.until(links % "one.querySelector('polyline').getAttribute('points')")
    assert lines == [
        [
            first[row["fingerprint"]]["error_type"] or "Error",
            first[row["fingerprint"]]["message"],
            _counted(row["count"], "error"),
            " ".join(_counted(row[f"{word}s"], word) for word in ("visitor", "session", "browser")),
        ]
        for row in groups
    ]
    assert spans == [
        f"First {shown.instant(row['first'], ZONE)}, last {shown.instant(row['last'], ZONE)}"
        for row in groups
    ]
    assert drawn == [
        _points([one["count"] for one in series if one["fingerprint"] == row["fingerprint"]])
        for row in groups
    ]
    assert len(groups) > 3
    assert known.page.problems() == []


def _counted(count: int, word: str) -> str:
    return f"{shown.short(count)} {word}{'' if count == 1 else 's'}"


def _points(values: list[int]) -> str:
    """Return the points of a line of 120 by 28, two of them as a margin above and below."""
    step = 120 / (len(values) - 1)
    points = [
        (number * step, 28 - 2 - value / max(values) * 24) for number, value in enumerate(values)
    ]
    return " ".join(f"{_tenths(x)},{_tenths(y)}" for x, y in points)


def _tenths(value: float) -> Decimal:
    return Decimal(value).quantize(Decimal("0.1"), ROUND_HALF_UP)


@pytest.mark.parametrize("number", range(5))
def test_error_group_shows_when_and_where_it_occurred(known: KnownPage, number: int) -> None:
    group = known.rows("errors", [COUNT], ["fingerprint"])[number]["fingerprint"]
    own = [{"field": "fingerprint", "operator": "eq", "value": group}]
    selects = [
        COUNT,
        unique("anonymous_id", "visitors"),
        unique("session_id", "sessions"),
        *SPAN,
    ]
    about = {"query": {"table": "errors", "selects": selects, "filters": own}}
    total = known.answer(about).rows[0]
    messages = known.rows("errors", [COUNT], ["error_type", "message"], own, limit=20)
    series = known.rows("errors", [COUNT], (), own, granularity="daily", fill=True)
    locations = ["path", "browser_name", "os_name"]
    where = known.rows("errors", [COUNT], locations, own, limit=50)
    stacks = known.rows("errors", [COUNT], ["stack"], own, limit=5)

    known.open(f"errors/{group}")

    assert known.texts(".error-head p") == [
        [
            " · ".join(
                (
                    shown.counted(total["count"], "error"),
                    shown.counted(total["visitors"], "visitor"),
                    shown.counted(total["sessions"], "session"),
                    f"first {shown.instant(total['first'], ZONE)}",
                    f"last {shown.instant(total['last'], ZONE)}",
                )
            )
        ]
    ]
    assert known.chart() == [["Date", "Errors"]] + [
        [shown.bucket(row["date"], "daily"), shown.exact(row["count"])] for row in series
    ]
    assert known.table("[aria-label='Where it happened']") == [
        ["Page", "Browser", "System", "Errors"]
    ] + [
        [*(shown.cell(row[name]) for name in locations), shown.exact(row["count"])] for row in where
    ]
    assert known.texts(".column > section:first-child details", "summary", "pre") == [
        [shown.counted(row["count"], "time"), row["stack"].strip() or "No stack was sent"]
        for row in stacks
    ]
    if len(messages) > 1:
        assert known.table("[aria-label='Messages']") == [["Message", "Errors"]] + [
            [row["message"], shown.exact(row["count"])] for row in messages
        ]
    assert known.page.problems() == []


def test_sessions_of_an_error_show_what_they_did_before_it(known: KnownPage) -> None:
    group = known.rows("errors", [COUNT], ["fingerprint"])[0]["fingerprint"]
    own = [{"field": "fingerprint", "operator": "eq", "value": group}]
    latest = [{"field": "last", "direction": "desc"}]
    sessions = known.rows("errors", [COUNT, *SPAN], ["session_id"], own, orderBy=latest, limit=8)

    known.open(f"errors/{group}")
    trails = ".column > section:last-child details"
    assert known.texts(f"{trails} summary bdi") == [[row["session_id"]] for row in sessions]
    for row in sessions:
        known.click(f"{trails}:not([open]) summary", row["session_id"])
    known.page.until(f"document.querySelectorAll('{trails} .trail .refusal').length === 8")

    assert known.texts(f"{trails} .trail li") == [
        line for row in sessions for line in _trail(known, row["session_id"], row["last"])
    ]


def _trail(known: KnownPage, session: str, last: str) -> Texts:
    before = [
        {"field": "session_id", "operator": "eq", "value": session},
        {"field": "time", "operator": "lte", "value": last},
    ]
    latest = [{"field": "time", "direction": "desc"}]
    by = ["time", "event_name", "path"]
    rows = known.rows("events", [COUNT], by, before, orderBy=latest, limit=15)
    lines = [
        [f"{shown.instant(row['time'], ZONE)[-8:]} {row['event_name']} {row['path']}".strip()]
        for row in reversed(rows)
    ]
    return [*lines, [f"{shown.instant(last, ZONE)[-8:]} this error"]]
