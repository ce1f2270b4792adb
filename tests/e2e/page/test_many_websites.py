"""The lists of websites of somebody who may read hundreds of them."""

from collections.abc import Iterator

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, running_service, wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

LIST = "[aria-label='websites']"
MORE = "document.querySelector('.options .more')?.textContent ?? ''"


COUNT = 203
ENTER = (
    "document.activeElement.dispatchEvent("
    "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true})) || true"
)
SHOWN = "document.querySelector('[title=Website]').textContent"


@pytest.fixture(scope="module")
def many_websites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own: others would read its websites again after each change."""
    with running_service(tmp_path_factory.mktemp("many") / "data") as own:
        yield own


@pytest.fixture(scope="module")
def page(many_websites: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of the first of many websites, signed in with all rights."""
    service = many_websites
    websites = [
        service.directory.create_website(name=f"shop {number}", domain=f"n{number}.example").id
        for number in range(COUNT)
    ]
    code = service.directory.sessions.create_code(scopes=frozenset(Scope))
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, websites[0], profile) as page:
        page.tab.open(f"{service.url}/app/?website_id={websites[0]}#code={code}")
        page.until("document.querySelector('#content') && !location.hash")
        yield page


@pytest.fixture
def not_shown(many_websites: Service) -> int:
    """How many websites a list of 200 has no room for; a test that came before may add one."""
    return len(many_websites.directory.websites()) - 200


def test_a_list_says_how_many_it_does_not_show(page: Page, not_shown: int) -> None:
    page.open("/")
    page.click("[title='Website']")

    assert page.until(f'document.querySelectorAll("{LIST} [role=option]").length') == 200
    assert page.until(MORE) == f"{not_shown} more: search for them"


@pytest.mark.parametrize("typed", ["shop 202", "Shop 202", "n202.ex"])
def test_a_website_is_found_by_a_part_of_its_name_or_domain(page: Page, typed: str) -> None:
    page.open("/")
    page.click("[title='Website']")
    page.write("[aria-label='Search websites']", typed)
    page.until(f'document.querySelectorAll("{LIST} [role=option]").length === 2')
    page.until(ENTER)

    assert page.until(f"{SHOWN} !== 'shop 0' && {SHOWN}") == "shop 202"


def test_an_id_that_is_not_in_the_list_is_taken_as_typed(page: Page) -> None:
    page.open("/")
    page.click("[title='Website']")
    page.write("[aria-label='Search websites']", "web_of_another")
    page.until(f'document.querySelectorAll("{LIST} [role=option]").length === 1')
    page.until(ENTER)

    assert page.until(f"{SHOWN} !== 'shop 0' && {SHOWN}") == "web_of_another"


def test_a_column_is_found_by_a_part_of_its_name(page: Page) -> None:
    page.open("/")
    page.click("button[title='Add a filter']")
    page.write("[aria-label='Search columns']", "exit")
    page.until("document.querySelectorAll('.panel [role=option]').length === 2")
    page.until(ENTER)

    assert page.until("document.querySelector('.filter-panel bdi')?.textContent") == "Exit page"


def test_administration_lists_the_first_and_finds_the_others(page: Page, not_shown: int) -> None:
    page.open("admin/websites")
    page.settle()
    listed = "document.querySelectorAll('tbody tr').length"
    rows = page.until(listed)
    note = page.until("document.querySelector('#content .note').textContent")
    page.write("[aria-label='Search websites']", "N202.")
    found = page.until(f"{listed} === 1 && document.querySelector('tbody td').textContent")
    page.write("[aria-label='Search websites']", "no such name")

    assert (rows, note) == (200, f"{not_shown} more: search for them.")
    assert found.startswith("shop 202")
    said = page.until("document.querySelector('#content .empty')?.textContent")
    assert said == "No website has this name"
    assert page.problems() == []


def test_a_new_website_is_the_first_of_a_list_that_has_no_room_for_it(page: Page) -> None:
    page.open("admin/websites")
    page.click("summary", "New website")
    page.write(".new input", "the newest")
    page.click(".new button", "Create")

    first = "document.querySelector('tbody tr .line').textContent"
    assert page.until(f"{first} !== 'shop 0' && {first}") == "the newest"
    wait_until(  # the session of the next test may begin within the second until it has it
        lambda: "the newest" in page.read_session(), "the session has the website"
    )
    assert page.problems() == []
