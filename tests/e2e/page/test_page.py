"""The page in a real Chromium, over a public website whose events the test has counted."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headrace.http.tracker.files import snippet
from headrace.model.tenancy import Scope, WebsiteId
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import HOSTILE_NAMES, Page, noon_zone, opened_page
from testing.service import Json, Service, bearer
from tests.e2e.page.oracle.drawn_chart import recorded_drawing

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

PATHS = ["/", "explore", "vitals", "errors", "funnels", "retention", "live", "setup", "admin"]
ZONE = noon_zone()
START = datetime.now(UTC).replace(hour=0, minute=0, second=1, microsecond=0) - timedelta(days=1)
START_MS = int(START.timestamp() * 1000)
"""The time of the first event that is stored. A day may end while the tests run."""

STEPS: Json = [{}, {}]
"""Those of a funnel, of any events."""

VISITORS = 12
VIEWS_OF_EACH = 3
DESKTOP = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0"


def seed(service: Service, website: str) -> None:
    """Store visitors with three views each, half of them from Germany, and hostile names.

    One event is older than the range that the page opens with: the website is not new.
    """
    events: list[Json] = [
        {
            "name": "screen_view",
            "anonymousId": f"v{visitor}",
            "sessionId": f"s{visitor}",
            "timestamp": START_MS + visitor * 60_000 + view * 20_000,
            "ip": "91.12.3.4" if visitor % 2 else "8.8.8.8",
            "properties": {"path": f"/page-{view}", "referrer": "https://example.org/a"},
        }
        for visitor in range(VISITORS)
        for view in range(VIEWS_OF_EACH)
    ]
    events += [
        {"name": name, "anonymousId": "v0", "sessionId": "s0", "timestamp": START_MS + 50_000}
        for name in HOSTILE_NAMES
    ]
    events.append({"name": "older", "anonymousId": "v", "timestamp": START_MS - 45 * 86_400_000})
    key = service.key("track:events", websites=[website])
    sent = service.post(f"/track?website_id={website}", events, headers=bearer(key))
    assert sent.status_code == 200, sent.text
    faults = [
        {"timestamp": START_MS, "path": "/page-1", "message": name, "errorType": name[:128]}
        for name in HOSTILE_NAMES
    ]
    assert service.post(f"/errors?client_id={website}", faults).status_code == 200
    vitals = [
        {"timestamp": START_MS, "path": "/page-1", "metricName": "LCP", "metricValue": value}
        for value in (1000, 2000, 9000)
    ]
    assert service.post(f"/vitals?client_id={website}", vitals).status_code == 200


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    website = service.website(public=True)
    seed(service, website)
    with opened_page(service, website, tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


def test_overview_shows_what_was_stored_and_a_click_filters_it(page: Page) -> None:
    page.open("/")
    totals = page.totals(VISITORS)
    page.click(".breakdown button[aria-pressed]", "Germany")
    filtered = page.totals(VISITORS // 2)
    filters = json.loads(page.parameter("filters"))
    page.click(".chip button")

    assert totals == {
        "Visitors": "12",
        "Page views": "36",
        "Sessions": "12",
        "Bounce rate": "0%",
        "Median session": "40s",
    }
    assert filtered["Page views"] == "18"
    assert filters == [{"field": "country", "operator": "eq", "value": "DE"}]
    assert page.totals(VISITORS) == totals
    assert page.problems() == []


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (
            "entry_path",
            "/page-0",
            {
                "Visitors": "12",
                "Page views": "36",
                "Sessions": "12",
                "Bounce rate": "0%",
                "Median session": "40s",
            },
        ),
        (
            "path",
            "/page-1",
            {
                "Visitors": "12",
                "Page views": "12",
                "Sessions": "12",
                "Bounce rate": "\N{EN DASH}",
                "Median session": "\N{EN DASH}",
            },
        ),
    ],
)
def test_filter_of_one_table_leaves_what_that_table_has(
    page: Page, field: str, value: str, expected: dict[str, str]
) -> None:
    filters = json.dumps([{"field": field, "operator": "eq", "value": value}])
    page.open("/", filters=filters)

    assert page.totals(VISITORS) == expected
    page.until("document.body.textContent.includes('Not with these filters')")
    assert page.problems() == []


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
    cells = "[...document.querySelectorAll('.lead %s')].map((one) => one.innerText.trim())"
    page.until(f"({cells % 'th'}).length === {len(heads)}")

    assert page.until(cells % "th") == heads
    assert len(page.until(cells % "tbody tr")) == 7
    assert page.until(f"({cells % 'td.number'}).includes({json.dumps(row)})")
    assert page.problems() == []


def test_funnel_that_nobody_began_says_so(page: Page) -> None:
    page.open("funnels", **{"from": "2020-01-01", "to": "2020-01-07"})
    said = page.until("document.querySelector('.answer .empty strong')?.textContent")

    assert said == "Nobody took the first step in this range"
    assert page.problems() == []


@pytest.mark.parametrize(
    ("view", "query", "begins"),
    [
        ("funnels", {"steps": [None, None]}, "Follow each"),
        ("funnels", {"steps": [{"filters": 5}, {}]}, "Follow each"),
        ("retention", {"first": {"filters": 5}}, "Of"),
        ("retention", {"return": {"filters": [None]}}, "Of"),
    ],
)
def test_a_link_without_readable_filters_shows_what_a_view_begins_with(
    page: Page, view: str, query: Json, begins: str
) -> None:
    page.open(view, query=json.dumps(query))
    page.settle()
    sentence = page.until("document.querySelector('.query .sentence span')?.textContent")

    assert sentence == begins
    assert page.until("!!document.querySelector('.answer')")
    assert page.problems() == []


@pytest.mark.parametrize(
    ("view", "query", "words"),
    [
        ("funnels", {"steps": STEPS, "by": None, "window": None}, ["visitor", "a day", "nothing"]),
        (
            "retention",
            {"granularity": None, "by": None, "periods": None, "first": None},
            ["visitors", "week", "9"],
        ),
    ],
)
def test_a_link_with_null_for_a_word_shows_what_a_view_begins_with(
    page: Page, view: str, query: Json, words: list[str]
) -> None:
    page.open(view, query=json.dumps(query))
    page.settle()
    shown = page.until(
        "[...document.querySelectorAll('.query > .sentence .word:not(.add)')]"
        ".map((one) => one.textContent)"
    )

    assert shown == words
    assert page.until("!!document.querySelector('.answer') && !document.querySelector('.failure')")
    assert page.problems() == []


@pytest.mark.parametrize(
    ("view", "query", "refusal"),
    [
        ("funnels", {"steps": STEPS, "by": {}}, "Invalid by: "),
        ("funnels", {"steps": STEPS, "groupBy": {}}, "Invalid request body: groupBy "),
        ("retention", {"granularity": {}}, "Invalid granularity: "),
    ],
)
def test_a_link_with_an_object_for_a_word_says_what_the_service_refuses(
    page: Page, view: str, query: Json, refusal: str
) -> None:
    page.open(view, query=json.dumps(query))
    said = page.until("document.querySelector('.failure strong')?.textContent")

    assert said.startswith(refusal)
    assert page.problems() == []


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


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("vitals", "No web vitals with these filters in this range"),
        ("errors", "No errors with these filters in this range"),
        ("errors/unknown", "This error did not occur in this range"),
    ],
)
def test_filters_that_leave_nothing_are_named_as_the_reason(
    page: Page, path: str, title: str
) -> None:
    nowhere = [{"field": "path", "operator": "eq", "value": "/nowhere"}]
    page.open(path, filters=json.dumps(nowhere))
    said, advice = page.until(
        "document.querySelector('.empty') &&"
        " [...document.querySelector('.empty').children].map((one) => one.textContent)"
    )

    assert said == title
    assert "emove a filter" in advice
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


def test_error_groups_name_their_browsers(page: Page) -> None:
    page.open("errors")
    heads = page.until(
        "document.querySelector('.error-groups .sparkline') &&"
        " [...document.querySelectorAll('.error-groups .head span')].map((one) => one.innerText)"
    )

    assert heads[2:] == ["Errors", "Visitors", "Sessions", "Browsers", "Seen"]


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


def test_group_of_web_vitals_is_a_filter_that_a_second_click_takes_away(page: Page) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    vital = {"timestamp": START_MS, "metricName": "LCP", "metricValue": 3000, "path": "/"}
    sent = page.service.post(f"/vitals?client_id={own.website}", [vital])
    assert sent.status_code == 200, sent.text
    own.open("vitals")
    own.click("[role=tab]", "Countries")
    own.click(".data .link", "(empty)")
    chip = own.until("document.querySelector('.filters .chip bdi')?.textContent")
    own.settle()
    own.click(".data .link", "(empty)")
    own.until("!document.querySelector('.filters .chip')")

    assert chip == "Country is (empty)"
    assert own.problems() == []


def test_days_are_those_of_the_time_zone(page: Page) -> None:
    """All events are of a day's first minutes in UTC: still the day before in New York."""
    day = START.date()
    page.open("/", **{"from": day.isoformat(), "to": day.isoformat()})
    page.totals(VISITORS)
    day -= timedelta(days=1)
    page.open("/", timezone="America/New_York", **{"from": day.isoformat(), "to": day.isoformat()})

    assert page.totals(VISITORS)["Page views"] == "36"
    assert page.problems() == []


