"""What pages send is stored once, whatever fails between storage, page and service."""

from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any

import pytest
import requests

from chaos.browser.gate import Mode
from chaos.browser.visitor import Visitor
from testing.browsers.chromium import Tab, served_pages
from testing.browsers.http_servers import serving
from testing.browsers.kinds import DESKTOP
from testing.service import Service, wait_until
from tests.e2e.tracker.pages import LOADED, gated_pages, run, snippet, unsent

pytestmark = [pytest.mark.browser, pytest.mark.slow]


DELAYS = """<script>
const { setTimeout: original } = window;
window.delays = [];
window.setTimeout = (work, delay) => (delays.push(delay), original(work, delay));
</script>"""
KEEPALIVE_LIMIT = 65_536
REFUSAL = "<script>fetch = async () => new Response('', {{ status: {status} }})</script>"


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
    with serving(handler) as url:
        yield url


def until_stored(service: Service, website: str, visitor: Visitor) -> None:
    """Wait until a website has as many events as the visitor's calls that returned."""
    wait_until(
        lambda: service.count(website, "events") == len(visitor.returned), "all events are stored"
    )


def assert_stored_once(service: Service, website: str, visitor: Visitor) -> None:
    """Require that each event whose call returned is stored once, and no other."""
    assert service.counts(website, "events", "properties.id") == dict.fromkeys(visitor.returned, 1)


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
        wait_until(lambda: unsent(tab) == 0, "the outbox is empty")
        counts = service.counts(website, "events", "event_name")
    assert (counts["click"], counts["screen_view"]) == (180, 3)


def test_events_are_kept_in_storage_again_when_those_of_full_storage_are_sent(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        visitor = Visitor(tab, origin, Random(1))  # noqa: S311 - the same every time
        visitor.open_page()
        visitor.fill_storage()
        visitor.track()
        until_stored(service, website, visitor)
        visitor.empty_storage()
        kept = visitor.track()
        assert visitor.unsent() >= len(kept)
        visitor.wait_until_all_is_sent()

    assert_stored_once(service, website, visitor)


def test_events_of_the_storage_are_sent_with_those_that_found_it_full(
    service: Service, website: str, tab: Tab
) -> None:
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.UNAVAILABLE
        visitor = Visitor(tab, origin, Random(2))  # noqa: S311 - the same every time
        visitor.open_page()
        visitor.track()
        visitor.fill_storage()
        visitor.track()
        gate.mode = Mode.FORWARD
        until_stored(service, website, visitor)

    assert_stored_once(service, website, visitor)


def test_events_are_sent_when_a_request_was_never_answered(
    service: Service, website: str, tab: Tab
) -> None:
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.SILENT
        visitor = Visitor(tab, origin, Random(3))  # noqa: S311 - the same every time
        visitor.open_page()
        visitor.track()
        wait_until(lambda: gate.silenced == 1, "the request is there")
        gate.mode = Mode.FORWARD
        visitor.track()
        until_stored(service, website, visitor)

    assert_stored_once(service, website, visitor)


def test_events_are_sent_though_a_tab_never_gives_the_lock_back(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "navigator.locks.request('headrace:', () => new Promise(() => {}))")
        run(tab, "headrace.track('waiting')")
        wait_until(lambda: service.count(website, "events") > 0, "the event is stored")

    assert service.counts(website, "events", "event_name") == {"waiting": 1}


def test_page_whose_storage_is_refused_sends_from_its_memory(
    service: Service, website: str, tab: Tab
) -> None:
    """A sandboxed page has neither localStorage nor locks, as where site data is blocked."""
    head = snippet(service, website)
    with served_pages(head=head, policy="sandbox allow-scripts") as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "headrace.track('sandboxed')")
        wait_until(
            lambda: (
                service.counts(website, "events", "event_name")
                == {"screen_view": 1, "sandboxed": 1}
            ),
            "the events are stored",
        )
        run(tab, "headrace.optOut(); headrace.track('after'); headrace.optIn()")
        run(tab, "headrace.track('later')")
        wait_until(
            lambda: service.counts(website, "events", "event_name").get("later") == 1,
            "the last event is stored",
        )

    assert "after" not in service.counts(website, "events", "event_name")


