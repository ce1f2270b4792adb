"""What the page says when the service refuses, is slow, or cannot answer, in a real Chromium."""

import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

FAILURE = "document.querySelector('.failure')"
SHOWN = "document.querySelector('.figure .value')?.textContent"


@pytest.fixture
def page(
    dedicated_service: Callable[..., Service], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A page of a service of its own, with one visitor; the parameter is the rate of queries."""
    rate = getattr(request, "param", "100000")
    service = dedicated_service(settings={"HEADRACE_QUERY_RATE_LIMIT": rate}).start()
    website = service.website(public=True)
    event = {"name": "screen_view", "path": "/", "anonymousId": "v", "sessionId": "s"}
    assert service.post(f"/track?website_id={website}", [event]).status_code == 200
    with opened_page(service, website, tmp_path / "chromium") as page:
        yield page


LISTEN = """
window.said = [];
const line = document.getElementById("announcement");
new MutationObserver(() => said.push(line.textContent)).observe(line, {childList: true});
arguments[0]();
"""
DELAYED_CALLS = """
const send = window.fetch;
const released = new Promise((resolve) => addEventListener("release", resolve));
window.fetch = (...all) => released.then(() => send(...all));
arguments[0]();
"""
# The lists are refused at once, the totals when it is known that loading takes long.
REFUSED_CALLS = """
window.refused = 0;
window.fetch = (_, call) =>
  new Promise((_, refuse) =>
    setTimeout(
      () => (refused++, refuse(new TypeError("no network"))),
      call?.body.includes("entry_pages") ? 0 : 1500,
    ),
  );
arguments[0]();
"""
NO_ANSWER = (
    "The service does not answer. It may be restarting, or the network is down."
    " Nothing that was acknowledged is lost."
)
LOADING = ("Loading", "Loaded")
SAID = "window.said.length && said.at(-1) === 'Loaded' && said"


def open_and_listen(page: Page) -> None:
    """Open the overview, and keep in `said` what is announced once it has loaded."""
    page.open("/")
    page.settle()
    page.until("document.getElementById('announcement').textContent !== 'Loading'")
    page.tab.run(LISTEN)


@contextmanager
def stopped(pid: int) -> Generator[None]:
    """Stop a process for the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("page", ["3"], indirect=True)
def test_too_many_queries_are_explained_with_the_time_to_wait(page: Page) -> None:
    page.open("explore")
    page.settle()
    for _ in range(4):
        page.click("button", "Run again")
    title, advice = page.until(
        f"{FAILURE}.textContent.includes('Trying again in') &&"
        f"[{FAILURE}.querySelector('strong').textContent, {FAILURE}.querySelector('p').textContent]"
    )
    seconds = int(advice.rpartition(" in ")[2].removesuffix(" s."))

    assert title == "Rate limit exceeded"
    assert advice.startswith("There is a limit of queries a minute for each key.")
    assert 0 < seconds <= 60
    assert page.problems() == []


def test_page_of_a_dead_engine_explains_itself_and_recovers_alone(page: Page) -> None:
    service = page.service
    (engine,) = service.child_pids("engine")
    page.open("/")
    page.settle()
    with stopped(service.pid):  # the supervisor: nobody starts the engine again
        os.kill(engine, signal.SIGKILL)
        wait_until(lambda: service.get("/ready").status_code == 503, "the engine is missed")
        page.open("/", last="7")
        page.until(f"{FAILURE} && {FAILURE}.textContent.includes('Trying again in')")
        advice = page.until(f"{FAILURE}.querySelector('p').textContent")
        shown_failures = page.until("document.querySelectorAll('.failure').length")
    shown = page.until(f"{SHOWN} === '1' && !{FAILURE} && {SHOWN}")

    assert advice.startswith("The service accepts events, but cannot answer just now.")
    assert shown_failures == 1
    assert shown == "1"
    assert page.problems() == []


def test_a_failure_is_announced_once_however_often_it_is_tried_again(page: Page) -> None:
    """The seconds to the next try are not said: each would begin the sentence again."""
    open_and_listen(page)
    page.tab.set_offline(is_offline=True)
    page.click("[aria-label='Period before']")
    for _ in range(2):
        page.until("document.querySelector('.failure p')?.textContent.includes('again in 4 s')")
        page.until("!document.querySelector('.failure p')?.textContent.includes('again in 4 s')")
    page.tab.set_offline(is_offline=False)

    said = [text for text in page.until(SAID) if text != LOADING[0]]  # on a slow machine
    assert said == [NO_ANSWER, "Loaded"]


def test_a_failure_is_not_followed_by_the_loading_of_other_parts(page: Page) -> None:
    """The failure would be announced again with each part that it is of."""
    open_and_listen(page)
    page.tab.run(REFUSED_CALLS)
    page.click("[aria-label='Period before']")
    page.until("refused > 1 && !document.querySelector('[aria-busy=true]')")

    assert page.until("said.length && said") == [NO_ANSWER]


def test_parts_of_a_view_that_load_for_long_are_announced_once(page: Page) -> None:
    open_and_listen(page)
    page.tab.run(DELAYED_CALLS)
    page.click("[aria-label='Period before']")
    page.until("said.length")
    page.tab.run("dispatchEvent(new Event('release')); arguments[0]()")

    assert page.until(SAID) == ["Loading", "Loaded"]


def test_the_title_of_a_view_is_announced_when_it_is_opened(page: Page) -> None:
    open_and_listen(page)
    for title in ("Retention", "Errors", "Overview"):
        page.click("nav a", title)
        page.until(f"said.includes('{title}')")
        page.settle()

    said = [text for text in page.until("said") if text not in LOADING]  # on a slow machine
    assert said == ["Retention", "Errors", "Overview"]


def test_a_sign_in_after_too_many_failures_says_when_it_may_be_tried_again(page: Page) -> None:
    """Ten failures a minute from an address are the most."""
    private = page.service.website()
    page.tab.open(f"{page.service.url}/app/?website_id={private}")
    refused = {"key": "hr_wrong"}
    headers = {"Content-Type": "application/json"}
    for _ in range(11):
        page.service.post("/v1/session", refused, headers=headers)
    page.write(".sign-in input", "hr_wrong")
    page.click(".sign-in button")
    said: str = page.until("document.querySelector('.sign-in [role=alert]')?.textContent")

    assert said.startswith("Too many attempts have failed. Try again in ")
    assert 0 < int(said.rpartition(" in ")[2].removesuffix(" s.")) <= 60


def test_slow_engine_leaves_the_last_totals_visible_until_the_next_are_there(page: Page) -> None:
    (engine,) = page.service.child_pids("engine")
    page.open("/")
    page.until(f"{SHOWN} === '1'")
    with stopped(engine):
        page.click("[aria-label='Period before']")
        page.until("document.querySelector('.lead.stale[aria-busy=true]')")
        old = page.until(SHOWN)
    page.until("!document.querySelector('[aria-busy=true]')")

    assert old == "1"
    assert page.until("document.querySelector('.welcome') !== null")
    assert page.problems() == []
