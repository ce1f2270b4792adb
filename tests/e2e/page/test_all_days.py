"""The range that begins with the first row of a website and ends today."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, noon_zone, opened_page
from testing.service import Json, Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

ZONE = noon_zone()
RANGE = "document.querySelector('[title=\"Range of days\"] span').textContent"
DAYS = "document.querySelector('[title=\"Range of days\"] small').textContent"
LABELS = (
    "[...document.querySelectorAll('.ranges .quiet')].map((one) => one.innerText.trim())"
    ".slice(0, -1)"
)
FIRST_EVENT_DAYS = 900
FIRST_ERROR_DAYS = 200


def days_ago_ms(days: int) -> int:
    return int((datetime.now(ZONE) - timedelta(days=days)).timestamp() * 1000)


def shown_day(days_ago: int) -> str:
    """Return a day as the page shows it, with its year."""
    day = datetime.now(ZONE) - timedelta(days=days_ago)
    return f"{day.day} {day:%b %Y}"


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a public website with events of years and errors of months."""
    website = service.website(public=True)
    events: list[Json] = [
        {"name": "screen_view", "path": "/", "anonymousId": f"v{days}", "sessionId": f"s{days}"}
        | {"timestamp": days_ago_ms(days)}
        for days in (FIRST_EVENT_DAYS, 400, 0)
    ]
    key = bearer(service.master)
    assert service.post(f"/track?website_id={website}", events, headers=key).status_code == 200
    fault = {"timestamp": days_ago_ms(FIRST_ERROR_DAYS), "path": "/", "message": "It broke"}
    assert service.post(f"/errors?client_id={website}", [fault]).status_code == 200
    with opened_page(service, website, tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


def choose_all(page: Page) -> None:
    page.click("[title='Range of days']")
    page.click("[role=option]", "All")
    page.until(f"{RANGE} === 'All'")
    page.settle()


def test_all_days_are_those_since_the_first_event(page: Page) -> None:
    page.open("/", timezone=ZONE.key)
    page.settle()
    choose_all(page)

    assert page.totals(3)["Page views"] == "3"
    assert page.parameter("last") == "all"
    assert page.until(DAYS).startswith(shown_day(FIRST_EVENT_DAYS))
    assert page.until(LABELS) == ["vs nothing", "by month"]
    assert page.until("document.querySelectorAll('.figure .change').length + 1") == 1
    assert page.until("document.querySelector('[aria-label=\"Period before\"]').disabled")
    page.press("[")
    assert page.parameter("last") == "all"
    assert page.problems() == []


def test_a_link_to_all_days_shows_them_and_another_view_has_days_of_its_own(page: Page) -> None:
    page.open("/", timezone=ZONE.key, last="all")
    totals = page.totals(3)
    page.click("nav a", "Errors")
    page.until("location.pathname === '/app/errors'")
    page.settle()

    assert totals["Sessions"] == "3"
    assert page.until(DAYS).startswith(shown_day(FIRST_ERROR_DAYS).split(" 20")[0])
    assert page.until(LABELS) == ["by week"]
    assert page.until("document.querySelector('#content').innerText.includes('It broke')")
    assert page.problems() == []


def test_all_days_of_a_website_without_events_lead_to_the_first_one(page: Page) -> None:
    empty = Page(page.tab, page.service, page.service.website(public=True))
    empty.open("/", last="all")
    empty.settle()

    assert empty.until("document.querySelector('.welcome h2').innerText") == "No events yet"
    assert empty.until(
        "[...document.querySelectorAll('.ranges .popover > button')].map((one) => one.title)"
    ) == ["Range of days", "Time zone"]
    assert empty.problems() == []


def test_all_days_of_a_query_have_buckets_that_fit_its_rows(page: Page) -> None:
    page.open("explore", timezone=ZONE.key)
    page.settle()
    page.click("[title='Bucket']")
    page.click("[role=option]", "hour")
    page.until("document.querySelector('[title=Bucket]').innerText === 'hour'")
    page.click("[title='Range of days']")
    page.click("[role=option]", "All")
    page.until("document.querySelector('[title=Bucket]').innerText === 'month'")
    page.settle()

    label = page.until("document.querySelector('[title=\"Range of days\"]').innerText")
    assert label.startswith(shown_day(FIRST_EVENT_DAYS))
    assert page.problems() == []
