"""Sessions that end, are replaced, or cannot be ended, in a real Chromium."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from headrace.model.tenancy import Scope, WebsiteId
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

SIGN_IN = "document.querySelector('.sign-in input[type=password]')"
TABS = (
    "[...document.querySelectorAll('nav[aria-label=Administration] a')].map((e) => e.textContent)"
)
READER = ["Storage"]
OPERATOR = ["Storage", "Websites", "Keys", "Organizations", "Quarantine", "Audit log"]


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a private website."""
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, service.website(), profile) as page:
        yield page


def code_of(page: Page, *scopes: Scope) -> str:
    return page.service.directory.sessions.create_code(scopes=frozenset({Scope.READ_DATA, *scopes}))


def open_by_link(page: Page, path: str, code: str) -> None:
    page.tab.open("about:blank")
    page.tab.open(f"{page.url(path)}#code={code}")


def open_signed_in(page: Page, path: str, *scopes: Scope) -> None:
    open_by_link(page, path, code_of(page, *scopes))
    page.until("document.querySelector('#content') && !location.hash")


def end_session(page: Page) -> None:
    """End the session as its time does: the browser has no cookie any more.

    What a view that is not settled still asks for leads to the sign-in before any click does.
    """
    page.tab.command("Network.clearBrowserCookies")


def test_a_session_that_ended_says_so_and_another_one_goes_on_there(page: Page) -> None:
    open_signed_in(page, "errors")
    page.settle()
    end_session(page)
    page.click("button[title='Period before ( [ )']")
    said = page.until("document.querySelector('.sign-in [role=status]')?.textContent")
    page.write(".sign-in input", page.service.key("read:data").secret)
    page.click(".sign-in button")
    page.settle()

    assert said == "This session has ended. Sign in again to go on where it was."
    assert page.until("location.pathname") == "/app/errors"
    assert page.parameter("from")
    page.click("button", "Sign out")
    assert page.until(f"{SIGN_IN} && [document.querySelectorAll('.sign-in [role=status]').length]")
    assert page.problems() == []


def test_the_title_of_the_tab_names_no_website_any_more_when_a_session_has_ended(
    page: Page,
) -> None:
    open_signed_in(page, "errors")
    page.settle()
    before = page.until("document.title")
    page.click("button", "Sign out")
    page.until(SIGN_IN)
    page.settle()

    assert before == "Errors · shop"
    assert page.until("document.title") == "Sign in · Headrace"


def test_a_live_view_whose_session_ended_leads_to_the_sign_in(page: Page) -> None:
    open_signed_in(page, "live")
    page.until("document.querySelector('[role=status]')?.innerText === 'Listening'")
    end_session(page)
    page.click("button[aria-pressed=false]", "Pause")
    page.click("button[aria-pressed=true]", "Pause")

    assert page.until("document.querySelector('.sign-in [role=status]')?.textContent")


def test_what_one_session_was_answered_is_not_shown_to_the_next(page: Page) -> None:
    other = page.service.website()
    code = page.service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA, Scope.MANAGE_CONFIG}),
        website_ids=(WebsiteId(page.website), WebsiteId(other)),  # a list shows 200 at most
    )
    open_by_link(page, "admin/websites", code)
    page.until(f"document.querySelector('tbody').textContent.includes('{other}')")
    page.settle()
    end_session(page)
    page.click("nav a", "Audit log")
    page.until(SIGN_IN)
    limited = page.service.key("read:data", "manage:config", websites=[page.website])
    page.write(".sign-in input", limited.secret)
    page.click(".sign-in button")
    page.click("nav a", "Websites")

    shown: str = page.until("document.querySelector('tbody')?.textContent")
    assert page.website in shown
    assert other not in shown


