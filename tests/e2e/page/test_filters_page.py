"""Filters of several values, in a real Chromium."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Json, Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

NAMES = ("Cups, plates", "Beans", "7")
ORDERS = (2**53, 2**53 + 1, 2**53 + 1)
"""Whole numbers, of which a number of JavaScript has the first alone."""
CHIPS = "[...document.querySelectorAll('.panel .chip bdi')].map((one) => one.textContent)"
OPTIONS = "[...document.querySelectorAll('.panel [role=option] span')].map((e) => e.textContent)"


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a public website whose events have names with a comma, and a number of it."""
    website = service.website(public=True)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    events = [
        {"name": name, "anonymousId": f"v{name}", "sessionId": f"s{name}", "timestamp": now_ms}
        | {"properties": {"amount": number, "order": ORDERS[number]}}
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


def test_days_in_the_wrong_order_say_so(page: Page) -> None:
    page.open("/", last="7")
    page.click("button[title='Range of days']")
    for label, day in (("From", "2026-03-02"), ("To", "2026-03-01")):
        page.write(f".range-panel label:nth-of-type({1 if label == 'From' else 2}) input", day)
    said = page.until("document.querySelector('.range-panel .refusal')?.textContent")
    is_disabled = page.until("[document.querySelector('.range-panel form button').disabled]")
    page.write(".range-panel label:nth-of-type(2) input", "2026-03-02")
    page.until("!document.querySelector('.range-panel .refusal')")

    assert (said, is_disabled) == ("The last day is before the first", [True])
    assert page.problems() == []


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


def open_property_filter(page: Page, operator: str) -> None:
    """Open the panel of a filter on a property, and choose another operator."""
    filters = [{"field": "properties.code", "operator": "ends_with", "value": "x"}]
    selects = [{"field": "*", "aggregate": "count"}]
    query: Json = {"table": "events", "selects": selects, "filters": filters}
    page.open("explore", query=json.dumps({"query": query, "lastDays": 7}))
    page.click(".word", "ends with")
    page.write(".panel select", operator)


@pytest.mark.parametrize(
    ("operator", "typed", "sent"),
    [("contains", "12", "12"), ("not_matches", "1", "1"), ("gt", "12", 12)],
)
def test_digits_are_a_text_where_the_operator_of_a_property_takes_texts(
    page: Page, operator: str, typed: str, sent: str | float
) -> None:
    open_property_filter(page, operator)
    page.write(".value-form input", typed)
    page.click(".value-form button", "Apply")
    page.until("!location.href.includes('ends_with')")
    page.until("document.querySelector('.answer') !== null")

    (item,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert item == {"field": "properties.code", "operator": operator, "value": sent}
    assert page.until("[document.querySelectorAll('.refused').length]") == [0]
    assert page.problems() == []


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("-1.5", -1.5), ("007", "007"), ("0x10", "0x10"), ("true", True)],
)
def test_a_value_of_a_property_is_a_number_where_json_has_it_so(
    page: Page, typed: str, sent: str | float
) -> None:
    open_property_filter(page, "eq")
    type_and_enter(page, typed)
    page.until("!location.href.includes('ends_with')")

    (item,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert item == {"field": "properties.code", "operator": "eq", "value": sent}
    assert page.problems() == []


def open_orders(page: Page, order: Json) -> None:
    """Open Explore with the number of events that a filter of their order leaves."""
    filters = [{"field": "properties.order", **order}]
    selects = [{"field": "*", "aggregate": "count", "alias": "n"}]
    query: Json = {"table": "events", "selects": selects, "filters": filters}
    page.open("explore", query=json.dumps({"query": query, "lastDays": 7, "totals": True}))


def shown_count(page: Page, words: str) -> str:
    """Return the figure of Explore, once its filter has the words."""
    page.until(f"document.querySelector('.sentence').textContent.includes({json.dumps(words)})")
    page.settle()
    count: str = page.until("document.querySelector('.numbers b').textContent")
    return count


def test_whole_numbers_of_any_size_are_sent_as_they_were_typed(page: Page) -> None:
    open_orders(page, {"operator": "ne", "value": 1})
    page.click(".word", "is not 1")
    typed = 2**53 + 3
    type_and_enter(page, str(typed))

    assert shown_count(page, f"is not {typed}") == "3"
    (item,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert item == {"field": "properties.order", "operator": "ne", "value": typed}
    assert page.problems() == []


def test_whole_numbers_of_any_size_are_offered_as_they_are_stored(page: Page) -> None:
    open_orders(page, {"operator": "eq", "value": ORDERS[0]})
    before = shown_count(page, f"is {ORDERS[0]}")
    page.click(".word", f"is {ORDERS[0]}")
    offered = page.until(f"{OPTIONS}.length > 1 && {OPTIONS}")
    page.click(".panel [role=option]", str(ORDERS[1]))

    assert offered == [str(ORDERS[1]), str(ORDERS[0])]
    assert (before, shown_count(page, f"is {ORDERS[1]}")) == ("1", "2")
    assert page.problems() == []


def test_json_of_a_query_has_whole_numbers_of_any_size(page: Page) -> None:
    open_orders(page, {"operator": "in", "value": [ORDERS[0]]})
    page.click(".query footer button", "JSON")
    written: str = page.until("document.querySelector('textarea')?.value")
    page.write("textarea", written.replace(str(ORDERS[0]), str(2**70 + 1)))
    page.click(".json button", "Run")

    assert shown_count(page, str(2**70 + 1)) == "0"
    (item,) = json.loads(page.parameter("query"))["query"]["filters"]
    assert item["value"] == [2**70 + 1]
    assert page.until("document.querySelector('textarea').value").count(str(2**70 + 1)) == 1
    assert page.problems() == []


def test_a_link_keeps_filters_with_whole_numbers_of_any_size(page: Page) -> None:
    value = {"field": "properties.order", "operator": "eq", "value": ORDERS[1]}
    page.open("/", last="7", filters=json.dumps([value]))
    totals = page.totals(2)
    page.click("[aria-label='Period before']")
    page.until("location.href.includes('from=')")

    assert totals["Visitors"] == "2"
    assert json.loads(page.parameter("filters")) == [value]
    assert page.problems() == []


def test_a_filter_that_is_there_is_not_added_again(page: Page) -> None:
    beans = {"field": "event_name", "operator": "eq", "value": "Beans"}
    page.open("/", last="7", filters=json.dumps([beans]))
    page.settle()
    page.click("[data-shortcut='/']")
    page.click(".panel [role=option]", "Event")
    page.click(".panel [role=option]", "Beans")
    page.until("!document.querySelector('.panel')")
    page.settle()
    shown = page.until("[...document.querySelectorAll('.filters .chip bdi')].map((e) => e.title)")

    assert shown == ["Event is Beans"]
    assert json.loads(page.parameter("filters")) == [beans]
    assert page.problems() == []
