"""The page without a mouse: keys, focus and panels, in a real Chromium."""

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page
from tests.e2e.page.seeded_events import VISITORS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]


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


@pytest.mark.parametrize("path", ["/", "vitals", "explore"])
def test_a_tab_leads_to_the_panel_that_it_shows(page: Page, path: str) -> None:
    page.open(path)
    page.settle()
    panels = page.until(
        "[...document.querySelectorAll('[role=tab]')].map((tab) => {"
        " const panel = document.getElementById(tab.getAttribute('aria-controls'));"
        " const name = document.getElementById(panel?.getAttribute('aria-labelledby'));"
        " return [panel?.getAttribute('role'), name?.ariaSelected,"
        " name?.parentElement === tab.parentElement, panel?.childElementCount > 0]; })"
    )

    assert panels
    assert [one for one in panels if one != ["tabpanel", "true", True, True]] == []


def test_the_first_link_skips_to_the_content(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.click(".skip")

    assert page.until("document.activeElement.id") == "content"


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


def test_a_list_that_finds_nothing_says_so_to_screen_readers(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.click("[title='Time zone']")
    status = "document.querySelector('.panel .options [role=status]')"
    before = page.until(f"[{status}?.textContent.replace(/^\\d+/, 'Some')]")
    page.until(f"(window.heard = {status}, true)")
    page.write("[aria-label='Search time zones']", "nowhere")
    page.until("!document.querySelector('.panel [role=option]')")
    said = page.until(f"[heard === {status} && heard?.textContent]")
    page.write("[aria-label='Search time zones']", "Tokyo")
    page.until("document.querySelector('.panel [role=option]')")

    assert (before, said) == (["Some more: search for them"], ["Nothing found"])
    assert page.until(f"[heard === {status} && heard.textContent]") == [""]
