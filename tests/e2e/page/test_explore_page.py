"""Explore and the first steps of a website on the page, in a real Chromium."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, noon_zone, opened_page
from testing.service import Json, Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

ZONE = noon_zone()
VIEWS = {"/a": 3, "/b": 2, "/c": 1}
QUERY: Json = {
    "table": "events",
    "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
    "groupBy": ["path"],
}
BODY: Json = {
    "query": QUERY,
    "lastDays": 1,
    "timezone": ZONE.key,
    "granularity": "daily",
    "top": 1,
    "others": True,
    "totals": True,
}
CELLS = (
    "[...document.querySelectorAll('.answer .data %s tr')]"
    ".map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
)


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of somebody who reads and saves queries."""
    scopes = frozenset({Scope.READ_DATA, Scope.MANAGE_DATA})
    code = service.directory.sessions.create_code(scopes=scopes)
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, service.website(), profile) as page:
        send_views(page)
        page.tab.open(f"{service.url}/app/#code={code}")
        page.until("document.querySelector('#content') !== null")
        yield page


def send_views(page: Page) -> None:
    """Store page views, each of a visitor of its own."""
    views = [
        {"name": "screen_view", "path": path, "anonymousId": f"{path}{number}", "sessionId": path}
        for path, count in VIEWS.items()
        for number in range(count)
    ]
    assert page.service.post(f"/track?website_id={page.website}", views).status_code == 200


def test_highest_groups_all_others_and_the_total_are_lines_of_the_answer(page: Page) -> None:
    page.open("explore", query=json.dumps(BODY), metric="table")
    rows = page.until(f"{CELLS % 'tbody'}.length === 2 && {CELLS % 'tbody'}")
    totals = page.until(CELLS % "tfoot")
    page.click(".answer .tabs button", "Over time")
    legend = page.until(
        "document.querySelector('.answer .legend') &&"
        " [...document.querySelectorAll('.legend bdi')].map((one) => one.textContent)"
    )

    assert rows == [["/a", "3"], ["all others", "3"]]
    assert totals == [["", "6"]]
    assert legend == ["/a", "all others"]
    assert page.problems() == []


@pytest.mark.parametrize("view", ["", "table"])
def test_a_total_is_divided_into_days(page: Page, view: str) -> None:
    """Until the days are there, the total is shown as what it is."""
    query = {"table": "events", "selects": QUERY["selects"]}
    body = {"query": query, "lastDays": 7, "timezone": ZONE.key}
    page.open("explore", query=json.dumps(body), metric=view)
    page.settle()
    page.click("[title='Bucket']", "one total")
    page.click("[role=option]", "day")
    tabs = "[...document.querySelectorAll('.answer .tabs button')].map((one) => one.textContent)"
    page.until(f"{tabs}[0] === 'Over time'")
    page.settle()
    if view == "table":
        assert len(page.until(CELLS % "tbody")) == 7

    assert json.loads(page.parameter("query")) == {**body, "granularity": "daily", "fill": True}
    assert page.problems() == []


@pytest.mark.parametrize("name", ["curl", "headrace query", "Python", "JSON", "SQL"])
def test_query_is_copied_in_every_form(page: Page, name: str) -> None:
    page.open("explore", query=json.dumps(BODY))
    page.until("(navigator.clipboard.writeText = async (text) => { window.copied = text; }, true)")
    page.click("button", "Copy as")
    page.click("[role=option]", name)
    labels = "[...document.querySelectorAll('button')].map((one) => one.textContent)"
    copied = page.until(f"{labels}.includes('{name} copied') && window.copied")  # for two seconds

    assert page.problems() == []
    body = json.loads(page.parameter("query"))
    if name == "JSON":
        assert json.loads(copied) == body
    elif name == "SQL":
        reply = page.service.post(
            f"/v1/query/sql?website_id={page.website}", body, headers=bearer(page.service.master)
        )
        assert copied == reply.json()["sql"]
    else:
        assert page.website in copied
        assert "hr_" not in copied  # the beginning of every key
    if name == "Python":
        date = datetime.now(ZONE).date()
        assert run_python(page, copied) == (
            0,
            f"{ {'date': str(date), 'path': '/a', 'views': 3} }\n",
            "",
        )
        refusal = 'Invalid table "evnts" (did you mean "events"?)\n'
        assert run_python(page, copied.replace('"events"', '"evnts"')) == (1, "", refusal)


