"""Signing in to the page, and what only those who signed in do, in a real Chromium."""

import pytest

from headrace.model.tenancy import Scope, WebsiteId
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page
from tests.e2e.page.seeded_events import VISITORS, seed

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]


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
