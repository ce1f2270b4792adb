"""A page with the tracker and a server that is gone behaves as a page without the tracker."""

import pytest

from testing.browsers.chromium import Tab, served_pages
from testing.browsers.kinds import Kind
from testing.servers.ports import free_port
from testing.service import Service
from tests.e2e.tracker.pages import LOADED, SECOND_FILE_LOADED, snippet, unsent

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COLLECT = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
</script>"""
CALLS = 5
LONGEST_TASK_S = 0.05


def test_page_has_no_error_and_no_long_task_while_nothing_answers(
    service: Service, website: str, tab: Tab, browser: Kind
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with served_pages(head=COLLECT + snippet(service, website, api_url=dead)) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        tab.run(SECOND_FILE_LOADED)
        tasks_s: list[float] = []
        for call in range(CALLS):
            for step in (
                f"for (let i = 0; i < 20; i++) headrace.track('call-{call}', {{i}}); done()",
                "document.querySelector('button').click(); done()",
                "headrace.flush().then(done)",  # which fails
            ):
                before_s = main_thread_s(tab, browser)
                tab.run(f"const done = arguments[0]; {step}")
                tasks_s.append(main_thread_s(tab, browser) - before_s)

        assert unsent(tab) >= 21 * CALLS
        assert tab.run("arguments[0](problems)") == []
        # The tasks of a step together, in time of the CPU, which other programs hardly change.
        assert max(tasks_s) < LONGEST_TASK_S
        tab.open(f"{origin}/next")
        tab.run(LOADED)
        assert tab.run("arguments[0](problems)") == []

    assert service.count(website, "events") == 0


def main_thread_s(tab: Tab, browser: Kind) -> float:
    """Return the CPU time of the page's main thread; 0 where the browser does not tell it."""
    if browser is not Kind.CHROMIUM:
        return 0
    tab.command("Performance.enable", timeDomain="threadTicks")
    metrics = tab.command("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))