def run_python(page: Page, program: str) -> tuple[int, str, str]:
    """Run a program that was copied, with a key; return its exit code and what it printed."""
    environment = {"HEADRACE_API_KEY": page.service.master.secret, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


COUNTED_QUERIES = """
((real) => {
  [window.sent, window.answered] = [0, 0];
  window.fetch = (url, options) => {
    const response = real(url, options);
    if (String(url).includes("/v1/query/custom")) {
      sent += 1;
      response.then((one) => one.clone().text()).then(() => (answered += 1));
    }
    return response;
  };
  return true;
})(fetch)
"""


def test_the_way_back_sends_no_query_after_one_was_run_again(page: Page) -> None:
    page.open("explore", query=json.dumps(BODY))
    page.settle()
    page.until(COUNTED_QUERIES)
    page.click(".query footer button", "Run again")
    page.until("answered === 1")  # what is shown is not busy meanwhile
    page.settle()
    page.click(".word", "the 1 highest, and all others in one")
    page.click("[role=option]", "the 5 highest")
    page.until("answered === 2")
    page.settle()
    page.tab.run("history.back(); arguments[0]()")
    page.until("document.querySelector('.sentence').innerText.includes('the 1 highest')")
    page.settle()

    assert page.until("[sent]") == [2]
    assert page.problems() == []


def test_query_that_the_browser_does_not_copy_says_why(page: Page) -> None:
    """A page without TLS has no clipboard, but for one of this machine."""
    page.open("explore", query=json.dumps(BODY))
    page.until("(Object.defineProperty(navigator, 'clipboard', {value: undefined}), true)")
    page.click("button", "Copy as")
    page.click("[role=option]", "curl")
    said = page.until("document.querySelector('.query .refusal')?.textContent")

    assert said == "Not copied: browsers allow it on HTTPS pages alone"
    assert page.problems() == []


WORDS = "[...document.querySelectorAll('.word')].map((one) => one.textContent)"


@pytest.mark.parametrize(
    ("days", "word", "refusal"),
    [
        (
            {"startDate": "2026-13-45", "endDate": "soon"},
            "2026-13-45 \N{EN DASH} soon",
            'Invalid startDate "2026-13-45"',
        ),
        (
            {"lastDays": 7, "compare": {"startDate": "2026-13-45", "endDate": 7}},
            "2026-13-45 \N{EN DASH} 7",
            "Invalid compare",
        ),
        ({"lastDays": 7, "compare": None}, "+ beside", ""),
    ],
    ids=["days", "days to compare with", "nothing to compare with"],
)
def test_days_that_are_none_are_shown_with_what_the_service_says_of_them(
    page: Page, days: Json, word: str, refusal: str
) -> None:
    query = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}
    page.open("explore", query=json.dumps({"query": query, **days}))
    page.until(f"{WORDS}.includes({json.dumps(word)})")
    page.settle()

    said: str = page.until("[document.querySelector('.why, .failure')?.textContent ?? '']")[0]
    assert said.startswith(refusal)
    assert (said == "") == (refusal == "")
    assert page.problems() == []


def test_suggestion_of_two_names_is_shown_and_the_first_is_offered(page: Page) -> None:
    page.open("explore", query=json.dumps({"query": {**QUERY, "groupBy": ["os"]}, "lastDays": 1}))
    said = page.until("document.querySelector('.refused .why span')?.textContent")
    offered = page.until("document.querySelector('.refused .why button')?.textContent")
    page.click(".refused .why button")
    page.until(f"{WORDS}.includes('system')")

    assert said == (
        'Invalid column "os" for table "events"'
        ' (did you mean "os_name", or the property "properties.os"?)'
    )
    assert offered == "Use os_name"
    assert json.loads(page.parameter("query"))["query"]["groupBy"] == ["os_name"]
    assert page.problems() == []


