"""Filters of several values, in a real Chromium."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

NAMES = ("Cups, plates", "Beans", "7")
CHIPS = "[...document.querySelectorAll('.panel .chip bdi')].map((one) => one.textContent)"
OPTIONS = "[...document.querySelectorAll('.panel [role=option] span')].map((e) => e.textContent)"


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a public website whose events have names with a comma, and a number of it."""
    website = service.website(public=True)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    events = [
        {"name": name, "anonymousId": f"v{name}", "sessionId": f"s{name}", "timestamp": now_ms}
        | {"properties": {"amount": number}}
        for number, name in enumerate(NAMES)
    ]
    key = bearer(service.master)
    assert service.post(f"/track?website_id={website}", events, headers=key).status_code == 200
    with opened_page(service, website, tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


def type_and_enter(page: Page, text: str) -> None:
    """Enter a value into the field of the open panel, as it is typed."""
    page.write(".panel input", text)
    page.until(
        f"{OPTIONS}[0] === '\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}'"
    )
    page.until(
        "document.querySelector('.panel input').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true})) || true"
    )


def test_values_with_a_comma_are_chosen_one_by_one(page: Page) -> None:
    page.open("/", last="7")
    page.settle()
    page.click("[data-shortcut='/']")
    page.click(".panel [role=option]", "Event")
    page.write(".panel select", "in")
    page.click(".panel [role=option]", "Cups, plates")
    page.until(f"{CHIPS}.length === 1")
    offered = page.until(f"{OPTIONS}.length === 2 && {OPTIONS}")
    page.until("document.activeElement === document.querySelector('.panel input')")
    type_and_enter(page, "Nuts, salted")
    page.until(f"{CHIPS}.length === 2")
    page.click(".panel button", "Apply")
    shown = page.until("document.querySelector('.filters .chip bdi')?.textContent")

    assert sorted(offered) == ["7", "Beans"]
    assert json.loads(page.parameter("filters")) == [
        {"field": "event_name", "operator": "in", "value": ["Cups, plates", "Nuts, salted"]}
    ]
    assert shown == "Event is one of “Cups, plates”, “Nuts, salted”"
    assert page.totals(1)["Sessions"] == "1"
    assert page.problems() == []


def test_values_of_a_filter_are_kept_when_it_is_edited(page: Page) -> None:
    filters = [{"field": "event_name", "operator": "in", "value": ["Cups, plates", "7", "Beans"]}]
    selects = [{"field": "*", "aggregate": "count"}]
    query = {"table": "events", "selects": selects, "filters": filters}
    page.open("explore", query=json.dumps({"query": query, "lastDays": 7}))
    page.click(".word", "Event is one of")
    before = page.until(f"{CHIPS}.length && {CHIPS}")
    page.click(".panel [aria-label='Remove Beans']")
    page.until(f"{CHIPS}.length === 2")
    page.click(".panel button", "Apply")
    page.until("!location.href.includes('Beans')")

    assert before == ["Cups, plates", "7", "Beans"]
    (kept,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert kept["value"] == ["Cups, plates", "7"]
    assert page.problems() == []


def test_numbers_between_commas_are_several_numbers(page: Page) -> None:
    filters = [{"field": "value", "operator": "in", "value": [4]}]
    selects = [{"field": "*", "aggregate": "count"}]
    query = {"table": "events", "selects": selects, "filters": filters}
    page.open("explore", query=json.dumps({"query": query, "lastDays": 7}))
    page.click(".word", "Value is one of")
    type_and_enter(page, "1, 2.5")
    page.until(f"{CHIPS}.length === 3")
    page.click(".panel button", "Apply")
    page.until("location.href.includes('2.5')")

    (kept,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert kept["value"] == [4, 1, 2.5]
    assert page.problems() == []
