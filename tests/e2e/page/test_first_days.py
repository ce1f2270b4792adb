"""The overview of a website in its first days: a range that fits, and no comparison with zeros."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

CHANGES = "[...document.querySelectorAll('.figure .change')].map((one) => one.textContent.trim())"
LEGEND = "[...document.querySelectorAll('.legend span')].map((one) => one.textContent)"
RANGE = "document.querySelector('[title=\"Range of days\"] span').textContent"
NOTHING = "\N{EN DASH}"


@pytest.fixture(scope="module")
def tab(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab in which each test opens a public website of its own."""
    with opened_page(service, "", tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


def opened(tab: Page, *days_ago: int, **parameters: str) -> Page:
    """Open the overview of a new website with an event on each of some days."""
    website = tab.service.website(public=True)
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
    sent = tab.service.post(
        f"/track?website_id={website}", items, headers=bearer(tab.service.master)
    )
    assert sent.status_code == 200, sent.text
    page = Page(tab.tab, tab.service, website)
    page.open("/", **parameters)
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
    time = datetime.fromisoformat(row["first"])
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
    page.open("/", last="30")
    page.settle()
    assert page.until(RANGE) == "Last 30 days"


@pytest.mark.parametrize(
    ("first", "before"),
    [(40, "="), (75, "was 0"), (29, NOTHING)],
    ids=["events before", "a pause of weeks", "the first day of the range"],
)
def test_an_older_website_opens_with_thirty_days(tab: Page, first: int, before: str) -> None:
    page = opened(tab, first, 0)
    changes = page.until(CHANGES)

    assert page.until(RANGE) == "Last 30 days"
    assert "last=" not in page.until("location.href")
    assert changes[0].startswith(before)
    assert page.problems() == []
