"""The page in a real Chromium, over a public website whose events the test has counted."""

import json
from datetime import timedelta

import pytest

from headrace.http.tracker.files import snippet
from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import HOSTILE_NAMES, Page
from testing.service import Json
from tests.e2e.page.seeded_events import START, START_MS, VISITORS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

STEPS: Json = [{}, {}]
"""Those of a funnel, of any events."""


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


def test_filters_of_the_page_apply_to_a_funnel(page: Page) -> None:
    counts = "[...document.querySelectorAll('.funnel .number')].map((one) => one.textContent)"
    german = {"field": "country", "operator": "eq", "value": "DE"}
    page.open("funnels", last="7", query=json.dumps({"steps": STEPS}), filters=json.dumps([german]))
    page.settle()
    narrowed = page.until(f"{counts}.length && {counts}")
    shown = page.until("[...document.querySelectorAll('.filters .chip bdi')].map((e) => e.title)")
    page.click(".chip button")

    assert narrowed == ["6", "6"]
    assert shown == ["Country is Germany"]
    assert page.until(f"{counts}[0] === '{VISITORS}' && {counts}") == ["12", "12"]
    assert json.loads(page.parameter("query")) == {"steps": STEPS}
    assert page.problems() == []


def test_filters_of_the_page_apply_to_cohorts(page: Page) -> None:
    size = "document.querySelector('.cohorts tbody td.number')?.textContent"
    page.open("retention", last="7")
    page.until(f"{size} === '{VISITORS}'")
    page.click("[data-shortcut='/']")
    page.click(".panel [role=option]", "Country")
    page.click(".panel [role=option]", "Germany")

    assert page.until(f"{size} === '6'")
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


def test_error_groups_name_their_browsers(page: Page) -> None:
    page.open("errors")
    heads = page.until(
        "document.querySelector('.error-groups .sparkline') &&"
        " [...document.querySelectorAll('.error-groups .head span')].map((one) => one.innerText)"
    )

    assert heads[2:] == ["Errors", "Visitors", "Sessions", "Browsers", "Seen"]


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


def test_a_link_to_what_is_shown_is_no_step_of_the_history(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    before = page.until("history.length")
    page.click("nav a", "Overview")
    page.click("nav a", "Overview")

    assert page.until("history.length") == before


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
