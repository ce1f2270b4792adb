"""The tracker in a real Chromium: what its pages send is stored once, whatever fails on the way."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
import requests

from chaos.browser.visitor import Visitor
from headrace.http.tracker.files import snippet as pinned_snippet
from testing.browser import CHROMEDRIVER, CHROMIUM, Tab, opened_tab, served_pages
from testing.service import Json, Row, Service, wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(CHROMIUM).exists() and Path(CHROMEDRIVER).exists()),
        reason="chromium and chromium-driver are not installed",
    ),
]

DESKTOP = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
UNCAUGHT = "Uncaught TypeError: no cart"
LOADED = """
const [done] = arguments;
const wait = () => (window.headrace ? done(true) : setTimeout(wait, 20));
wait();
"""

SECOND_FILE_LOADED = """
const [done] = arguments;
const loaded = () => performance.getEntriesByType("resource").some(({name, responseEnd}) =>
  /headrace-extras\\.[0-9a-f]{8}\\.js$/.test(name) && responseEnd > 0);
const wait = () => (loaded() ? setTimeout(done, 200) : setTimeout(wait, 20));
wait();
"""


class _Faults(BaseHTTPRequestHandler):
    """Answers 503, cuts off, forwards without a reply, then forwards: in turns of these four."""

    target = ""
    count = 0

    def do_POST(self) -> None:
        fault = type(self).count % 4
        type(self).count += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if fault == 0:
            self._reply(503, b"", {"Retry-After": "1"})
        if fault in (2, 3):
            headers = {"Content-Type": "text/plain", "User-Agent": DESKTOP}
            sent = requests.post(self.target + self.path, body, headers=headers, timeout=20)
            if fault == 3:
                self._reply(sent.status_code, sent.content, {})
        self.close_connection = True

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        headers |= {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Expose-Headers": "Retry-After",
            "Content-Length": str(len(body)),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        del format, args


@contextmanager
def failing_proxy(service: Service) -> Generator[str]:
    """Stand in front of the service, and fail in every way in turns."""
    handler = type("_FaultsOfTest", (_Faults,), {"target": service.url, "count": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def snippet(service: Service, website: str, **options: str) -> str:
    attributes = {"client_id": website, **options}
    data = " ".join(f'data-{name.replace("_", "-")}="{attributes[name]}"' for name in attributes)
    return f'<script defer src="{service.url}/headrace.js" {data}></script>'


def run(tab: Tab, script: str) -> Any:
    return tab.run(f"const done = arguments[0]; {script}; done();")


def count_by(service: Service, website: str, column: str, table: str = "events") -> dict[str, int]:
    return service.counts(website, table, column)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_tab(profile, user_agent=DESKTOP) as opened:
        yield opened


def test_views_exits_and_events_of_pages_are_stored(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/pricing?utm_source=news")
        tab.run(LOADED)
        run(tab, "headrace.track('signup', {plan: 'pro'})")
        run(tab, "headrace.identify('account-17', {plan: 'pro'})")
        run(tab, "history.pushState({}, '', '/checkout')")
        expected = {"screen_view": 2, "page_exit": 1, "signup": 1, "identify": 1}
        wait_until(
            lambda: count_by(service, website, "event_name") == expected,
            "the events are stored",
        )
        tab.open("about:blank")

    rows = _rows(service, website, "event_name", "path", "utm_source", "properties.plan")
    assert [row for row in rows if row["event_name"] in ("screen_view", "signup")] == [
        _row("screen_view", "/checkout"),
        _row("screen_view", "/pricing", "news"),
        _row("signup", "/pricing", "news", "pro"),
    ]
    assert len(service.counts(website, "events", "session_id")) == 1
    assert service.counts(website, "events", "browser_name") == {
        "Chrome": service.count(website, "events")
    }


def test_every_event_is_stored_once_over_a_failing_network(
    service: Service, website: str, tab: Tab
) -> None:
    with (
        failing_proxy(service) as proxy,
        served_pages(head=snippet(service, website, api_url=proxy)) as origin,
    ):
        for page in range(3):
            tab.open(f"{origin}/page-{page}")
            tab.run(LOADED)
            run(tab, "for (let i = 0; i < 60; i++) headrace.track('click', {i})")
        wait_until(
            lambda: (
                tab.run(
                    "arguments[0](Object.keys(localStorage).filter("
                    "(key) => key.startsWith('headrace:')).length)"
                )
                == 0
            ),
            "the outbox is empty",
            timeout_s=60,
        )
        counts = count_by(service, website, "event_name")
    assert (counts["click"], counts["screen_view"]) == (180, 3)


def test_errors_vitals_and_marked_clicks_are_stored_under_a_strict_policy(
    service: Service, website: str, tab: Tab
) -> None:
    policy = f"default-src 'none'; script-src 'self' {service.url}; connect-src {service.url}"
    head = snippet(service, website) + '<script src="/page.js"></script>'
    script = "setTimeout(() => { throw new TypeError('no cart') }, 500)"
    with served_pages(head=head, policy=policy, script=script) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "document.querySelector('button').click()")
        wait_until(
            lambda: (
                count_by(service, website, "message", "errors")
                == {"Uncaught TypeError: no cart": 1}
            ),
            "the error is stored",
        )
        wait_until(
            lambda: count_by(service, website, "event_name").get("buy") == 1, "the click is stored"
        )
        tab.open("about:blank")  # vitals are final when their page is hidden
    wait_until(
        lambda: {"FCP", "TTFB"} <= set(count_by(service, website, "metric_name", "performance")),
        "the vitals are stored",
    )


def test_pinned_script_loads_and_a_changed_one_does_not(
    service: Service, website: str, tab: Tab
) -> None:
    pinned = pinned_snippet(service.url, "/headrace.js", website)
    policy = f"default-src 'none'; script-src {service.url}; connect-src {service.url}"
    with served_pages(head=pinned, policy=policy) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        tab.run(SECOND_FILE_LOADED)
        run(tab, "document.querySelector('button').click()")
        wait_until(
            lambda: count_by(service, website, "event_name") == {"screen_view": 1, "buy": 1},
            "the view and the click are stored",
        )
        tab.open("about:blank")
    wrong = pinned.replace('integrity="sha384-', 'integrity="sha384-A')
    with served_pages(head=wrong) as origin:
        tab.open(f"{origin}/")
        assert tab.run("arguments[0](typeof window.headrace)") == "undefined"


def test_events_are_kept_in_storage_again_when_those_of_full_storage_are_sent(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        visitor = Visitor(tab, origin, Random(1))  # noqa: S311 - the same every time
        visitor.open_page()
        visitor.fill_storage()
        visitor.track()
        wait_until(
            lambda: service.count(website, "events") == len(visitor.returned),
            "the events of the memory are stored",
        )
        visitor.empty_storage()
        kept = visitor.track()
        assert visitor.unsent() >= len(kept)
        visitor.wait_until_all_is_sent()

    assert service.counts(website, "events", "properties.id") == dict.fromkeys(visitor.returned, 1)


def test_visitor_who_opted_out_sends_nothing(service: Service, website: str, tab: Tab) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "headrace.track('before'); headrace.optOut(); headrace.track('after')")
        run(tab, "headrace.optIn(); headrace.track('later')")
        wait_until(lambda: service.count(website, "events") > 0, "the last event is stored")
    assert count_by(service, website, "event_name") == {"later": 1}


def _row(name: str, path: str, utm_source: str = "", plan: str | None = None) -> Row:
    return {"event_name": name, "path": path, "utm_source": utm_source, "properties.plan": plan}


def _rows(service: Service, website: str, *columns: str) -> list[Row]:
    query: Json = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
        "groupBy": list(columns),
    }
    rows = service.answer(website, query)
    return sorted(
        ({name: row[name] for name in columns} for row in rows),
        key=lambda row: (str(row["event_name"]), str(row["path"])),
    )
