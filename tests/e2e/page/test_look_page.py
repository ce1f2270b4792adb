"""What fits where: phones, long names, colors and paper, in a real Chromium."""

import json
from typing import Any

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page
from testing.service import bearer
from tests.e2e.page.seeded_events import START_MS, VISITORS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

PATHS = ["/", "explore", "vitals", "errors", "funnels", "retention", "live", "setup", "admin"]

DESKTOP = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0"


def test_what_follows_a_long_filter_stands_beside_it(page: Page) -> None:
    name = "name-" * 40
    steps: list[dict[str, list[dict[str, str]]]] = [
        {"filters": [{"field": "event_name", "operator": "eq", "value": name}]},
        {"filters": []},
    ]
    page.open("funnels", query=json.dumps({"steps": steps}))
    page.settle()
    right, left = page.until(
        "((filter, add) => filter &&"
        " [filter.getBoundingClientRect().right, add.getBoundingClientRect().left])"
        "(...document.querySelectorAll('.steps li:first-child .word'))"
    )

    assert 0 < left - right < 20


def test_steps_of_a_funnel_by_long_paths_are_in_sight(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    path = f"/{'long-name-' * 20}"
    event = {"name": "screen_view", "path": path, "anonymousId": "v", "timestamp": START_MS}
    sent = page.service.post(f"/track?website_id={own.website}", [event])
    assert sent.status_code == 200, sent.text
    steps: list[dict[str, str | list[str]]] = [
        {"name": f"A step with a long name, the {number}th", "filters": []} for number in range(4)
    ]
    own.set_width(1280)
    own.open("funnels", query=json.dumps({"steps": steps, "groupBy": "path"}))
    own.settle()
    hidden = own.until(
        "((one) => one && [one.scrollWidth - one.clientWidth])(document.querySelector('.scroll'))"
    )

    assert hidden == [0]
    assert own.until("document.querySelector('tbody th bdi').title") == path


@pytest.mark.parametrize(("path", "click"), [("vitals", ""), ("errors", ".error-groups a")])
def test_counts_beside_long_paths_are_in_sight(page: Page, path: str, click: str) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    one = {"timestamp": START_MS, "path": f"/{'long-name-' * 20}"}
    vital = {**one, "metricName": "LCP", "metricValue": 3000}
    error = {**one, "message": "cart is undefined", "ip": "8.8.8.8", "userAgent": DESKTOP}
    key = bearer(page.service.key("track:events", websites=[own.website]))
    for kind, item in (("vitals", vital), ("errors", error)):
        sent = page.service.post(f"/{kind}?website_id={own.website}", [item], headers=key)
        assert sent.status_code == 200, sent.text
    own.set_width(1280)
    own.open(path)
    own.settle()
    if click:
        own.click(click)
        own.until("document.querySelector('.cards.two .data')")
    own.settle()
    hidden = own.until(
        "((tables) => tables.length && tables.map((one) => one.scrollWidth - one.clientWidth))"
        "([...document.querySelectorAll('.scroll')])"
    )
    whole = own.until("document.querySelector('.data td:first-child [title]')?.title")

    assert max(hidden) <= 0
    assert whole == one["path"]


@pytest.mark.parametrize("path", PATHS)
def test_view_breaks_no_policy_and_fits_a_phone(page: Page, path: str) -> None:
    page.open(path)
    page.until("document.querySelector('#content .card') && !document.querySelector('.skeleton')")
    page.until("!document.querySelector('[aria-busy=true], .stale')")
    page.set_width(390)
    page.until("document.scrollingElement.scrollWidth <= innerWidth")
    page.set_width(1280)

    assert page.problems() == []
    assert page.until("document.querySelector('.failure') === null")


@pytest.mark.parametrize("width", [390, 820, 1280])
@pytest.mark.parametrize(
    "title", ["Website", "Range of days", "Compare with", "Time zone", "Add a filter", "Colours"]
)
def test_a_panel_that_opens_is_within_the_window(page: Page, title: str, width: int) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.set_width(width)
    page.settle()
    page.click(f"[title='{title}']")
    if title == "Add a filter":
        page.click("[role=option]", "Event")
        page.until("document.querySelectorAll('.panel [role=option] small').length > 4")
    page.tab.run("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
    left, right, is_above, cut = page.until(
        "((panel) => [panel.getBoundingClientRect().left,"
        " document.documentElement.clientWidth - panel.getBoundingClientRect().right,"
        " panel.contains(document.elementFromPoint(panel.getBoundingClientRect().right - 4,"
        " panel.getBoundingClientRect().top + 20)),"
        " [...panel.querySelectorAll('li span')].filter((one) => one.textContent.length < 40"
        " && one.scrollWidth > one.clientWidth).map((one) => one.textContent)])"
        "(document.querySelector('.panel'))"
    )
    page.set_width(1280)

    assert min(left, right) >= 0
    assert is_above
    assert cut == []


GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT_GROUND = "rgb(245, 246, 248)"
DARK_GROUND = "rgb(14, 19, 25)"


def test_a_panel_that_grows_stays_within_the_window(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    event = {"name": "screen_view", "path": f"/{'long-name-' * 20}", "timestamp": START_MS}
    sent = page.service.post(f"/track?website_id={own.website}", [event])
    assert sent.status_code == 200, sent.text
    own.set_width(1024)
    own.open("/", last="7")
    own.settle()
    own.click("[title='Add a filter']")
    own.click("[role=option]", "Page")
    own.until("document.querySelector('.panel [role=option]')?.textContent.includes('/long-name')")
    own.settle()
    sides = own.until(
        "((one) => [one.left >= 0, one.right <= document.documentElement.clientWidth, scrollX])"
        "(document.querySelector('.panel').getBoundingClientRect())"
    )
    overflow = own.overflow()
    own.set_width(1280)

    assert sides == [True, True, 0]
    assert overflow <= 0


def test_colors_follow_the_system_until_others_are_chosen(page: Page) -> None:
    page.open("/")
    page.settle()
    for scheme, ground in (("dark", DARK_GROUND), ("light", LIGHT_GROUND)):
        page.set_colors(scheme)
        assert page.until(f"{GROUND} === '{ground}'")
    page.click("button[title=Colours]")
    page.click("[role=option]", "Dark")
    assert page.until(f"{GROUND} === '{DARK_GROUND}'")
    page.tab.reload()
    page.settle()
    assert page.until(GROUND) == DARK_GROUND
    page.click("button[title=Colours]")
    page.click("[role=option]", "Colours of the system")
    assert page.until(f"{GROUND} === '{LIGHT_GROUND}'")
    page.set_colors("dark")
    assert page.until(f"{GROUND} === '{DARK_GROUND}'")
    page.tab.command("Emulation.setEmulatedMedia", features=[])
    assert page.until(f"{GROUND} === '{LIGHT_GROUND}'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_option_that_is_pointed_at_differs_from_its_panel(page: Page, scheme: str) -> None:
    page.set_colors(scheme)
    page.open("/")
    page.settle()
    page.click("[title='Range of days']")
    contrast = page.until(
        "((one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05))"
        "(...['.panel [aria-selected=true]', '.panel'].map((name) =>"
        " getComputedStyle(document.querySelector(name)).backgroundColor.match(/\\d+/g)"
        ".map((value) => ((value / 255 + 0.055) / 1.055) ** 2.4)"
        ".reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0)))"
    )
    page.set_colors("light")

    assert contrast > 1.12


def test_paper_has_all_rows_of_a_table_in_dark_letters(page: Page) -> None:
    page.open("/", last="90")
    page.settle()
    page.click(".lead .chart-head button", "Table")
    page.until("document.querySelectorAll('.lead tbody tr').length === 90")
    page.until("(document.documentElement.dataset.theme = 'dark')")
    hidden = "((one) => [one.scrollHeight - one.clientHeight])(document.querySelector('.scroll'))"
    color = "getComputedStyle(document.body).color"
    on_screen = page.until(hidden), page.until(color)
    page.tab.command("Emulation.setEmulatedMedia", media="print")
    on_paper = page.until(hidden), page.until(color)
    page.tab.command("Emulation.setEmulatedMedia", media="")

    assert on_screen[0] != [0]
    assert on_screen[1] == "rgb(230, 235, 241)"
    assert on_paper == ([0], "rgb(23, 32, 43)")


def test_a_long_session_id_of_an_error_fits_a_phone(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    fault = {"timestamp": START_MS, "path": "/", "message": "Broken", "sessionId": "s" * 255}
    assert own.service.post(f"/errors?client_id={own.website}", [fault]).status_code == 200
    own.set_width(390)
    own.open("errors")
    own.settle()
    own.click(".error-groups a")
    own.until("document.querySelector('.card summary bdi')?.textContent.length === 255")
    own.settle()
    overflow = own.overflow()
    own.set_width(1280)

    assert overflow <= 0
    assert own.problems() == []


def test_shares_of_a_list_are_seen_where_nothing_is_pointed_at(page: Page) -> None:
    page.open("/")
    page.settle()
    shares = page.until(
        "((all) => all.length &&"
        " all.map((one) => [one.textContent, getComputedStyle(one).opacity]))"
        "([...document.querySelectorAll('.breakdown:first-child .ranked small')])"
    )

    assert shares == [["33.3%", "1"]] * 3


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("path", "metric", "bar"),
    [("/", "", ".ranked i"), ("explore", "", ".ranked i"), ("explore", "table", ".cell-bar")],
    ids=["list", "bars", "table"],
)
def test_bars_are_beside_the_values_that_they_stand_for(
    page: Page, path: str, metric: str, bar: str, width: int
) -> None:
    events = {"field": "*", "aggregate": "count", "alias": "n"}
    query: dict[str, Any] = {
        "query": {"table": "events", "selects": [events], "groupBy": ["path"]},
        "lastDays": 30,
        "compare": "previous_period",
    }
    page.set_width(width)
    page.open(path, metric=metric, query=json.dumps(query) if path == "explore" else "")
    page.settle()
    covered = page.until(
        f"((bars) => bars.length > 2 && bars.map((bar) => [...bar.parentElement.children]"
        ".filter((one) => one.matches('.ranked small, .ranked b, td bdi')).map((one) =>"
        " [one.getBoundingClientRect(), bar.getBoundingClientRect()]).filter(([text, drawn]) =>"
        " text.left < drawn.right && drawn.left < text.right &&"
        " text.top < drawn.bottom && drawn.top < text.bottom).length))"
        f"([...document.querySelectorAll('{bar}')])"
    )
    page.set_width(1280)

    assert covered == [0] * len(covered)


def test_buttons_that_remove_steps_of_a_funnel_are_beside_their_names(page: Page) -> None:
    steps: list[dict[str, str | list[str]]] = [
        {"name": f"Step {number}", "filters": []} for number in range(3)
    ]
    page.set_width(390)
    page.open("funnels", query=json.dumps({"steps": steps}))
    page.settle()
    offsets = page.until(
        "((all) => all.length === 3 && all.map((one) => ((name, button) =>"
        " Math.abs(button.top + button.height / 2 - name.top - name.height / 2) <= 2)"
        "(one.querySelector('input').getBoundingClientRect(),"
        " one.lastElementChild.getBoundingClientRect())))"
        "([...document.querySelectorAll('.steps li')])"
    )
    page.set_width(1280)

    assert offsets == [True] * 3


def test_views_and_the_foot_below_them_are_reached_in_a_low_window(page: Page) -> None:
    page.set_width(1280, height=450)
    page.open("/")
    page.settle()
    reached = page.until(
        "[...document.querySelectorAll('.side a, .side button:not(dialog *)')].map((one) => {"
        " one.scrollIntoView({block: 'nearest'});"
        " const {left, top, width, height} = one.getBoundingClientRect();"
        " return [one.textContent.trim(),"
        " one.contains(document.elementFromPoint(left + width / 2, top + height / 2))]; })"
    )
    scrolled = page.until("[scrollY]")
    page.set_width(1280)

    assert [name for name, is_reached in reached if not is_reached] == []
    assert [name for name, _ in reached][-4:] == ["Colours", "Keys", "API", "Sign in"]
    assert scrolled == [0]


@pytest.mark.parametrize("width", [360, 1280])
def test_groups_of_a_funnel_are_within_their_column(page: Page, width: int) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    event = {"name": "a", "path": "/beans/colombia", "anonymousId": "v", "timestamp": START_MS}
    sent = own.service.post(f"/track?website_id={own.website}", [event])
    assert sent.status_code == 200, sent.text
    own.set_width(width)
    steps: list[dict[str, Any]] = [{"name": "Checkout", "filters": []}] * 5
    own.open("funnels", query=json.dumps({"steps": steps, "groupBy": "path"}))
    own.settle()
    groups = own.until(
        "((all) => all.length && all.map((one) => [one.textContent,"
        " one.firstChild.getBoundingClientRect().right <= one.getBoundingClientRect().right]))"
        "([...document.querySelectorAll('tbody th:has(bdi)')])"
    )
    own.set_width(1280)

    assert groups == [["/beans/colombia", True]]


def test_small_shares_of_retention_look_different(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    came = [(0, 1), (0, 1), (0, 1), (0, 1), *[(0,)] * 96, (1,)]
    events = [
        {"name": "a", "anonymousId": f"v{visitor}", "timestamp": START_MS - ago * 86_400_000}
        for visitor, days in enumerate(came)
        for ago in (3 - day for day in days)
    ]
    sent = own.service.post(f"/track?website_id={own.website}", events)
    assert sent.status_code == 200, sent.text
    cohorts: dict[str, Any] = {
        "first": {"filters": []},
        "return": {"filters": []},
        "granularity": "daily",
    }
    own.open("retention", last="7", query=json.dumps({**cohorts, "periods": 4}))
    own.settle()
    shares = own.until(
        "[...document.querySelectorAll('tbody tr:nth-child(2) .heat')]"
        ".map((one) => [one.textContent, one.style.getPropertyValue('--share')])"
    )

    assert shares == [["0%", "0"], ["4.0%", "0.2"], ["0%", "0"], ["0%", "0"]]