def test_reload_and_back_show_the_same(page: Page) -> None:
    filters = json.dumps([{"field": "country", "operator": "eq", "value": "US"}])
    page.open("/", filters=filters, last="7", metric="sessions")
    shown = page.totals(VISITORS // 2)
    url = page.until("location.href")
    page.click("nav a", "Errors")
    page.until("location.pathname === '/app/errors'")
    page.until("history.back() || true")

    assert page.until(f"location.href === {json.dumps(url)}")
    assert page.totals(VISITORS // 2) == shown


def test_a_view_that_is_opened_begins_at_its_top_and_has_the_focus(page: Page) -> None:
    page.set_width(1280, height=300)
    page.open("errors")
    page.settle()
    page.click("nav a", "Overview")
    page.totals(VISITORS)
    page.settle()
    page.until("scrollTo(0, 500) || scrollY > 0")
    page.click("nav a", "Errors")  # its answers are kept: it is drawn at once
    page.until("document.querySelector('.error-groups a')")
    top = page.until("[scrollY]")
    page.until("document.querySelector('.error-groups a').focus() || true")
    page.click(".error-groups a")
    focused = page.until("document.querySelector('.error-head') && document.activeElement.id")
    page.set_width(1280)

    assert top == [0]
    assert focused == "content"


def test_back_and_a_reload_lead_to_where_one_was(page: Page) -> None:
    """The browser alone is too early: a view has its height with its figures."""
    page.set_width(1280, height=500)
    page.open("/")
    page.settle()
    page.until("scrollTo(0, 700) || scrollY === 700")
    page.until("history.state?.top === 700")
    page.click(".breakdown footer a", "All countries")
    page.until("location.pathname === '/app/explore'")
    page.settle()
    in_explore = page.until("[scrollY]")
    page.tab.run("history.back(); arguments[0]()")
    page.until("location.pathname === '/app/' && scrollY === 700")
    page.tab.reload()
    page.until("document.querySelector('.breakdown') && scrollY === 700")
    page.click("nav a", "Errors")
    page.until("document.querySelector('.error-groups a')")
    in_errors = page.until("[scrollY]")
    page.set_width(1280)

    assert (in_explore, in_errors) == ([0], [0])
    assert page.problems() == []


def test_live_view_shows_what_is_acknowledged_and_what_is_refused(page: Page) -> None:
    track = f"/track?website_id={page.website}"
    items = "document.querySelector('ul.live').innerText"
    page.open("live")
    page.until("document.querySelector('[role=status]').innerText === 'Listening'")
    known = {"anonymousId": "v0", "sessionId": "s0", "timestamp": START_MS + 50_000}
    accepted = [{"name": name, **known} for name in ("one", "two")]  # no total counts them
    assert page.service.post(track, accepted).status_code == 200
    assert page.service.post(track, [{"name": ""}]).status_code == 400
    page.until(f"{items}.includes('one') && {items}.includes('two')")
    shown = page.until(f"{items}.includes('/track: INVALID_BODY') && {items}")
    assert "nothing of the call was stored" in shown
    assert "Item 1, name: " in shown
    page.tab.run(
        "const [done] = arguments; const field = document.querySelector('input[type=search]');"
        "field.value = 'TWO'; field.dispatchEvent(new Event('input', {bubbles: true})); done(1);"
    )
    page.until(f"{items}.includes('two') && !{items}.includes('one')")
    page.until("document.querySelector('button[aria-pressed]').click() || true")
    page.until("document.querySelector('[role=status]').innerText === 'Paused'")


def test_live_views_that_were_left_keep_no_connection(page: Page) -> None:
    """A browser opens six connections to a service, and keeps pages that were left as they are."""
    is_listening = "document.querySelector('[role=status]')?.innerText === 'Listening'"
    for number in range(8):
        page.open("live", metric=str(number))
        page.until(is_listening)
    page.open("setup")
    page.tab.run("history.back(); arguments[0]()")
    page.until(f"location.pathname === '/app/live' && {is_listening}")
    event = {"name": "after the return", "timestamp": START_MS - 45 * 86_400_000}
    sent = page.service.post(f"/track?website_id={page.website}", [event])
    assert sent.status_code == 200, sent.text

    assert page.until("document.querySelector('ul.live').innerText.includes('after the return')")
    assert page.problems() == []


def test_setup_pins_the_tracker_that_the_service_has(page: Page) -> None:
    page.open("setup")
    shown = page.until(
        "[...document.querySelectorAll('.copyable pre')].map((one) => one.textContent)"
        ".find((text) => text.includes('integrity'))"
    )
    assert shown == snippet(page.service.url, "/headrace.js", page.website)


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


def test_a_panel_takes_the_keys_and_closes_when_the_focus_leaves_it(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.click("[title='Compare with']")
    focused = page.until("document.activeElement.getAttribute('role')")
    for key in ("ArrowDown", "Enter"):
        event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
        page.until(f"document.activeElement.dispatchEvent({event}) || true")
        page.settle()
    compared = page.until("new URLSearchParams(location.search).get('compare')")
    page.click("[title='Compare with']")
    page.until("document.activeElement.closest('.panel') !== null")
    page.until("(document.querySelector('[title=\"Time zone\"]').focus(), true)")

    assert focused == "listbox"
    assert compared == "previous_year"
    assert page.until("document.querySelector('.panel') === null")
    assert page.until("document.activeElement.title") == "Time zone"


def test_a_panel_has_the_focus_as_soon_as_it_is_there(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    focused = page.tab.run(
        "new MutationObserver((_, observer) => {"
        " if (!document.querySelector('.panel')) return;"
        " observer.disconnect();"
        " arguments[0](document.activeElement.ariaLabel);"
        "}).observe(document.body, {childList: true, subtree: true});"
        "document.querySelector('[data-shortcut=\"/\"]').click();"
    )

    assert focused == "Search columns"


def test_a_filter_is_made_by_keys_alone(page: Page) -> None:
    page.open("/", last="7")
    page.settle()
    page.press("/")
    enter = (
        "document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', {key: %r, bubbles: true, cancelable: true})) || true"
    )
    focused = "document.activeElement.closest('.panel') && document.activeElement.ariaLabel"
    page.until(f"{focused} === 'Search columns'")
    page.until(enter % "Enter")
    page.until(f"{focused} === 'Search values'")
    page.click(".panel button", "Page")
    page.until(f"{focused} === 'Search columns'")
    page.until(enter % "Enter")
    page.until(f"{focused} === 'Search values'")
    page.until("document.querySelectorAll('.panel [role=option]').length > 1")
    page.until(enter % "ArrowDown")
    page.until("document.querySelectorAll('.panel [role=option]')[1].ariaSelected === 'true'")
    page.until(enter % "Enter")
    page.until("document.querySelectorAll('.chip').length === 1")

    assert page.until("document.activeElement.title") == "Add a filter"
    assert page.problems() == []


COMPOSED = """
((field, isComposing, keyCode) => field.dispatchEvent(new KeyboardEvent(
  "keydown", {key: "Enter", bubbles: true, isComposing, keyCode})) || true)
(document.querySelector("[aria-label='Search time zones']"), %s)
"""
"""Enter in the list of time zones, of an input method or not."""


def test_enter_of_an_input_method_chooses_nothing(page: Page) -> None:
    page.open("/", last="7")
    page.click("button[title='Time zone']")
    page.write("[aria-label='Search time zones']", "Tokyo")
    for of_a_method in ("true, 229", "false, 229"):
        page.until(COMPOSED % of_a_method)
    page.settle()
    open_lists = page.until("[document.querySelectorAll('.panel .options').length]")
    page.until(COMPOSED % "false, 13")
    page.until("!document.querySelector('.panel')")

    assert open_lists == [1]
    assert page.parameter("timezone") == "Asia/Tokyo"
    assert page.problems() == []


def test_arrow_keys_choose_a_tab_and_only_the_chosen_one_is_a_stop(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    tabs = "[...document.querySelectorAll('.breakdown [role=tab]')].slice(0, 3)"
    states = f"{tabs}.map((one) => [one.textContent, one.ariaSelected, one.tabIndex])"
    event = "new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true})"
    page.until(f"({tabs}[0].focus(), {tabs}[0].dispatchEvent({event}), true)")
    page.settle()

    assert page.until(states) == [
        ["Pages", "false", -1],
        ["Entry", "false", -1],
        ["Exit", "true", 0],
    ]
    assert page.until("document.activeElement.textContent") == "Exit"


def test_the_first_link_skips_to_the_content(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.click(".skip")

    assert page.until("document.activeElement.id") == "content"


@pytest.mark.parametrize("path", ["/", "errors"])
def test_hostile_names_are_shown_as_text(page: Page, path: str) -> None:
    page.open(path)

    for name in HOSTILE_NAMES:
        page.until(f"document.querySelector('#content').textContent.includes({json.dumps(name)})")

    assert page.until("typeof hacked === 'undefined'")
    assert page.until("document.querySelectorAll('#content script, #content img').length === 0")
    assert page.problems() == []


def test_refused_word_is_corrected_by_its_button(page: Page) -> None:
    body = {
        "query": {
            "table": "events",
            "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
            "groupBy": ["pth"],
            "filters": [{"field": "path", "operator": "is_set"}],
        },
        "lastDays": 7,
        "timezone": "UTC",
    }
    page.open("explore", query=json.dumps(body))
    reason = page.until("document.querySelector('.refused .why span').textContent")
    page.click(".refused .why button")
    page.until("document.querySelectorAll('.ranked.tall li').length === 3")
    rows = page.until(
        "[...document.querySelectorAll('.ranked.tall li')].map((one) =>"
        " ['bdi', 'bdi', 'b'].map((part, index) => one.querySelector(part)"
        "[index === 1 ? 'title' : 'textContent']))"
    )

    assert reason == 'Invalid column "pth" for table "events"'
    assert json.loads(page.parameter("query"))["query"]["groupBy"] == ["path"]
    assert rows == [[path, path, "12"] for path in ("/page-0", "/page-1", "/page-2")]


def test_unknown_website_leads_to_the_list_of_websites(page: Page) -> None:
    unknown = Page(page.tab, page.service, "web_unknown")
    code = page.service.directory.sessions.create_code(scopes=frozenset({Scope.READ_DATA}))
    page.tab.open(f"{page.service.url}/app/?website_id=web_unknown#code={code}")
    said = unknown.until("document.querySelector('.failure')?.innerText")
    unknown.click("button", "Sign out")
    unknown.until("document.querySelector('.sign-in')")

    assert "Website not found" in said
    assert "Choose another one from the list of websites." in said


def test_query_that_is_no_json_is_explained_once_beside_its_text(page: Page) -> None:
    page.open("explore", query="{bad")
    said = page.until(
        "document.querySelector('textarea') &&"
        " [...document.querySelectorAll('#content .refusal')].map((one) => one.textContent)"
    )
    offered = page.until(
        "[...document.querySelectorAll('.query footer > button')].map((one) => one.textContent)"
    )

    assert len(said) == 1
    assert "JSON" in said[0]
    assert offered == ["Start over"]
    assert page.problems() == []


UNMARKED = (
    "[...document.querySelectorAll('#content .card:not(.query)')]"
    ".filter((one) => !one.closest('[aria-busy=true]') && !one.querySelector('.skeleton'))"
    ".map((one) => one.innerText)"
)
PENDING_QUERIES = """
const send = window.fetch;
window.fetch = (url, options) =>
  String(url).includes("/v1/query/") ? new Promise(() => {}) : send(url, options);
"""

REFUSED_QUERIES = """
const send = window.fetch;
window.fetch = (url, options) => /\\/query\\/(?!schema)/.test(String(url))
  ? Promise.resolve(new Response("{}", {status: 500})) : send(url, options);
"""


@pytest.mark.parametrize("path", ["/", "explore", "vitals", "errors", "error", "retention"])
def test_values_of_before_are_marked_until_those_of_other_days_are_there(
    page: Page, path: str
) -> None:
    page.open("errors" if path == "error" else path)
    page.settle()
    if path == "error":
        page.click(".error-groups a")
        page.settle()
    before = page.until(f"[{UNMARKED}.length]")
    page.tab.run(f"{PENDING_QUERIES} arguments[0]()")
    if path == "explore":
        page.click("[title='Range of days']")
        page.click("[role=option]", "Last 7 days")
    else:
        page.click("[aria-label='Period before']")
    page.until(f"{UNMARKED}.length === 0")

    assert before != [0]
    assert page.problems() == []


@pytest.mark.parametrize("path", ["vitals", "funnels", "retention"])
def test_a_view_that_was_refused_does_not_look_as_if_it_waited(page: Page, path: str) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=REFUSED_QUERIES)
    page.open(path)
    page.until("document.querySelector('#content .failure')")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert page.until("[document.querySelectorAll('#content .skeleton').length]") == [0]
    assert page.until(f"{UNMARKED}") == []


GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT_GROUND = "rgb(245, 246, 248)"
DARK_GROUND = "rgb(14, 19, 25)"


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


def test_nothing_moves_where_a_visitor_wants_no_motion(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_QUERIES)
    page.open("/")
    page.until("document.querySelector('.skeleton') !== null")
    page.until("document.getAnimations().length > 0")
    page.set_colors("light")
    moving = page.until("[document.getAnimations().length]")
    page.tab.command("Emulation.setEmulatedMedia", features=[])
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert moving == [0]


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

    assert labels == ["0", "1E20", "2E20", "3E20"]
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


def test_errors_wait_in_sight(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_QUERIES)
    page.open("errors")
    page.until("document.querySelector('#content .skeleton')")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert page.problems() == []


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


def test_an_error_whose_reports_name_no_session_says_so(page: Page) -> None:
    page.open("errors")
    page.settle()
    page.click(".error-groups a", HOSTILE_NAMES[4])
    page.settle()

    sessions = (
        "[...document.querySelectorAll('.card')].find((e) => /sessions did/.test(e.innerText))"
    )
    card: str = page.until(f"{sessions}.innerText")
    assert card.rsplit("\n", maxsplit=1)[-1] == "No error of these came with a session."


def test_service_that_does_not_answer_is_explained_until_it_does(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/v1/query/*"])
    page.open("/", last="14")
    alerts = "[...document.querySelectorAll('.failure')]"
    assert page.until(f"{alerts}.some((one) => !one.closest('.card'))")
    explained = page.until("document.querySelector('.failure strong').textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    # Unblocking takes effect a little later: the first attempts may still fail.
    is_shown = f"document.querySelector('.figure .value')?.textContent === '{VISITORS}'"
    assert page.until(f"{is_shown} || ({alerts}[0]?.querySelector('button').click(), false)")

    assert explained == "The service does not answer"
    assert page.totals(VISITORS)["Sessions"] == "12"


def test_a_view_without_an_answer_goes_on_by_itself_when_the_network_is_back(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.tab.set_offline(is_offline=True)
    page.click("button[aria-label='Period before']")
    said = page.until("document.querySelector('.failure p')?.textContent")
    page.tab.set_offline(is_offline=False)
    page.until("document.querySelector('.failure') === null")
    page.settle()

    assert "Trying again in" in said
    assert page.problems() == []


def test_a_link_to_what_is_shown_is_no_step_of_the_history(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    before = page.until("history.length")
    page.click("nav a", "Overview")
    page.click("nav a", "Overview")

    assert page.until("history.length") == before


def test_view_that_could_not_be_loaded_is_loaded_by_another_try(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/views/retention.js"])
    page.click("nav a", "Retention")
    said = page.until("document.querySelector('.failure strong')?.textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".failure button", "Try again")

    assert page.until("document.querySelector('.cohorts') !== null")
    assert said == "The service did not send this view"


UNLOADED = "document.querySelector('.unloaded strong')?.textContent"


@pytest.mark.parametrize("file", ["page.css", "main.js", "views/shell.js", "vendor/preact.js"])
def test_a_page_that_was_loaded_in_part_says_so_and_is_loaded_again(page: Page, file: str) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=[f"*/{file}"])
    page.open("/")
    said = page.until(UNLOADED)
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".unloaded button", "Try again")
    page.totals(VISITORS)
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said == "This page did not load completely"
    assert page.until(f"[{UNLOADED} ?? '']") == [""]
    assert page.problems() == []


def test_charts_that_could_not_be_loaded_say_so(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=["*/vendor/uplot.js"])
    page.open("/")
    said = page.until("document.querySelector('.chart-space p')?.textContent")
    problems = page.problems()
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".chart-space button", "Load the page again")
    page.until("document.querySelector('.chart canvas') !== null")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said.startswith("The service did not send what draws charts.")
    assert problems == []


def test_first_steps_that_could_not_be_loaded_say_so(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=["*/views/setup.js"])
    page.open("/", website_id=page.service.website(public=True))
    said = page.until("document.querySelector('.failure strong')?.textContent")
    problems = page.problems()
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".failure button", "Try again")
    page.until("document.querySelector('.setup') !== null")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said == "The service did not send this view"
    assert problems == []


CHOSEN = "document.querySelector('[aria-pressed=true] .name')?.textContent"
FILTERS = json.dumps([{"field": "constructor", "operator": "eq", "value": 1}])


@pytest.mark.parametrize(
    ("path", "parameters", "shown", "text"),
    [
        ("constructor", {}, "document.querySelector('.empty strong')", "There is no such page"),
        ("/", {"metric": "constructor"}, CHOSEN, "Visitors"),
        ("vitals", {"metric": "constructor"}, CHOSEN, "LCPLargest contentful paint"),
        ("/", {"filters": FILTERS}, "document.querySelector('.chip bdi')", "Constructor is 1"),
    ],
    ids=["view", "figure", "web vital", "column"],
)
def test_a_name_that_every_object_has_is_an_unknown_one(
    page: Page, path: str, parameters: dict[str, str], shown: str, text: str
) -> None:
    page.open(path, last="7", **parameters)

    assert page.until(f"({shown})?.textContent ?? {shown}") == text
    assert page.problems() == []


ANSWERS_WITHOUT_FACTS = """
const send = window.fetch;
window.isBad = true;
window.fetch = async (url, options) => {
  const response = await send(url, options);
  if (!window.isBad || !String(url).includes("/v1/query/custom")) return response;
  const {meta, ...rest} = await response.json();
  return new Response(JSON.stringify(rest), {headers: {"Content-Type": "application/json"}});
};
arguments[0]();
"""
UNDRAWN = "document.querySelector('#content .failure strong')?.textContent"


def test_a_view_that_cannot_be_drawn_says_so_until_it_can(page: Page) -> None:
    page.open("explore")
    page.settle()
    page.tab.run(ANSWERS_WITHOUT_FACTS)
    page.click("button", "Run again")
    said = [page.until(UNDRAWN)]
    page.click(".failure button", "Try again")
    page.until("problems.length === 2")
    said.append(page.until(UNDRAWN))
    page.click("nav a", "Overview")
    page.totals(VISITORS)
    page.tab.back()
    said.append(page.until(UNDRAWN))
    page.tab.run("window.isBad = false; arguments[0]()")
    page.click(".failure button", "Try again")
    page.until("document.querySelector('.answer .truth')")

    assert said == ["This page failed"] * 3
    assert {text.partition(" ")[0] for text in page.problems()} == {"console:"}


BREAK_NUMBERS = """
const highest = Math.max;
window.isBad = true;
Math.max = (...all) => {
  if (window.isBad) throw new Error("no numbers");
  return highest(...all);
};
arguments[0]();
"""


def test_a_view_is_drawn_again_when_one_goes_on_from_what_cannot_be_drawn(page: Page) -> None:
    page.open("/", last="7")
    page.settle()
    page.tab.run(BREAK_NUMBERS)
    page.click("[aria-label='Period before']")
    page.until(UNDRAWN)
    page.tab.run("window.isBad = false; arguments[0]()")
    page.tab.back()

    assert page.totals(VISITORS)["Visitors"] == str(VISITORS)
    assert page.problems() == ["console: Error: no numbers"]


PENDING_CALLS = "window.fetch = () => new Promise(() => {});"


def test_a_page_whose_service_is_slow_shows_that_it_opens(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_CALLS)
    page.open("/")
    opening = "document.querySelector('main[aria-busy=true]')"
    shown = page.until(f"{opening}.querySelector('.skeleton') && [{opening}.innerText.trim()]")
    said = page.until("document.getElementById('announcement').textContent")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert (shown, said) == (["Headrace"], "Loading")


def test_values_that_could_not_be_loaded_are_not_said_to_be_none(page: Page) -> None:
    page.open("/")
    page.settle()
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/v1/query/values*"])
    page.click("button[title='Add a filter']")
    page.click(".panel [role=option]", "City")
    none = "document.querySelector('.panel .none')?.textContent"
    said = page.until(f"{none} !== 'Loading' && {none}")
    page.tab.command("Network.setBlockedURLs", urls=[])

    assert said == "No values to choose from: The service does not answer"


def test_a_tag_that_could_not_be_loaded_is_loaded_by_another_try(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/headrace.json*"])
    page.open("setup")
    explained = page.until("document.querySelector('.snippet .failure strong')?.textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    is_there = "document.querySelector('.snippet pre') !== null"
    button = "document.querySelector('.snippet .failure button')"
    assert page.until(f"{is_there} || ({button}?.click(), false)")

    assert explained == "The service does not answer"


BAD_GATEWAY = """
const send = window.fetch;
window.fetch = (url, options) => String(url).includes("/v1/query/") && !window.isBack
  ? Promise.resolve(new Response("<h1>Bad gateway</h1>", {status: 502})) : send(url, options);
"""


def test_a_view_goes_on_by_itself_when_a_proxy_reaches_the_service_again(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=BAD_GATEWAY)
    page.open("/", last="14")
    advice = page.until("document.querySelector('.failure p')?.textContent")
    page.until("(window.isBack = true)")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert advice.startswith("What stands between this browser and the service, such as a proxy,")
    assert page.totals(VISITORS)["Sessions"] == "12"


def test_keys_go_everywhere(page: Page) -> None:
    page.open("/", **{"from": "2026-03-01", "to": "2026-03-07"})
    page.settle()  # the page listens after its first frame
    page.press("[")
    earlier = (page.parameter("from"), page.parameter("to"))
    page.press("]")
    page.press("/")
    page.until("document.activeElement.type === 'search'")
    page.press("Escape")
    page.press("?")
    page.until("document.querySelector('dialog').open")
    page.click("dialog button")
    page.press("g", "e")

    assert earlier == ("2026-02-22", "2026-02-28")
    assert page.parameter("from") == "2026-03-01"
    assert page.until("location.pathname === '/app/explore'")


def test_link_signs_in_until_signing_out(page: Page) -> None:
    service, website = page.service, page.service.website()
    private = Page(page.tab, service, website)
    seed(service, website)
    code = service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA}), website_ids=(WebsiteId(website),)
    )
    page.tab.open(f"{service.url}/app/")
    assert private.until("document.querySelector('.sign-in input[type=password]') !== null")
    page.tab.open(f"{service.url}/app/#code={code}")  # in the same document
    assert private.until("document.querySelector('#content') !== null")
    assert private.until("!location.href.includes('code')")

    private.open("/")
    signed_in = private.totals(VISITORS)
    private.click("button", "Sign out")
    assert signed_in["Visitors"] == str(VISITORS)
    assert private.until("document.querySelector('.sign-in input[type=password]') !== null")
    private.open("/")
    assert private.until("document.querySelector('.sign-in input[type=password]') !== null")
    assert private.until("document.querySelector('#content') === null")


def test_sign_in_says_what_is_wrong_with_a_link_and_with_a_key(page: Page) -> None:
    service = page.service
    alert = "document.querySelector('.sign-in [role=alert]')?.textContent"
    field = "document.querySelector('.sign-in input').ariaInvalid"
    without_scope = service.key("track:events").secret

    page.tab.open(f"{service.url}/app/?website_id=#code=used")
    of_link = page.until(f"{alert} && [{alert}, {field}]")
    page.write(".sign-in input", "hr_wrong")
    page.click(".sign-in button")
    of_key = page.until(f"{field} === 'true' && {alert}")
    page.write(".sign-in input", without_scope)
    page.click(".sign-in button")
    of_scope = page.until(f"{alert}?.includes('scope') && {alert}")

    assert of_link == ["This link was used already, or is older than 15 minutes.", "false"]
    assert of_key == "This key is not valid, or not any more."
    assert of_scope == "API key missing read:data scope"


def test_administration_creates_and_deletes_a_website(page: Page) -> None:
    service = page.service
    code = service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA, Scope.MANAGE_CONFIG}), website_ids=()
    )
    made = (
        "[...document.querySelectorAll('tbody tr')]"
        ".find((one) => one.textContent.includes('Created <here>'))"
    )
    delete = (
        f"[...{made}.querySelectorAll('button')]"
        ".find((one) => one.textContent === 'Delete').click() || true"
    )
    page.tab.open(f"{service.url}/app/admin/websites?website_id={page.website}#code={code}")
    page.click("summary", "New website")
    page.write(".new input", "Created <here>")
    page.click(".new button", "Create")
    page.until(delete)
    page.until(f"{made}.textContent.includes('Its events are refused')")
    page.until(delete)
    page.until(f"!{made}")
    page.click("button", "Sign out")

    assert page.problems() == []


def test_private_website_needs_a_sign_in(page: Page) -> None:
    private = Page(page.tab, page.service, page.service.website())
    private.open("/")

    assert private.until("document.querySelector('.sign-in input[type=password]') !== null")
    assert private.until("document.querySelector('#content') === null")
