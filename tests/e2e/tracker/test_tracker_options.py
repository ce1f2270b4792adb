"""What options and rules of the tracker do: addresses, clicks, errors, privacy, limits."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import requests

from chaos.browser.gate import Mode, opened_gate
from testing.browsers.chromium import Tab, served_pages
from testing.browsers.http_servers import serving
from testing.browsers.kinds import DESKTOP
from testing.service import Service, wait_until
from tests.e2e.tracker.pages import LOADED, SECOND_FILE_LOADED, gated_pages, run, snippet, unsent

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLLOW_LINK = """
const [href, done] = arguments;
const link = Object.assign(document.createElement("a"), { href });
document.body.append(link);
setTimeout(() => link.click());
done();
"""
RUN_IN_PAGE = """
const [text, done] = arguments;
document.body.append(Object.assign(document.createElement("script"), { text }));
done();
"""
"""Errors of scripts that a test runs itself have no text: theirs is another origin."""

UNREADABLE = """
const circle = {}; circle.self = circle;
headrace.setGlobalProperties({ plan: 'pro' });
headrace.setGlobalProperties({ circle });
headrace.track('circle', { circle });
headrace.track('big', { count: 1n });
headrace.track('getter', { get count() { throw Error('not now') } });
headrace.identify(17, { circle });
"""
REASONS = """
for (const reason of [undefined, Symbol('odd'), 'text', { message: 'named', name: 5 },
  { message: 'no stack', stack: null }, { message: 'a number', stack: 7 },
  { message: 'x'.repeat(4095) + String.fromCodePoint(128512) }, Object.create(null)]) {
  Promise.reject(reason);
}
document.body.append(Object.assign(new Image(), { src: '/page.js' }));
setTimeout(() => { throw Error('thrown') }, 500);
"""
SHADOW = """
const host = document.body.appendChild(document.createElement('div'));
host.dataset.track = 'host';
host.attachShadow({ mode: 'open' }).innerHTML = `<button data-track="inside"></button><i></i>`;
host.shadowRoot.querySelector('button').click();
host.shadowRoot.querySelector('i').click();
"""
MIDDLE_BUTTON = """
const link = document.createElement('a');
link.href = 'https://other.example/prices.pdf';
document.body.append(link);
for (const button of [1, 2]) {
  link.dispatchEvent(new MouseEvent('auxclick', { button, bubbles: true }));
}
"""
COUNT_ON_LEAVING = """<script>
var db = "of the page";
const { fetch: original } = window;
addEventListener("visibilitychange", () => {
  let calls = 0;
  window.fetch = (...call) => {
    sessionStorage.calls = ++calls;
    return original(...call);
  };
});
</script>"""
CLOCK = """<script>
const { now } = Date;
addEventListener("late", () => { Date.now = () => now() + 3000; });
</script>"""
MAX_ITEMS = 500
MAX_STACK = 16_384


def until_events(service: Service, website: str, column: str, expected: dict[str, int]) -> None:
    """Wait until the events of a website, counted by a column, are these."""
    wait_until(
        lambda: service.counts(website, "events", column) == expected, f"{expected} are stored"
    )


def views(service: Service, website: str, *columns: str) -> list[tuple[str, ...]]:
    """Return columns of all page views of a website, in no order."""
    return [
        tuple(row[column] for column in columns)
        for row in service.rows(website, "events", ["event_name", *columns])
        if row["event_name"] == "screen_view"
    ]


def test_address_keeps_campaigns_and_click_ids_alone(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/reset?token=secret&utm_source=news&q=me&gclid=g1&msclkid=m1#part")
        tab.run(LOADED)
        tab.run(FOLLOW_LINK, "/next?email=me")
        until_events(service, website, "path", {"/reset": 2, "/next": 1})

    assert sorted(views(service, website, "url")) == [
        (f"{origin}/next",),
        (f"{origin}/reset?utm_source=news&gclid=g1&msclkid=m1",),
    ]


def test_referrer_is_a_page_of_another_website_without_its_query(
    service: Service, website: str, tab: Tab
) -> None:
    with (
        served_pages(head='<meta name="referrer" content="unsafe-url">') as other,
        served_pages(head=snippet(service, website)) as origin,
    ):
        tab.open(f"{other}/search?q=me&from={origin}/")
        tab.run(FOLLOW_LINK, f"{origin}/landing")
        until_events(service, website, "path", {"/landing": 1})
        run(tab, "history.pushState(null, '', '/virtual')")
        until_events(service, website, "path", {"/landing": 2, "/virtual": 1})
        tab.run(FOLLOW_LINK, "/next")
        until_events(service, website, "path", {"/landing": 2, "/virtual": 2, "/next": 1})

    assert sorted(views(service, website, "path", "referrer")) == [
        ("/landing", f"{other}/search"),
        ("/next", ""),
        ("/virtual", ""),
    ]


def test_session_that_no_other_website_led_to_has_no_referrer(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        tab.run(FOLLOW_LINK, "/next")
        until_events(service, website, "path", {"/": 2, "/next": 1})

    answer = service.answer(
        website,
        {
            "table": "sessions",
            "selects": [{"field": "*", "aggregate": "count", "alias": "sessions"}],
            "groupBy": ["entry_path", "exit_path", "referrer"],
        },
    )
    assert answer == [{"entry_path": "/", "exit_path": "/next", "referrer": "", "sessions": 1}]


def test_errors_that_are_not_sent_are_counted_by_their_message(
    service: Service, website: str, tab: Tab
) -> None:
    throw = "dispatchEvent(new ErrorEvent('error', {message, error: {message, stack, name: 'E'}}))"
    script = (
        f"const say = (message, stack) => {throw};"
        "for (let i = 0; i < 8; i++) say('again', 'at a:1:1');"
        "say('ResizeObserver loop limit exceeded', '');"
        "say('of another', 'at chrome-extension://abc/x.js:1:1');"
        f"say('long', 'x'.repeat({2 * MAX_STACK}));"
    )
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        tab.open(f"{origin}/")
        tab.run(SECOND_FILE_LOADED)
        run(tab, script)
        tab.open("about:blank")
        until_events(
            service,
            website,
            "properties.message",
            {"again": 1, "ResizeObserver loop limit exceeded": 1, "of another": 1},
        )
    assert service.counts(website, "events", "properties.count") == {3: 1, 1: 2}
    wait_until(
        lambda: service.counts(website, "errors", "message") == {"again": 5, "long": 1},
        "the errors are stored",
    )
    stacks = service.counts(website, "errors", "stack")
    assert sorted(stacks) == ["at a:1:1", "x" * MAX_STACK + "\n(cut)"]


def test_hash_is_a_page_and_patterns_skip_and_mask_paths(
    service: Service, website: str, chromium: Tab
) -> None:
    head = snippet(
        service,
        website,
        track_hash_changes="true",
        skip_patterns="[&quot;/private*&quot;]",
        mask_patterns="[&quot;/orders/*&quot;]",
    )
    with served_pages(head=head) as origin:
        chromium.open(f"{origin}/private/me")
        chromium.run(LOADED)
        run(chromium, "headrace.track('hidden')")
        chromium.open(f"{origin}/orders/4711?utm_source=news")
        chromium.run(LOADED)
        run(chromium, "location.hash = 'details'")
        wait_until(
            lambda: service.counts(website, "events", "event_name").get("screen_view") == 2,
            "both views are stored",
        )

    assert set(service.counts(website, "events", "url")) == {
        f"{origin}/orders/*",
        f"{origin}/orders/*#details",
    }


def test_links_to_other_sites_and_downloads_are_events_where_enabled(
    service: Service, website: str, chromium: Tab
) -> None:
    links = (
        "for (const [href, textContent] of ["
        " ['https://other.example/a', ' Other '], ['/price-list.pdf', ''], ['/in', '']]) {"
        " const onclick = (event) => event.preventDefault();"
        " const link = Object.assign(document.createElement('a'), {href, textContent, onclick});"
        " document.body.append(link); link.click(); }"
    )
    head = snippet(
        service,
        website,
        track_page_views="false",
        track_outgoing_links="true",
        track_downloads="true",
    )
    with served_pages(head=head) as origin:
        chromium.open(f"{origin}/")
        chromium.run(SECOND_FILE_LOADED)
        run(chromium, links)
        until_events(service, website, "event_name", {"outgoing_link": 1, "file_download": 1})

    assert service.counts(website, "events", "properties.href") == {
        "https://other.example/a": 1,
        f"{origin}/price-list.pdf": 1,
    }
    assert service.counts(website, "events", "properties.text")["Other"] == 1


@pytest.mark.parametrize(
    "refusal",
    [
        "Object.defineProperty(navigator, 'globalPrivacyControl', {value: true})",
        "Object.defineProperty(navigator, 'doNotTrack', {value: '1'})",
    ],
    ids=["GPC", "DNT"],
)
def test_visitor_whose_browser_refuses_is_not_tracked_unless_the_site_says_so(
    service: Service, website: str, chromium: Tab, refusal: str
) -> None:
    refuse = f"<script>{refusal}</script>"
    with served_pages(head=refuse + snippet(service, website)) as origin:
        chromium.open(f"{origin}/quiet")
        chromium.run(LOADED)
        run(chromium, "headrace.track('quiet')")
        assert unsent(chromium) == 0
    head = refuse + snippet(service, website, privacy_signals="false")
    with served_pages(head=head) as origin:
        chromium.open(f"{origin}/told")
        until_events(service, website, "path", {"/told": 1})


def test_anonymous_id_is_stored_where_the_site_chose_so_and_nothing_else_is_by_default(
    service: Service, website: str, chromium: Tab
) -> None:
    kept = (
        "JSON.stringify([document.cookie, Object.keys(localStorage)"
        ".filter((key) => !key.startsWith('headrace:')), localStorage.did])"
    )
    with served_pages(head=snippet(service, website)) as origin:
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        assert json.loads(chromium.run(f"arguments[0]({kept})")) == ["", [], None]
    with served_pages(head=snippet(service, website, visitor="persistent")) as origin:
        chromium.open(f"{origin}/one")
        chromium.run(LOADED)
        cookie, keys, first = json.loads(chromium.run(f"arguments[0]({kept})"))
        chromium.open(f"{origin}/two")
        chromium.run(LOADED)
        second = chromium.run("arguments[0](localStorage.did)")
        wait_until(
            lambda: service.counts(website, "events", "anonymous_id").get(first, 0) >= 2,
            "both views have the id",
        )

    assert (cookie, keys) == ("", ["did"])
    assert first.startswith("anon_")
    assert second == first


def test_page_that_is_prerendered_waits_and_one_that_comes_back_is_a_view(
    service: Service, website: str, chromium: Tab
) -> None:
    prerendered = "<script>Object.defineProperty(document, 'prerendering', {value: true})</script>"
    with served_pages(head=prerendered + snippet(service, website)) as origin:
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        assert unsent(chromium) == 0
        run(chromium, "document.dispatchEvent(new Event('prerenderingchange'))")
        until_events(service, website, "event_name", {"screen_view": 1})
        run(chromium, "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        until_events(service, website, "event_name", {"screen_view": 2})


def test_outbox_drops_the_oldest_beyond_its_limit_and_says_how_many(
    service: Service, website: str, chromium: Tab
) -> None:
    with gated_pages(service, website, track_page_views="false") as (gate, origin):
        gate.mode = Mode.UNAVAILABLE
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(chromium, f"for (let i = 0; i < {MAX_ITEMS + 7}; i++) headrace.track('many', {{i}})")
        chromium.run("headrace.flush().then(arguments[0])")
        assert unsent(chromium) == MAX_ITEMS
        gate.mode = Mode.FORWARD
        run(chromium, "headrace.track('later')")
        wait_until(lambda: unsent(chromium) == 0, "the outbox is empty")

    rows = service.counts(website, "events", "properties.i")
    assert set(range(7)) & rows.keys() == set()
    assert service.counts(website, "events", "event_name") == {"many": MAX_ITEMS - 1, "later": 1}
    assert service.counts(website, "events", "properties._dropped")[7] == 1


class _Refusing(BaseHTTPRequestHandler):
    """Refuses what `refuses` says with `status`, and forwards the rest."""

    url = ""
    target = ""
    status = 0
    most_items = 0
    sizes: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        items = len(json.loads(body))
        self.sizes.append(items)
        if items > self.most_items:
            self._reply(self.status, b"{}")
        else:
            headers = {"Content-Type": "text/plain", "User-Agent": DESKTOP}
            sent = requests.post(self.target + self.path, body, headers=headers, timeout=20)
            self._reply(sent.status_code, sent.content)

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        del format, args


@contextmanager
def refusing(service: Service, status: int, most_items: int) -> Generator[type[_Refusing]]:
    """Stand in front of the service, and refuse bodies of more items with a status."""
    limits: dict[str, Any] = {"status": status, "most_items": most_items, "sizes": []}
    handler: type[_Refusing] = type("_R", (_Refusing,), {"target": service.url, **limits})
    with serving(handler) as url:
        handler.url = url
        yield handler


def test_batch_that_is_too_large_is_split(service: Service, website: str, chromium: Tab) -> None:
    with (
        refusing(service, 413, 10) as proxy,
        served_pages(
            head=snippet(service, website, api_url=proxy.url, track_page_views="false")
        ) as origin,
    ):
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(chromium, "for (let i = 0; i < 40; i++) headrace.track('part', {i})")
        until_events(service, website, "event_name", {"part": 40})

    assert max(proxy.sizes) == 40


def test_items_that_are_refused_for_good_are_counted_in_the_next_event(
    service: Service, website: str, chromium: Tab
) -> None:
    with (
        refusing(service, 403, 1) as proxy,
        served_pages(
            head=snippet(service, website, api_url=proxy.url, track_page_views="false")
        ) as origin,
    ):
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(chromium, "for (let i = 0; i < 3; i++) headrace.track('refused', {i})")
        wait_until(lambda: unsent(chromium) == 0, "the refused ones are gone")
        run(chromium, "headrace.track('next')")
        until_events(service, website, "event_name", {"next": 1})

    assert service.counts(website, "events", "properties._dropped") == {3: 1}


def test_page_is_left_without_requests_to_a_service_that_lets_one_wait(
    service: Service, website: str, tab: Tab
) -> None:
    with gated_pages(service, website, head=CLOCK, track_web_vitals="false") as (gate, origin):
        gate.mode = Mode.SILENT
        tab.open(f"{origin}/")
        tab.run(LOADED)
        wait_until(lambda: gate.silenced == 1, "the view waits for its reply")
        run(tab, "dispatchEvent(new Event('late'))")
        tab.open("about:blank")
        gate.mode = Mode.FORWARD
        tab.open(f"{origin}/next")
        until_events(service, website, "event_name", {"screen_view": 2, "page_exit": 1})

    assert gate.silenced == 1


def test_masks_are_for_vitals_and_errors_too_and_masked_pages_are_views(
    service: Service, website: str, tab: Tab
) -> None:
    head = snippet(service, website, mask_patterns="[&quot;/orders/*&quot;]")
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/orders/1")
        tab.run(SECOND_FILE_LOADED)
        run(tab, "history.pushState({}, '', '/orders/2')")
        tab.run(RUN_IN_PAGE, "setTimeout(() => { throw Error('in order') })")
        wait_until(lambda: service.count(website, "errors") == 1, "the error is stored")
        tab.run(FOLLOW_LINK, "/next")
        wait_until(
            lambda: service.counts(website, "events", "path").get("/next", 0) > 0,
            "the next page is stored",
        )
        tab.open("about:blank")
    wait_until(
        lambda: {"/orders/*", "/next"} <= service.counts(website, "performance", "path").keys(),
        "the vitals of both pages are stored",
    )

    masked = f"{origin}/orders/*"
    assert service.counts(website, "events", "event_name")["screen_view"] == 3
    assert service.counts(website, "errors", "url") == {masked: 1}
    for table in ("events", "performance"):
        assert set(service.counts(website, table, "path")) == {"/orders/*", "/next"}


def test_skipped_page_has_no_exit(service: Service, website: str, tab: Tab) -> None:
    head = snippet(service, website, skip_patterns="[&quot;/private*&quot;]")
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/private/me")
        tab.run(LOADED)
        run(tab, "history.pushState({}, '', '/prices')")
        until_events(service, website, "event_name", {"screen_view": 1})
        run(tab, "history.pushState({}, '', '/private/me')")
        run(tab, "history.pushState({}, '', '/shop')")
        wait_until(
            lambda: service.counts(website, "events", "path").get("/shop", 0) > 0,
            "the last page is stored",
        )

    for column in ("path", "url", "referrer"):
        values = service.counts(website, "events", column)
        assert [value for value in values if "private" in value] == []


def test_page_that_cleans_its_address_is_one_view(service: Service, website: str, tab: Tab) -> None:
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/prices?utm_source=news&page=1")
        tab.run(LOADED)
        run(tab, "history.replaceState({}, '', '/prices')")
        run(tab, "setTimeout(() => headrace.track('later'), 100)")
        until_events(service, website, "event_name", {"screen_view": 1, "later": 1})


def test_page_without_a_first_view_has_none_for_the_same_address(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        tab.open(f"{origin}/prices")
        tab.run(LOADED)
        run(tab, "history.replaceState({router: true}, '', location.href)")
        run(tab, "setTimeout(() => headrace.track('later'), 100)")
        until_events(service, website, "event_name", {"later": 1})


def test_scroll_depth_is_that_of_the_page_when_it_is_left(
    service: Service, website: str, tab: Tab
) -> None:
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        run(tab, "document.body.style.height = '40000px'")
        tab.open(f"{origin}/next")
        until_events(service, website, "event_name", {"screen_view": 2, "page_exit": 1})

    ((depth, _),) = [
        item for item in service.counts(website, "events", "scroll_depth").items() if item[0]
    ]
    assert 0 < depth < 10


def test_properties_that_json_cannot_have_are_left_out_and_nothing_is_thrown(
    service: Service, website: str, chromium: Tab
) -> None:
    with served_pages(head=snippet(service, website, track_page_views="false")) as origin:
        chromium.open(f"{origin}/")
        chromium.run(LOADED)
        run(chromium, UNREADABLE)
        until_events(
            service, website, "event_name", {"circle": 1, "big": 1, "getter": 1, "identify": 1}
        )

    assert service.counts(website, "events", "properties.plan") == {"pro": 4}
    assert service.counts(website, "events", "profile_id") == {"": 3, "17": 1}


def test_profile_id_or_address_that_is_too_long_costs_no_event(
    service: Service, website: str, chromium: Tab
) -> None:
    campaign = "utm_source=letter&utm_content=" + "x" * 2100
    with served_pages(head=snippet(service, website)) as origin:
        chromium.open(f"{origin}/shop?{campaign}")
        chromium.run(SECOND_FILE_LOADED)
        run(chromium, "headrace.identify('a'.repeat(128)); headrace.track('short')")
        run(chromium, "headrace.identify('a'.repeat(129)); headrace.track('long')")
        chromium.run(RUN_IN_PAGE, "setTimeout(() => { throw new Error('no such product'); })")
        until_events(
            service, website, "event_name", {"screen_view": 1, "identify": 2, "short": 1, "long": 1}
        )
        wait_until(lambda: service.count(website, "errors") == 1, "the error is stored")

    assert service.counts(website, "events", "profile_id") == {"": 3, "a" * 128: 2}
    assert service.counts(website, "events", "url") == {f"{origin}/shop?{campaign}"[:2000]: 5}
    assert service.counts(website, "errors", "path") == {"/shop": 1}


def test_reasons_of_any_kind_are_reported_and_images_are_no_errors(
    service: Service, website: str, tab: Tab
) -> None:
    head = snippet(service, website, track_page_views="false")
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/cart")
        tab.run(SECOND_FILE_LOADED)
        tab.run(RUN_IN_PAGE, "history.pushState({}, '', '/checkout');" + REASONS)
        wait_until(lambda: service.count(website, "errors") == 8, "the errors are stored")

    messages = service.counts(website, "errors", "message")
    assert sorted(text[:20] for text in messages if "thrown" not in text) == sorted(
        ["undefined", "Symbol(odd)", "text", "named", "no stack", "a number", "x" * 20]
    )
    assert service.counts(website, "errors", "path") == {"/checkout": 8}


def test_clicks_within_shadow_roots_and_with_the_middle_button_are_events(
    service: Service, website: str, tab: Tab
) -> None:
    head = snippet(service, website, track_page_views="false", track_outgoing_links="true")
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/")
        tab.run(SECOND_FILE_LOADED)
        run(tab, SHADOW + MIDDLE_BUTTON)
        until_events(service, website, "event_name", {"inside": 1, "host": 1, "outgoing_link": 1})


def test_script_that_is_loaded_again_leaves_the_page_once_and_its_variable_alone(
    service: Service, website: str, chromium: Tab
) -> None:
    with opened_gate(service.url) as gate:
        tag = snippet(service, website, api_url=gate.url, track_web_vitals="false")
        with served_pages(head=COUNT_ON_LEAVING + tag + tag) as origin:
            gate.mode = Mode.UNAVAILABLE
            chromium.open(f"{origin}/")
            chromium.run(LOADED)
            assert chromium.run("arguments[0](db)") == "of the page"
            run(chromium, "location.href = '/page.js'")
            wait_until(
                lambda: chromium.run("arguments[0](location.pathname)") == "/page.js",
                "the page is left",
            )
            assert chromium.run("arguments[0](sessionStorage.calls)") == "1"
            gate.mode = Mode.FORWARD
