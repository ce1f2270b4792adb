"""The charts of the page: their lines, axes, labels and tables, in a real Chromium."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, noon_zone
from testing.service import Json, Service, bearer
from tests.e2e.page.oracle.drawn_chart import recorded_drawing

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

ZONE = noon_zone()


@pytest.mark.parametrize(
    ("path", "click", "heads", "row"),
    [
        ("/", "", ["Date", "Visitors", "Before"], "12"),
        ("vitals", "", ["Date", "p75", "Samples"], "Poor 5.50 s"),
        ("errors", ".error-groups a", ["Date", "Errors"], "1"),
    ],
    ids=["overview", "vitals", "error"],
)
def test_chart_has_a_table_of_the_same_values(
    page: Page, path: str, click: str, heads: list[str], row: str
) -> None:
    page.open(path, last="7")
    if click:
        page.click(click)
    page.click(".lead .chart-head button", "Table")
    page.settle()
    cells = "[...document.querySelectorAll('.lead %s')].map((one) => one.innerText.trim())"
    page.until(f"({cells % 'th'}).length === {len(heads)}")

    assert page.until(cells % "th") == heads
    assert len(page.until(cells % "tbody tr")) == 7
    assert page.until(f"({cells % 'td.number'}).includes({json.dumps(row)})")
    assert page.problems() == []


@pytest.mark.parametrize("view", ["explore", "vitals", "errors"])
def test_line_to_the_day_that_goes_on_is_dotted(page: Page, view: str) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    send_on_two_days(page.service, own.website)
    query: Json = {
        "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]},
        "lastDays": 3,
        "timezone": ZONE.key,
        "granularity": "daily",
        "fill": True,
    }
    with recorded_drawing(own):
        shown = json.dumps(query) if view == "explore" else ""
        own.open(view, timezone=ZONE.key, last="3", granularity="daily", query=shown)
        own.settle()
        if view == "errors":
            own.until("(document.querySelector('.error-groups a').click(), true)")
        drawn = "document.querySelector('.chart canvas').drawn.lines"
        lines = own.until(
            f"{drawn}.length && {drawn}.map(({{dash, points}}) => [dash, points.length])"
        )

    first_drawn = 2 if view != "vitals" else 1  # a day without a value is no point
    assert lines == [[[], first_drawn], [[2, 4], 2]]
    assert own.problems() == []


def test_dashes_keep_their_length_when_the_window_goes_to_a_sharper_screen(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    send_on_two_days(page.service, own.website)
    dashes = "document.querySelector('.lead .chart canvas').drawn.lines.map(({dash}) => dash)"
    with recorded_drawing(own):
        own.open("/", timezone=ZONE.key, last="3", granularity="daily", compare="none")
        own.settle()
        before = own.until(dashes)
        own.set_width(1280, scale=2)
        after = own.until(f"devicePixelRatio === 2 && {dashes}.length === 2 && {dashes}")
        own.set_width(1280)

    assert before == after == [[], [2, 4]]
    assert own.problems() == []


def send_on_two_days(service: Service, website: str) -> None:
    """Send an event, a vital and an error, yesterday and today."""
    now = datetime.now(UTC)
    for time in (now - timedelta(days=1), now):
        one = {"path": "/", "anonymousId": "v", "timestamp": int(time.timestamp() * 1000)}
        for path, item in {
            "/track": {"name": "screen_view", **one},
            "/vitals": {"metricName": "LCP", "metricValue": 1000, **one},
            "/errors": {"message": "broken", **one},
        }.items():
            sent = service.post(f"{path}?website_id={website}", [item])
            assert sent.status_code == 200, sent.text


def point_at_chart(page: Page, *, at: float = 1 / 3) -> None:
    """Move the mouse to a point of the chart, which shows its values there."""
    page.until("document.querySelector('.u-over').scrollIntoView({block: 'center'}) || true")
    left, top = page.until(
        f"((one) => [one.left + one.width * {at}, one.top + 60])"
        "(document.querySelector('.u-over').getBoundingClientRect())"
    )
    page.tab.command("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=top)


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_of_lines_are_shortened_beside_their_values(page: Page, width: int) -> None:
    query = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
    by_day = {"granularity": "daily", "fill": True, "top": 8, "lastDays": 30}
    page.set_width(width)
    page.open(
        "explore", query=json.dumps({"query": {**query, "groupBy": ["event_name"]}, **by_day})
    )
    page.settle()
    point_at_chart(page)
    right_of = "[...document.querySelectorAll(%r)].map((one) => one.getBoundingClientRect().right)"
    (tip,) = page.until(f"(all => all.length && all)({right_of % '.tip'})")
    values, lines = (page.until(right_of % one) for one in (".tip div span", ".legend span"))
    (card,) = page.until(right_of % ".answer")
    overflow = page.overflow()
    page.set_width(1280)

    assert len(values) == len(lines) > 3
    assert max(values) <= tip <= card
    assert max(lines) <= card
    assert overflow <= 0


def test_what_was_before_comes_after_what_is_now(page: Page) -> None:
    selects = [{"field": "*", "aggregate": "count", "alias": "n"}]
    compared = {"granularity": "daily", "compare": "previous_period", "lastDays": 7}
    page.open(
        "explore", query=json.dumps({"query": {"table": "events", "selects": selects}, **compared})
    )
    page.settle()
    point_at_chart(page)
    page.until("document.querySelector('.tip') !== null")
    shown = (
        "[...document.querySelectorAll('%s')].map((one) => [one, one.getBoundingClientRect()])"
        ".sort(([, a], [, b]) => a.top - b.top || a.left - b.left)"
        ".map(([one]) => one.querySelector('bdi').textContent)"
    )

    assert page.until(shown % ".tip div") == ["n", "n before"]
    assert page.until(shown % ".legend span") == ["n", "n before"]


def test_the_line_below_the_mouse_is_at_the_values_that_are_shown(page: Page) -> None:
    page.set_width(1280)
    page.open("/", last="7")
    page.settle()
    point_at_chart(page, at=0.4)  # of the way between six days and the first: between two of them
    page.until("document.querySelector('.tip') !== null")
    middles = page.until(
        "['.u-cursor-x', '.u-cursor-pt'].map((name) => ((one) => one.left + one.width / 2)"
        "(document.querySelector(name).getBoundingClientRect()))"
    )

    assert abs(middles[0] - middles[1]) <= 1


def test_a_line_is_hidden_and_shown_by_its_name_in_the_legend(page: Page) -> None:
    query = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
    by_day = {"granularity": "daily", "fill": True, "lastDays": 7}
    page.open("explore", query=json.dumps({"query": {**query, "groupBy": ["path"]}, **by_day}))
    page.settle()
    names: list[str] = page.until(
        "((all) => all.length > 2 && all.map((one) => one.textContent))"
        "([...document.querySelectorAll('.legend button')])"
    )
    first, *others = names
    pressed = (
        "[...document.querySelectorAll('.legend button')]"
        ".map((one) => one.getAttribute('aria-pressed'))"
    )
    assert shown_lines(page, names)
    colors: list[str] = page.until(_TIP_COLORS)

    page.click(".legend button", first)
    is_hidden = shown_lines(page, others), page.until(pressed), page.until(_TIP_COLORS)
    page.click(".legend button", first)
    is_shown = shown_lines(page, names)
    for name in names:  # without any line there would be nothing to see
        page.click(".legend button", name)

    assert is_hidden == (True, ["false", *["true"] * len(others)], colors[1:])
    assert is_shown
    assert shown_lines(page, names)
    assert page.until(pressed) == ["true"] * len(names)
    assert page.problems() == []


_TIP_COLORS = "[...document.querySelectorAll('.tip i')].map((one) => one.style.background)"


def shown_lines(page: Page, names: list[str]) -> bool:
    """Wait until the chart has the lines of these names, and no others."""
    page.settle()
    page.tab.command("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    point_at_chart(page)
    shown = "[...document.querySelectorAll('.tip bdi')].map((one) => one.textContent).join()"
    return bool(page.until(f"{shown} === {json.dumps(','.join(names))}"))


@pytest.mark.parametrize(
    ("path", "click"),
    [("/", ""), ("vitals", ""), ("errors", ".error-groups a"), ("explore", "")],
    ids=["overview", "vitals", "error", "explore"],
)
def test_a_chart_that_gets_shorter_below_the_mouse_is_drawn(
    page: Page, path: str, click: str
) -> None:
    select = {"field": "*", "aggregate": "count", "alias": "n"}
    body: Json = {"query": {"table": "events", "selects": [select]}, "granularity": "daily"}
    shown = {7: "", 30: ""}
    if path == "explore":
        shown = {days: json.dumps({**body, "fill": True, "lastDays": days}) for days in shown}
    page.set_width(1280)
    page.open(path, last="7", query=shown[7])
    page.settle()
    if click:
        page.click(click)
        page.until("document.querySelector('.error-head')")
    address = page.until("location.href")
    changed = address.replace("last=7", "last=30").replace("lastDays%22:7", "lastDays%22:30")
    page.tab.run(
        "const link = document.createElement('a'); [link.href, link.textContent] ="
        " [arguments[0], 'Longer']; document.body.append(link); arguments[1]()",
        changed,
    )
    page.click("body > a", "Longer")
    page.settle()
    point_at_chart(page, at=0.9)
    before = page.until("document.querySelector('.tip b')?.textContent")
    page.tab.run("history.back(); arguments[0]()")
    page.until(f"location.href === {json.dumps(address)}")
    page.settle()

    assert before
    assert page.problems() == []


def test_an_axis_of_huge_values_has_labels(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    revenue = {"value": 3e20, "currency": "EUR"}
    event = {"name": "bought", "anonymousId": "v", "properties": revenue}
    track = f"/track?website_id={own.website}"
    key = bearer(page.service.master)
    assert page.service.post(track, [event], headers=key).status_code == 200
    select = {"field": "value", "aggregate": "sum", "alias": "total"}
    query = {"query": {"table": "events", "selects": [select]}, "lastDays": 3}
    with recorded_drawing(own):
        own.open("explore", query=json.dumps({**query, "granularity": "daily", "fill": True}))
        own.settle()
        labels = own.until(
            "document.querySelector('.chart canvas').drawn.labels"
            ".filter(([align]) => align === 'right').map(([, text]) => text)"
        )

    assert labels == ["0", "5E19", "1E20", "1.5E20", "2E20", "2.5E20", "3E20"]
    assert own.problems() == []


@pytest.mark.parametrize(
    ("path", "metric", "labels"),
    [
        ("explore", "", ["0", "2", "4", "6", "8", "10", "12"]),
        ("/", "visitors", ["0", "2", "4", "6", "8", "10", "12"]),
        ("/", "bounceRate", ["0%", "20%", "40%", "60%", "80%", "100%"]),
        ("/", "medianDuration", ["0s", "30s", "1m 00s", "1m 30s", "2m 00s"]),
        ("vitals", "", ["0", "1 s", "2 s", "3 s", "4 s"]),
    ],
    ids=["counts", "visitors", "shares", "durations", "vitals"],
)
def test_an_axis_ends_with_a_round_value_above_the_line(
    page: Page, path: str, metric: str, labels: list[str]
) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    now_ms = int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1000)
    events = [
        {"name": "a", "anonymousId": f"v{at}", "sessionId": f"s{at}", "timestamp": now_ms + after}
        for at in range(11)
        for after in (0, 101_000)[: 1 if path == "explore" else 2]
    ]
    vital = {"metricName": "LCP", "metricValue": 3100, "path": "/", "timestamp": now_ms}
    for name, items in (("track", events), ("vitals", [vital])):
        sent = page.service.post(f"/{name}?website_id={own.website}", items)
        assert sent.status_code == 200, sent.text
    select = {"field": "*", "aggregate": "count", "alias": "n"}
    query = {"query": {"table": "events", "selects": [select]}, "lastDays": 3, "fill": True}
    with recorded_drawing(own):
        own.open(
            path,
            last="3",
            granularity="daily",
            metric=metric,
            query=json.dumps({**query, "granularity": "daily"}) if path == "explore" else "",
        )
        own.settle()
        drawn = own.until(
            "document.querySelector('.chart canvas').drawn.labels"
            ".filter(([align, text]) => align === 'right' && !/good|poor/.test(text))"
            ".map(([, text]) => text)"
        )

    assert drawn == labels
    assert own.problems() == []


def test_a_page_that_comes_into_sight_again_shows_what_is_there_now(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    days = "document.querySelector('[title=\"Range of days\"] small').textContent"
    views = "document.querySelectorAll('.figure .value')[1].textContent"
    send_on_two_days(page.service, own.website)
    own.open("/", timezone=ZONE.key, last="7")
    own.settle()
    before = own.until(views), own.until(days)
    send_on_two_days(page.service, own.website)
    own.until("(Date.now = ((now) => () => now() + 86_400_000)(Date.now))")
    own.until("document.dispatchEvent(new Event('visibilitychange', {bubbles: true}))")
    own.until(f"{views} === '4' && document.querySelector('.ranked b').textContent === '4'")
    today = datetime.now(ZONE)
    tomorrow = today + timedelta(days=1)

    assert before[0] == "2"
    assert before[1].endswith(f"{today.day} {today:%b %Y}")
    assert own.until(days).endswith(f"{tomorrow.day} {tomorrow:%b %Y}")
    assert own.problems() == []


def test_the_line_of_an_error_ends_with_the_hour_that_goes_on(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    fault = {"timestamp": now_ms, "path": "/", "message": "Broken"}
    assert own.service.post(f"/errors?client_id={own.website}", [fault]).status_code == 200
    begun = {datetime.now(ZONE).hour + 1}
    own.open("errors", last="1", timezone=str(ZONE))
    points = own.until("document.querySelector('.error-groups polyline')?.getAttribute('points')")
    begun.add(datetime.now(ZONE).hour + 1)

    assert len(points.split()) in begun
    assert own.problems() == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((2900, 2900, 2900, 9000, 9000, 9000, 9000), ["good up to 2.50 s", "poor above 4.00 s"]),
        ((2550, 2700, 2550, 2700, 2550, 2700, 2550), ["good up to 2.50 s"]),
    ],
    ids=["ends above", "is above everywhere"],
)
def test_names_of_limits_stand_beside_the_line_of_a_web_vital(
    page: Page, values: tuple[int, ...], named: list[str]
) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    now = datetime.now(UTC)
    vitals = [
        {
            "metricName": "LCP",
            "metricValue": value,
            "path": "/",
            "timestamp": int((now - timedelta(days=days)).timestamp() * 1000),
        }
        for days, value in enumerate(values)
    ]
    sent = page.service.post(f"/vitals?website_id={own.website}", vitals)
    assert sent.status_code == 200, sent.text
    with recorded_drawing(own):
        own.open("vitals", timezone=ZONE.key, last="7", granularity="daily")
        own.settle()
        drawn = own.until(
            "((canvas) => canvas?.drawn?.lines.length && {lines: canvas.drawn.lines, names:"
            " canvas.drawn.labels.filter(([, text]) => /up to|above/.test(text))"
            " .map(([, text, right, bottom]) => ({text, right, bottom,"
            " left: right - canvas.getContext('2d').measureText(text).width,"
            " top: bottom - 11 * devicePixelRatio}))})"
            "(document.querySelector('.lead .chart canvas'))"
        )

    names: list[dict[str, Any]] = drawn["names"]
    crossed = [
        name["text"]
        for name in names
        for line in drawn["lines"]
        for start, end in pairwise(line["points"])
        if _crosses(start, end, name)
    ]
    assert [name["text"] for name in names] == named
    assert crossed == []
    assert own.problems() == []


def _crosses(start: list[float], end: list[float], box: dict[str, Any]) -> bool:
    """Return whether a part of a line is in a box, by a hundred points of it."""
    points = (
        [one + (other - one) * step / 100 for one, other in zip(start, end, strict=True)]
        for step in range(101)
    )
    return any(box["left"] < x < box["right"] and box["top"] < y < box["bottom"] for x, y in points)
