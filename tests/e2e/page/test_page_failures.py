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

ALERT = "document.querySelector('[role=alert]')"
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
    page.until(f"{ALERT} && {ALERT}.textContent.includes('Trying again in')")
    title, advice = page.until(
        f"[{ALERT}.querySelector('strong').textContent, {ALERT}.querySelector('p').textContent]"
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
        page.until(f"{ALERT} && {ALERT}.textContent.includes('Trying again in')")
        advice = page.until(f"{ALERT}.querySelector('p').textContent")
        alerts = page.until("document.querySelectorAll('[role=alert]').length")
    shown = page.until(f"{SHOWN} === '1' && !{ALERT} && {SHOWN}")

    assert advice.startswith("The service accepts events, but cannot answer just now.")
    assert alerts == 1
    assert shown == "1"
    assert page.problems() == []


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
