"""The live view goes on where it was left, and says where items may be missing."""

import re
from collections.abc import Callable, Iterator

import pytest

from headrace.model.tenancy import Scope, WebsiteId
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, bearer
from tests.e2e.conftest import ServiceMaker

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

IS_LISTENING = "document.querySelector('[role=status]')?.innerText === 'Listening'"
TITLES = "[...document.querySelectorAll('ul.live summary bdi:first-of-type')]"
INTERRUPTED = re.compile(
    r"The stream was interrupted from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d: items may be missing"
)


def sign_in(page: Page, *websites: WebsiteId) -> Page:
    """Sign in as somebody who may read these websites, or all of them."""
    code = page.service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA}), website_ids=websites
    )
    page.tab.open(f"{page.service.url}/app/setup?website_id={page.website}#code={code}")
    page.until("document.querySelector('#content') && !location.hash")
    return page


@pytest.fixture(scope="module")
def tab(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of somebody who may read all websites."""
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, service.website(), profile) as page:
        yield sign_in(page)


@pytest.fixture
def live(tab: Page) -> Page:
    """The live view of a new website."""
    page = Page(tab.tab, tab.service, tab.service.website())
    open_live(page)
    return page


def open_live(page: Page) -> None:
    page.open("live")
    page.until(IS_LISTENING)


def send(page: Page, *names: str, website: str = "") -> None:
    track = f"/track?website_id={website or page.website}"
    items = [{"name": name} for name in names]
    sent = page.service.post(track, items, headers=bearer(page.service.master))
    assert sent.status_code == 200, sent.text


def titles(page: Page, newest: str) -> list[str]:
    """Return what the items are about, once the first of them begins as expected."""
    found: list[str] = page.until(
        f"{TITLES}[0].textContent.startsWith('{newest}') && {TITLES}.map((one) => one.textContent)"
    )
    return found


def leave(page: Page) -> None:
    page.click("nav a", "Setup")
    page.until("location.pathname === '/app/setup' && !document.querySelector('ul.live')")


def come_back(page: Page) -> None:
    page.click("nav a", "Live")
    page.until(IS_LISTENING)


def leave_document(page: Page) -> None:
    page.open("setup")


def come_back_to_document(page: Page) -> None:
    page.tab.run("history.back(); arguments[0]()")
    page.until(f"location.pathname === '/app/live' && {IS_LISTENING}")


def pause(page: Page) -> None:
    page.click("button[aria-pressed=false]", "Pause")
    page.until("document.querySelector('[role=status]').innerText === 'Paused'")
    page.settle()  # the stream is closed after the next frame


def go_on(page: Page) -> None:
    page.click("button[aria-pressed=true]", "Pause")
    page.until(IS_LISTENING)


INTERRUPTIONS = pytest.mark.parametrize(
    ("interrupt", "resume"),
    [(leave, come_back), (leave_document, come_back_to_document), (pause, go_on)],
    ids=["another view", "another document", "a pause"],
)


@INTERRUPTIONS
def test_items_that_came_while_the_list_was_left_are_shown(
    live: Page, interrupt: Callable[[Page], None], resume: Callable[[Page], None]
) -> None:
    send(live, "before")
    titles(live, "before")
    interrupt(live)
    send(live, "between one", "between two")
    resume(live)
    send(live, "after")

    assert titles(live, "after") == ["after", "between two", "between one", "before"]
    assert live.problems() == []


@INTERRUPTIONS
def test_items_that_came_before_the_first_of_a_list_was_left_are_shown(
    live: Page, interrupt: Callable[[Page], None], resume: Callable[[Page], None]
) -> None:
    interrupt(live)
    send(live, "between")
    resume(live)
    send(live, "after")

    assert titles(live, "after") == ["after", "between"]
    assert live.problems() == []


def test_a_stream_that_is_opened_again_is_not_said_to_be_open_before(live: Page) -> None:
    pause(live)
    shown: str = live.tab.run(
        """
        const done = arguments[arguments.length - 1];
        document.querySelector("button[aria-pressed=true]").click();
        (async () => {
          for (let turn = 0; turn < 20; turn += 1) await null;  // no response comes meanwhile
          done(document.querySelector("[role=status]").innerText);
        })();
        """
    )

    assert shown == "Connecting …"
    live.until(IS_LISTENING)
    assert live.problems() == []


def test_each_website_has_a_list_of_its_own(
    service: Service, tmp_path_factory: pytest.TempPathFactory
) -> None:
    create = service.directory.create_website
    ayr, bath = (create(name=name, domain="").id for name in ("Ayr", "Bath"))
    with opened_page(service, ayr, tmp_path_factory.mktemp("chromium") / "profile") as page:
        sign_in(page, ayr, bath)  # these alone: of hundreds the list shows the first ones
        open_live(page)
        send(page, "in Ayr")
        titles(page, "in Ayr")

        choose_website(page, "Bath")
        assert page.until(f"[{TITLES}.length]") == [0]
        send(page, "later in Ayr")
        send(page, "in Bath", website=bath)
        assert titles(page, "in Bath") == ["in Bath"]
        choose_website(page, "Ayr")
        assert titles(page, "later") == ["later in Ayr", "in Ayr"]


def choose_website(page: Page, name: str) -> None:
    page.click("[title='Website']")
    page.click("[aria-label='websites'] [role=option]", name)
    page.until(f"document.querySelector('[title=Website]').textContent === '{name}'")
    page.until(IS_LISTENING)


def test_a_list_ends_with_its_session_and_goes_on_after_a_restart_of_the_service(
    dedicated_service: ServiceMaker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    service = dedicated_service().start()
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, service.website(), profile) as page:
        sign_in(page)
        open_live(page)
        send(page, "before")
        titles(page, "before")
        assert service.stop() == 0
        page.until(f"!({IS_LISTENING})")
        service.restart()
        page.until(IS_LISTENING)
        send(page, "after")

        newest, line, oldest = titles(page, "after")
        assert (newest, oldest) == ("after", "before")
        assert INTERRUPTED.fullmatch(line), line
        page.write("input[type=search]", "no such text")
        page.until(f"{TITLES}.length === 1")
        assert titles(page, "The stream") == [line]

        page.click("button", "Sign out")
        page.until("document.querySelector('.sign-in')")
        page.write(".sign-in input", service.master.secret)
        page.click(".sign-in button")
        page.click("nav a", "Live")
        page.until(IS_LISTENING)
        assert page.until(f"[{TITLES}.length]") == [0]