WHERE_IS_IT: list[tuple[Json, str, str]] = [
    (
        {"selects": [{**QUERY["selects"][0], "filters": [{"field": "pth", "operator": "is_set"}]}]},
        "views where Pth is set",
        'Invalid column "pth" for table "events"',
    ),
    (
        {
            "filters": [
                {"field": "path", "operator": "ne", "value": "/x"},
                {"or": [{"field": "path", "operator": "ne", "value": ["/y"]}]},
            ]
        },
        "Page is not /y",
        'Invalid value for column "path": ne takes a single value, not an array; not_in takes one',
    ),
    (
        {"filters": [{"field": "properties", "operator": "is_set"}]},
        "Properties is set",
        'Invalid column "properties" for table "events" (did you mean "properties.KEY"?)',
    ),
    (
        {"filters": [{"or": []}]},
        "",
        "Invalid filter in query.filters[0].or: a group has at least one filter",
    ),
]


@pytest.mark.parametrize(
    ("part", "word", "refusal"),
    WHERE_IS_IT,
    ids=["select", "filter in a group", "property", "group"],
)
def test_refusal_is_shown_at_the_word_that_it_is_about_or_above_all(
    page: Page, part: Json, word: str, refusal: str
) -> None:
    page.open("explore", query=json.dumps({"query": {**QUERY, **part}, "lastDays": 1}))
    said = page.until(
        "document.querySelector('.query .why span, .query .refusal.note')?.textContent.trim()"
    )
    refused = page.until("[document.querySelector('.refused .word')?.textContent ?? '']")

    assert (said, refused) == (refusal, [word])
    assert page.problems() == []


@pytest.mark.parametrize(
    "days", [{"lastDays": 7, "timezone": "Mars/Base"}, {"lastDays": 9e12}], ids=["zone", "days"]
)
def test_other_days_are_chosen_where_there_are_none(page: Page, days: Json) -> None:
    query = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}
    page.open("explore", query=json.dumps({"query": query, **days}))
    page.click(".word[title='Range of days']")
    page.click(".panel [role=option]", "Last 14 days")

    assert page.until(f"{WORDS}.includes('the last 14 days')")
    assert page.problems() == []


def test_groups_without_their_last_column_are_not_chosen_any_more(page: Page) -> None:
    page.open("explore", query=json.dumps(BODY))
    page.click(".word", "the 1 highest, and all others in one")
    page.click("[role=option]", "the 5 highest")
    page.until("!location.href.includes('others')")
    page.click(".word", "page")
    page.click(".panel button", "Remove")
    page.until("!location.href.includes('groupBy')")

    changed = json.loads(page.parameter("query"))
    assert changed == {
        **{name: BODY[name] for name in ("lastDays", "timezone", "granularity", "totals")},
        "query": {name: QUERY[name] for name in ("table", "selects")},
    }
    assert page.problems() == []


def test_first_event_of_a_website_turns_the_light_green_and_draws_the_overview(page: Page) -> None:
    new = Page(page.tab, page.service, page.service.website())
    track = f"/track?website_id={new.website}"
    light = "document.querySelector('.light')"
    new.open("/")
    new.until(f"{light}?.textContent.includes('Waiting for the first event')")
    assert new.service.post(track, [{"name": ""}]).status_code == 400
    refusal = new.until(f"{light}.querySelector('.refusal')?.textContent")
    view = {"name": "screen_view", "path": "/", "anonymousId": "v", "sessionId": "s"}
    assert new.service.post(track, [view]).status_code == 200

    assert new.totals(1)["Page views"] == "1"
    assert new.until("document.querySelector('.breakdown .ranked bdi')?.textContent") == "/"
    assert "Item 1, name: " in refusal
    new.open("setup")
    new.until(f"{light}.className.includes('on')")
    assert new.until(f"{light}.textContent.includes('1 event so far')")
    assert new.problems() == []


def test_event_that_comes_before_anything_is_heard_turns_the_light_green(page: Page) -> None:
    new = Page(page.tab, page.service, page.service.website())
    light = "document.querySelector('.light')"
    new.open("vitals")
    new.until(
        "((real) => (window.fetch = (url, options) => `${url}`.includes('/v1/live')"
        " ? new Promise((done) => { window.hear = () => done(real(url, options)) || true; })"
        " : real(url, options)))(window.fetch) && true"
    )
    new.click("nav a", "Setup")
    new.until("window.hear && true")
    new.until(f"{light}.textContent.includes('Looking for events')")
    new.settle()
    event = {"name": "seen", "anonymousId": "v", "sessionId": "s"}
    assert new.service.post(f"/track?website_id={new.website}", [event]).status_code == 200
    new.until("window.hear()")

    assert new.until(f"{light}.textContent.includes('1 event so far')")
    assert new.until(f"{light}.className.includes('on')")


