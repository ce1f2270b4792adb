"""The overview of a website in its first days: a range that fits, and no comparison with zeros."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, noon_zone, opened_page
from testing.service import Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

ZONE = noon_zone()
CHANGES = "[...document.querySelectorAll('.figure .change')].map((one) => one.textContent.trim())"
LEGEND = "[...document.querySelectorAll('.legend span')].map((one) => one.textContent)"
RANGE = "document.querySelector('[title=\"Range of days\"] span').textContent"
NOTHING = "\N{EN DASH}"


@pytest.fixture(scope="module")
def tab(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab in which each test opens a public website of its own."""
    with opened_page(service, "", tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


def send_events(service: Service, website: str, *days_ago: int) -> None:
    """Send an event on each of some days."""
    now = datetime.now(UTC)
    items = [
        {
            "name": "screen_view",
            "path": "/",
            "anonymousId": f"v{days}",
            "sessionId": f"s{days}",
            "timestamp": int((now - timedelta(days=days)).timestamp() * 1000),
        }
        for days in days_ago
    ]
    track = f"/track?website_id={website}"
    sent = service.post(track, items, headers=bearer(service.master))
    assert sent.status_code == 200, sent.text


def opened(tab: Page, *days_ago: int, **parameters: str) -> Page:
    """Open the overview of a new website with an event on each of some days."""
    page = Page(tab.tab, tab.service, tab.service.website(public=True))
    send_events(tab.service, page.website, *days_ago)
    page.open("/", timezone=ZONE.key, **parameters)
    page.settle()
    page.until("document.querySelector('.legend')")
    return page


def first_event(page: Page) -> str:
    """Return what the page says of a comparison with nothing."""
    query = {
        "table": "events",
        "selects": [{"field": "time", "aggregate": "earliest", "alias": "first"}],
    }
    (row,) = page.service.answer(page.website, query)
    time = datetime.fromisoformat(row["first"]).astimezone(ZONE)
    date = f"{time.day} {time:%b %Y, %H:%M:%S}"
    return f"Nothing to compare with: no events before {date}"


def table_rows(page: Page) -> list[list[str]]:
    """Return the rows of the table behind the chart."""
    page.click(".lead .chart-head button", "Table")
    rows: list[list[str]] = page.until(
        "((rows) => rows.length && rows.map((row) => [...row.cells].map((one) => one.innerText)))"
        "([...document.querySelectorAll('.lead tr')])"
    )
    return rows


def test_a_website_opens_with_today_by_hour_on_its_first_day(tab: Page) -> None:
    page = opened(tab, 0)

    assert page.parameter("last") == "1"
    assert page.until(RANGE) == "Today"
    assert page.totals(1)["Page views"] == "1"
    assert page.until(CHANGES) == [f"{NOTHING} {first_event(page)}"] * 5
    assert page.until(LEGEND) == ["Visitors", first_event(page)]
    (heads, *hours) = table_rows(page)
    assert heads == ["Date", "Visitors"]
    assert len(hours) == 24
    assert sum(int(row[1]) for row in hours) == 1
    assert page.problems() == []


@pytest.mark.parametrize(
    ("first", "last", "name"),
    [(2, "3", "Last 3 days"), (5, "7", "Last 7 days"), (13, "14", "Last 14 days")],
)
def test_a_young_website_opens_with_the_days_that_it_has(
    tab: Page, first: int, last: str, name: str
) -> None:
    page = opened(tab, first, 0)

    assert page.parameter("last") == last
    assert page.until(RANGE) == name
    assert page.totals(2)["Page views"] == "2"
    assert page.until(CHANGES) == [f"{NOTHING} {first_event(page)}"] * 5
    assert page.problems() == []


def test_a_range_of_the_url_is_kept_and_compared_with_a_dash(tab: Page) -> None:
    page = opened(tab, 0, last="30")

    assert page.parameter("last") == "30"
    assert page.until(RANGE) == "Last 30 days"
    assert page.until(CHANGES) == [f"{NOTHING} {first_event(page)}"] * 5
    (heads, *days) = table_rows(page)
    assert (heads, len(days)) == (["Date", "Visitors"], 30)
    assert page.problems() == []


def test_thirty_days_that_are_chosen_on_the_first_day_are_kept(tab: Page) -> None:
    page = opened(tab, 0)
    page.click("[title='Range of days']")
    page.click(".range-panel [role=option]", "Last 30 days")
    page.until(f"{RANGE} === 'Last 30 days'")
    page.settle()

    assert page.parameter("last") == "30"
    page.open("/", timezone=ZONE.key, last="30")
    page.settle()
    assert page.until(RANGE) == "Last 30 days"


@pytest.fixture(scope="module")
def operator(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of somebody who chooses between a young and an older website, on the young one."""
    young, older = (
        service.directory.create_website(name=name, domain=f"{name}.example").id
        for name in ("young", "older")
    )
    send_events(service, young, 0)
    send_events(service, older, 40, 0)
    code = service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA}), website_ids=(young, older)
    )
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, young, profile) as page:
        address = f"{service.url}/app/?website_id={young}&timezone={quote(ZONE.key)}"
        page.tab.open(f"{address}#code={code}")
        page.until(f"{RANGE} === 'Today'")
        yield page


def choose_website(page: Page, name: str) -> None:
    page.click("[title='Website']")
    page.click("[aria-label='websites'] [role=option]", name)
    page.until(f"document.querySelector('[title=Website]').textContent === '{name}'")


def open_young(page: Page, path: str, **parameters: str) -> None:
    page.open(path, timezone=ZONE.key, **parameters)
    page.until(f"{RANGE} === 'Today'")


def test_a_range_that_fits_one_website_is_not_kept_for_another(operator: Page) -> None:
    open_young(operator, "/")

    choose_website(operator, "older")

    assert operator.until(f"{RANGE} === 'Last 30 days'")
    assert "last=" not in operator.until("location.href")
    choose_website(operator, "young")
    assert operator.until(f"{RANGE} === 'Today'")
    assert operator.problems() == []


def test_a_range_that_fits_is_still_one_in_other_views_and_after_a_reload(operator: Page) -> None:
    open_young(operator, "/")
    operator.click(".figure", "Sessions")
    operator.click("nav a", "Web vitals")
    operator.until("location.pathname === '/app/vitals'")
    operator.tab.open(operator.until("location.href"))
    assert operator.until(RANGE) == "Today"

    choose_website(operator, "older")

    assert operator.until(f"{RANGE} === 'Last 30 days'")
    assert operator.problems() == []


def test_a_range_that_was_chosen_is_kept_for_another_website(operator: Page) -> None:
    open_young(operator, "/")
    operator.click("[title='Range of days']")
    operator.click(".range-panel [role=option]", "Today")

    choose_website(operator, "older")
    operator.settle()

    assert operator.parameter("last") == "1"
    assert operator.until(RANGE) == "Today"
    assert operator.problems() == []


def test_a_range_of_the_url_is_kept_for_another_website(operator: Page) -> None:
    open_young(operator, "/", last="1")

    choose_website(operator, "older")
    operator.settle()

    assert operator.parameter("last") == "1"
    assert operator.problems() == []


@pytest.mark.parametrize(
    ("first", "before"),
    [(59, "=unchanged"), (75, "was 0"), (40, NOTHING), (29, NOTHING)],
    ids=[
        "the first day before",
        "a pause of weeks",
        "a part of the days before",
        "the first day of the range",
    ],
)
def test_an_older_website_opens_with_thirty_days(tab: Page, first: int, before: str) -> None:
    page = opened(tab, first, 0)
    changes = page.until(CHANGES)

    assert page.until(RANGE) == "Last 30 days"
    assert "last=" not in page.until("location.href")
    assert changes[0].startswith(before)
    assert page.problems() == []


def test_a_range_before_that_is_known_in_part_is_drawn_and_gives_no_change(tab: Page) -> None:
    page = opened(tab, 40, 0)
    first = first_event(page)

    assert page.until(CHANGES) == [f"{NOTHING} {first.replace('Nothing', 'No whole range')}"] * 5
    assert page.until(LEGEND) == ["Visitors", "Before", first.replace("Nothing", "No whole range")]
    rows = table_rows(page)
    assert [row[2] for row in rows[1:]] == [NOTHING] * 19 + ["1"] + ["0"] * 10
    assert page.problems() == []


def test_a_range_without_events_names_the_last_one(tab: Page) -> None:
    page = Page(tab.tab, tab.service, tab.service.website(public=True))
    send_events(tab.service, page.website, 5)
    page.open("/", timezone=ZONE.key, last="1")
    page.until("document.querySelector('.welcome')")
    title = page.until("document.querySelector('.welcome h2').textContent")
    said = page.until("document.querySelector('.welcome p').textContent")
    page.click(".welcome a")
    page.settle()

    assert title == "No events in these days"
    assert said.startswith("The last one was on ")
    last_day = (datetime.now(ZONE) - timedelta(days=5)).date()
    assert page.parameter("to") == last_day.isoformat()
    assert page.parameter("from") == (last_day - timedelta(days=29)).isoformat()
    assert page.totals(1)["Page views"] == "1"
    assert page.problems() == []