def test_a_link_signs_in_whoever_was_signed_in_before(page: Page) -> None:
    open_signed_in(page, "admin")
    assert page.until(f"{TABS}.length && {TABS}") == READER
    code = code_of(page, Scope.MANAGE_CONFIG)
    open_by_link(page, "admin", code)
    page.until("document.querySelector('nav[aria-label=Administration]') && !location.hash")
    assert page.until(f"{TABS}.length && {TABS}") == OPERATOR

    open_by_link(page, "admin", code)
    said = page.until("document.querySelector('.sign-in [role=alert]')?.textContent")
    page.click(".sign-in button", "Go on with the session of before")

    assert said == "This link was used already, or is older than 15 minutes."
    assert page.until(f"{TABS}.length && {TABS}") == OPERATOR


def test_a_session_that_could_not_be_ended_is_not_shown_as_ended(page: Page) -> None:
    open_signed_in(page, "admin")
    page.settle()
    page.tab.set_offline(is_offline=True)
    page.click("button", "Sign out")
    said = page.until("document.querySelector('.side [role=alert]')?.textContent")
    page.tab.set_offline(is_offline=False)
    page.click("button", "Sign out")

    assert said == "Not signed out: The service does not answer"
    assert page.until(f"{SIGN_IN} !== null")
    assert page.problems() == []


class Form(NamedTuple):
    """A form: the view that it is in, what opens it, a field of it, a text, and what sends it."""

    path: str
    opens: tuple[str, str]
    field: str
    text: str
    sends: tuple[str, str]


FORMS = (
    Form("admin/websites", ("summary", ""), ".new input", "Ours", (".new button", "Create")),
    Form("admin/websites", ("tbody button", "Change"), ".new input", "Ours", ("button", "Save")),
    Form("admin/keys", ("summary", ""), "[type=date]", "2031-05-06", (".new button", "Create")),
    Form("admin/erasures", ("", ""), ".erase input", "ann", (".erase button", "Count the rows")),
    Form("admin/storage", ("", ""), "[aria-label='Events, days']", "30", ("button", "What would")),
    Form("explore", (".query footer button", "JSON"), "textarea", '{"a": ', ("button", "Saved q")),
    Form("explore", ("button", "Saved q"), ".saved input", "top-pages", (".saved button", "Save")),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.path} {form.opens[1]}".strip())
def test_what_was_entered_is_there_again_after_the_next_sign_in(page: Page, form: Form) -> None:
    scopes = (Scope.MANAGE_DATA, Scope.MANAGE_CONFIG)
    open_signed_in(page, form.path, *scopes)
    page.settle()
    if form.opens[0]:
        page.click(*form.opens)
    page.write(form.field, form.text)
    url = page.until("location.href")
    end_session(page)
    page.click(*form.sends, unless=SIGN_IN)
    page.until(SIGN_IN)
    stored = page.until("[{...localStorage}, {...sessionStorage}]")
    again = page.service.key("read:data", *(scope.value for scope in scopes))
    page.write(".sign-in input", again.secret)
    page.click(".sign-in button")

    field = f"document.querySelector({json.dumps(form.field)})"
    assert page.until(f"{field}?.checkVisibility() && {field}.value") == form.text
    assert page.until("location.href") == url
    assert stored == [{}, {}]
    assert page.problems() == []


class Panel(NamedTuple):
    """A panel with a half-made entry: its view, what opens it, a field of it, and what is sent."""

    path: str
    opens: tuple[str, str]
    chooses: str
    operator: str
    sends: tuple[str, str]