def test_event_that_is_counted_before_it_is_heard_is_one_event(page: Page) -> None:
    new = Page(page.tab, page.service, page.service.website())
    light = "document.querySelector('.light')"
    new.open("vitals")
    new.until(
        "((real) => {"
        " const [counted, heard] = ['count', 'hear'].map("
        "(name) => new Promise((done) => addEventListener(name, done)));"
        " const transform = async (chunk, stream) => {"
        " if (window.isOpen) await heard; stream.enqueue(chunk); window.isOpen = true; };"
        " window.fetch = async (url, options) => {"
        " if (`${url}`.includes('/v1/query/custom')) await counted;"
        " const response = await real(url, options);"
        " return `${url}`.includes('/v1/live')"
        " ? new Response(response.body.pipeThrough(new TransformStream({transform})), response)"
        " : response; };"
        "})(window.fetch) || true"
    )
    new.click("nav a", "Setup")
    new.until("window.isOpen")
    event = {"name": "seen", "anonymousId": "v", "sessionId": "s"}
    assert new.service.post(f"/track?website_id={new.website}", [event]).status_code == 200
    new.until("dispatchEvent(new Event('count'))")
    new.until(f"{light}.textContent.includes('1 event so far')")
    new.until("dispatchEvent(new Event('hear'))")

    assert new.until(f"{light}.textContent.includes('seen just now. 1 event so far')")


def test_events_of_bots_alone_turn_no_light_green_and_are_named(page: Page) -> None:
    new = Page(page.tab, page.service, page.service.website())
    track = f"/track?website_id={new.website}"
    light = "document.querySelector('.light')"
    bot = {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}
    new.open("/")
    new.until(f"{light}?.textContent.includes('Waiting for the first event')")
    for number in (1, 2):
        assert new.service.post(track, [{"name": "seen"}], headers=bot).status_code == 200
        new.until(f"{light}.textContent.includes('{number} event')")
    heard = new.until(f"{light}.innerText")
    new.open("setup")
    new.until(f"{light}?.textContent.includes('of bots')")

    assert heard.startswith("Waiting for the first event\n\n2 events of bots so far")
    assert new.until(f"{light}.innerText") == heard
    assert new.until(f"[{light}.className.includes('on')]") == [False]
    assert new.problems() == []


def test_a_file_that_is_waited_for_says_so(page: Page) -> None:
    page.open("explore", query=json.dumps({"query": QUERY, "lastDays": 1, "timezone": ZONE.key}))
    page.settle()
    button = "[...document.querySelectorAll('.query footer button')].map((e) => e.innerText)"
    page.tab.run("window.fetch = () => new Promise(() => {}); arguments[0]()")
    page.click(".query footer button", "CSV")

    assert page.until(f"{button}.includes('CSV …')")
    assert page.problems() == []


def test_a_click_on_a_head_orders_the_rows_by_its_column(page: Page) -> None:
    query = {"query": {**QUERY, "groupBy": ["path"]}, "lastDays": 1, "timezone": ZONE.key}
    page.open("explore", query=json.dumps(query), metric="table")
    head = "document.querySelector('th[aria-sort]')"
    orders: list[object] = []
    shown: list[list[str]] = []
    for _ in range(2):
        for name in ("path", "views"):
            before = page.until("location.href")
            page.click("th button", name)
            page.until(f"location.href !== {before!r}")
            page.settle()
            orders += json.loads(page.parameter("query"))["orderBy"]
            shown.append(page.until(f"[{head}.ariaSort, {head}.innerText.split(/\\s/)[0]]"))

    assert orders == [
        {"field": "path", "direction": "asc"},
        {"field": "views", "direction": "desc"},
        {"field": "path", "direction": "asc"},
        {"field": "views", "direction": "desc"},
    ]
    assert shown == [["ascending", "path"], ["descending", "views"]] * 2
    page.click("th button", "views")
    page.until(f"{head}.ariaSort === 'ascending'")
    page.settle()
    counts = page.until(
        "[...document.querySelectorAll('tbody .number')].map((one) => +one.innerText)"
    )
    assert counts == sorted(counts)
    assert len(counts) > 1
    assert page.problems() == []