def test_visitor_who_opts_out_drops_what_is_unsent_though_the_storage_is_full(
    service: Service, website: str, tab: Tab
) -> None:
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.UNAVAILABLE
        visitor = Visitor(tab, origin, Random(4))  # noqa: S311 - the same every time
        visitor.open_page()
        visitor.track()
        visitor.fill_storage()
        visitor.track()
        run(tab, "headrace.optOut(); headrace.track('after')")
        assert unsent(tab) == 0
        gate.mode = Mode.FORWARD
        run(tab, "headrace.optIn(); headrace.track('later')")
        wait_until(lambda: service.count(website, "events") > 0, "the last event is stored")

    assert service.counts(website, "events", "event_name") == {"later": 1}


@pytest.mark.parametrize("status", [400, 403, 404, 413, 415])
def test_event_that_is_refused_for_good_leaves_the_outbox(
    service: Service, website: str, chromium: Tab, status: int
) -> None:
    head = REFUSAL.format(status=status) + snippet(service, website, track_page_views="false")
    with served_pages(head=head) as origin:
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(chromium, "headrace.track('refused')")
        wait_until(lambda: unsent(chromium) == 0, "the outbox is empty")


def test_event_that_is_refused_takes_no_other_with_it(
    service: Service, website: str, chromium: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(
            chromium,
            "for (let i = 0; i < 9; i++) headrace.track('good', {i});"
            "headrace.track('');"
            "for (let i = 9; i < 20; i++) headrace.track('good', {i})",
        )
        wait_until(lambda: unsent(chromium) == 0, "the outbox is empty")
        run(chromium, "headrace.track('next')")
        wait_until(
            lambda: service.counts(website, "events", "event_name") == {"good": 20, "next": 1},
            "all but one are stored",
        )

    assert service.counts(website, "events", "properties._dropped") == {None: 20, 1: 1}


def test_events_of_two_websites_with_one_origin_are_stored_where_they_belong(
    service: Service, website: str, tab: Tab
) -> None:
    other = service.website()
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.UNAVAILABLE
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "headrace.track('of the first')")
        tab.run(
            "const [website, api, done] = arguments;"
            "delete window.headrace;"
            "const first = document.querySelector('[data-client-id]');"
            "const second = Object.assign(document.createElement('script'), {src: first.src});"
            "Object.assign(second.dataset, {clientId: website, apiUrl: api});"
            "second.onload = () => done();"
            "document.head.append(second);",
            other,
            gate.url,
        )
        run(tab, "headrace.track('of the second')")
        gate.mode = Mode.FORWARD
        wait_until(lambda: unsent(tab) == 0, "the outbox is empty")

    assert service.counts(website, "events", "event_name") == {"of the first": 1}
    names = service.counts(other, "events", "event_name")
    assert names == {"of the second": 1, "screen_view": 1}


def test_pause_that_the_service_sets_is_not_shortened_by_another_event(
    service: Service, website: str, tab: Tab
) -> None:
    with gated_pages(service, website, head=DELAYS, track_page_views="false") as (gate, origin):
        gate.mode = Mode.RATE_LIMITED
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "headrace.track('first')")
        wait_until(lambda: tab.run("arguments[0](delays.at(-1))") == 1000, "the page waits")
        run(tab, "delays.length = 0; headrace.track('second')")
        assert 500 not in tab.run("arguments[0](delays)")


def test_text_over_the_limit_of_requests_that_outlive_pages_is_stored(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, f"headrace.track('long', {{text: '漢'.repeat({KEEPALIVE_LIMIT // 2})}})")
        run(tab, "headrace.track('short')")
        wait_until(
            lambda: service.counts(website, "events", "event_name") == {"long": 1, "short": 1},
            "both are stored",
        )


def test_page_of_a_proxy_is_no_reply(service: Service, website: str, tab: Tab) -> None:
    """As where a proxy sends requests to its page for signing in."""
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.PAGE
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "headrace.track('kept')")
        wait_until(lambda: gate.pages > 0, "the page is there")
        gate.mode = Mode.FORWARD
        wait_until(lambda: service.count(website, "events") == 1, "the event is stored")