EARLIER = ("[aria-label='Period before']", "")
PANELS = (
    Panel("/", ("button[title='Add a filter']", ""), "City", "contains", EARLIER),
    Panel("explore", ("button.add", "+ where"), "City", "starts_with", ("button", "Run again")),
    Panel("funnels", (".steps li:nth-child(2) button.add", ""), "City", "ends_with", EARLIER),
    Panel("retention", ("button.add", "+ where"), "City", "ne", EARLIER),
)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.path)
def test_a_half_made_filter_is_open_again_after_the_next_sign_in(page: Page, panel: Panel) -> None:
    open_signed_in(page, panel.path)
    page.settle()
    page.click(*panel.opens)
    page.click(".panel [role=option]", panel.chooses)
    page.write(".panel [aria-label=Operator]", panel.operator)
    page.write(".panel input", "Bre")
    end_session(page)
    page.click(*panel.sends, unless=SIGN_IN)  # the values for what was typed may be refused first
    page.until(SIGN_IN)
    page.write(".sign-in input", page.service.key("read:data").secret)
    page.click(".sign-in button")

    entered = "[...document.querySelectorAll('.panel :is(select, input)')].map((e) => e.value)"
    assert page.until(f"{entered}.length && {entered}") == [panel.operator, "Bre"]
    assert page.until("document.activeElement.closest('.panel') !== null")
    page.click(*panel.opens)
    page.click(*panel.opens)
    assert page.until(f"[{entered}.length]") == [1]
    assert page.problems() == []


def test_chosen_values_and_days_are_there_again_after_the_next_sign_in(page: Page) -> None:
    open_signed_in(page, "/")
    page.settle()
    page.click("button[title='Add a filter']")
    page.click(".panel [role=option]", "City")
    page.write(".panel [aria-label=Operator]", "in")
    for city in ("Bremen", "Kiel, old town"):
        page.write(".panel [type=search]", city)
        page.click(".panel [role=option]", "as typed")
    end_session(page)
    page.click(*EARLIER, unless=SIGN_IN)  # as above
    page.until(SIGN_IN)
    page.write(".sign-in input", page.service.key("read:data").secret)
    page.click(".sign-in button")

    chips = "[...document.querySelectorAll('.panel .chip bdi')].map((e) => e.textContent)"
    assert page.until(f"{chips}.length && {chips}") == ["Bremen", "Kiel, old town"]
    page.click(".panel button", "Apply")
    assert json.loads(page.parameter("filters")) == [
        {"field": "city", "operator": "in", "value": ["Bremen", "Kiel, old town"]}
    ]


def test_a_page_that_is_gone_back_to_shows_nothing_of_a_session_that_ended(page: Page) -> None:
    open_signed_in(page, "/")
    page.settle()
    page.tab.run("window.isSame = true; arguments[0]()")
    page.tab.open("about:blank")
    end_session(page)
    page.tab.back()

    assert page.until("window.isSame")
    assert page.until(f"{SIGN_IN} !== null")
    assert page.problems() == []


def test_what_was_entered_is_not_there_for_one_who_may_less(page: Page) -> None:
    page.service.website()
    open_signed_in(page, "admin/erasures", Scope.MANAGE_DATA)
    page.write(".erase input", "ann")
    page.settle()
    end_session(page)
    page.click(".erase button", "Count the rows")
    page.until(SIGN_IN)
    limited = page.service.key("read:data", "manage:data", websites=[page.website])
    page.write(".sign-in input", limited.secret)
    page.click(".sign-in button")
    page.until("document.querySelector('.erase')")

    assert page.until("[document.querySelector('.erase input').value]") == [""]


def test_another_tab_that_signs_in_or_out_does_so_for_all(page: Page) -> None:
    """Tabs share the cookie: one that went on would act for somebody whom it does not show."""
    open_signed_in(page, "admin", Scope.MANAGE_CONFIG)
    assert page.until(f"{TABS}.length && {TABS}") == OPERATOR
    first = page.tab.selected
    second = page.tab.open_another()
    open_signed_in(page, "/")
    page.tab.select(first)
    page.until(f"{TABS}.length === 1")
    of_reader = page.until(TABS)
    page.settle()
    end_session(page)
    page.click("nav a", "Overview")
    page.until(SIGN_IN)
    page.tab.select(second)
    open_signed_in(page, "/")
    page.tab.select(first)
    is_again = page.until("document.querySelector('.welcome') !== null")
    page.tab.select(second)
    page.click("button", "Sign out")
    page.until(SIGN_IN)
    page.tab.close_selected()
    page.tab.select(first)

    assert of_reader == READER
    assert is_again
    assert page.until(f"{SIGN_IN} !== null")
    assert page.problems() == []