def test_numbers_that_rows_are_grouped_by_have_all_their_digits(page: Page) -> None:
    website = page.service.website(public=True)
    numbers = [0.00012, 2026, 9007199254740992, 9007199254740993]
    events: list[Json] = [
        {"name": "order", "anonymousId": str(number), "properties": {"number": number}}
        for number in numbers
    ]
    assert page.service.post(f"/track?website_id={website}", events).status_code == 200
    own = Page(page.tab, page.service, website)
    query: Json = {**QUERY, "groupBy": ["properties.number"]}
    own.open("explore", query=json.dumps({"query": query, "lastDays": 1}), metric="table")
    cells = "[...document.querySelectorAll('.answer .data tbody td:first-child')]"
    shown = own.until(f"{cells}.length === 4 && {cells}.map((cell) => cell.textContent.trim())")
    steps: list[Json] = [{"filters": []}, {"filters": []}]
    own.open("funnels", query=json.dumps({"steps": steps, "groupBy": "properties.number"}))
    heads = "[...document.querySelectorAll('.cohorts tbody tr:not(.all) th')]"
    groups = own.until(f"{heads}.length && {heads}.map((head) => head.textContent)")

    assert shown == groups == [str(number) for number in numbers]
    assert own.problems() == []


def test_saved_query_is_opened_again_replaced_and_deleted(page: Page) -> None:
    query = json.dumps({"query": QUERY, "lastDays": 1, "timezone": ZONE.key})
    page.open("explore", query=query)
    save(page, "views-by-path")
    address = page.until("document.querySelector('.saved-note pre')?.textContent")
    answer = page.service.get(address.removeprefix(page.service.url))
    page.open("explore")
    page.click("button", "Saved queries")
    page.click(".saved [role=option]", "views-by-path")
    page.until("document.querySelectorAll('.ranked.tall li').length === 3")
    opened = json.loads(page.parameter("query"))
    page.click("button", "Saved queries")
    page.write(".saved input", "views-by-path")
    page.click(".saved button", "Delete it")
    names = "[...document.querySelectorAll('.saved [role=option]')].map((one) => one.textContent)"
    page.until(f"document.querySelector('.saved form') && !{names}.join().includes('views-by')")

    assert [row["views"] for row in answer.json()["data"]] == [3, 2, 1]
    assert opened == json.loads(query)
    assert page.problems() == []


def test_saving_under_a_name_that_is_taken_says_so(page: Page) -> None:
    page.open("explore", query=json.dumps(BODY))
    save(page, "twice")
    page.click("button", "Saved queries")
    page.write(".saved input", "twice")
    page.click(".saved button", "Replace")
    note = page.until(
        "document.querySelector('.saved-note').textContent.includes('answer the new query')"
        " && document.querySelector('.saved-note pre').textContent"
    )

    assert "token" not in note
    assert page.problems() == []


def test_the_address_of_a_saved_query_is_not_shown_for_another_website(page: Page) -> None:
    other = Page(page.tab, page.service, page.service.website(public=True))
    page.open("explore", query=json.dumps(BODY))
    save(page, "of-one")
    said: str = page.until("document.querySelector('.saved-note p').textContent")
    address = other.url("explore", query=json.dumps(BODY))
    page.tab.run(
        "const link = document.createElement('a'); [link.href, link.textContent] ="
        " [arguments[0], 'Other']; document.body.append(link); arguments[1]()",
        address,
    )
    page.click("body > a", "Other")
    page.until("document.querySelector('.answer .empty')")

    assert said.startswith("Saved as of-one. Anyone who has this address")
    assert page.parameter("website_id") == other.website
    assert page.until("[document.querySelectorAll('.saved-note').length]") == [0]


def save(page: Page, name: str) -> None:
    """Save what Explore shows, under a new name."""
    page.click("button", "Saved queries")
    page.write(".saved input", name)
    page.click(".saved button.primary", "Save")
    page.until("document.querySelector('.saved-note') !== null")
