"""What pages with the tracker send in a real browser, and how they load it."""

import pytest

from headrace.http.tracker.files import snippet as pinned_snippet
from testing.browsers.chromium import Tab, served_pages
from testing.browsers.kinds import Kind
from testing.service import Json, Row, Service, wait_until
from tests.e2e.tracker.pages import LOADED, SECOND_FILE_LOADED, run, snippet

pytestmark = [pytest.mark.browser, pytest.mark.slow]

UNCAUGHT = {
    Kind.CHROMIUM: "Uncaught TypeError: no cart",
    Kind.FIREFOX: "TypeError: no cart",
}
NAMES = {Kind.CHROMIUM: "Chrome", Kind.FIREFOX: "Firefox"}
VITALS = {
    Kind.CHROMIUM: {"CLS": 1, "FCP": 1, "LCP": 1, "TTFB": 1},
    Kind.FIREFOX: {"FCP": 1, "TTFB": 1},
}
"""What every page has, and how often; Chromium sends it after the page."""


def count_by(service: Service, website: str, column: str, table: str = "events") -> dict[str, int]:
    return service.counts(website, table, column)


def test_views_exits_and_events_of_pages_are_stored(
    service: Service, website: str, tab: Tab, browser: Kind
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
        tab.open(f"{origin}/last")
        expected |= {"screen_view": 3, "page_exit": 2}
        wait_until(
            lambda: count_by(service, website, "event_name") == expected,
            "the second exit is stored",
        )

    rows = _rows(service, website, "event_name", "path", "utm_source", "properties.plan")
    assert [row for row in rows if row["event_name"] in ("screen_view", "signup")] == [
        _row("screen_view", "/checkout"),
        _row("screen_view", "/last"),
        _row("screen_view", "/pricing", "news"),
        _row("signup", "/pricing", "news", "pro"),
    ]
    assert len(service.counts(website, "events", "session_id")) == 1
    assert service.counts(website, "events", "browser_name") == {
        NAMES[browser]: service.count(website, "events")
    }


def check_vitals(service: Service, website: str, browser: Kind) -> None:
    """Wait for the vitals that every page has, and check that each is stored once."""
    vitals = VITALS[browser]
    wait_until(
        lambda: vitals.keys() <= count_by(service, website, "metric_name", "performance").keys(),
        "the vitals are stored",
    )
    stored = count_by(service, website, "metric_name", "performance")
    assert {name: stored[name] for name in vitals} == vitals


QUOTA_USED = """<script>
for (let size = 65536; size > 256; size /= 2) {
  try { self.fetchLater?.("%s/health", { method: "POST", body: "x".repeat(size) }) } catch {}
}
</script>"""
"""Leaves less than what the vitals of a page take, and more than an empty request."""


@pytest.mark.parametrize(
    "sources", ["'self' {}", "'nonce-cGFnZQ==' 'strict-dynamic'"], ids=["addresses", "nonce"]
)
def test_errors_vitals_and_marked_clicks_are_stored_under_a_strict_policy(
    service: Service, website: str, tab: Tab, browser: Kind, sources: str
) -> None:
    scripts = sources.format(service.url)
    policy = f"default-src 'none'; script-src {scripts}; connect-src {service.url}"
    head = snippet(service, website) + '<script src="/page.js"></script>'
    head = head.replace("<script", '<script nonce="cGFnZQ=="')
    script = "addEventListener('fail', () => setTimeout(() => { throw new TypeError('no cart') }))"
    with served_pages(head=head, policy=policy, script=script) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)  # an error from before it is lost
        run(tab, "dispatchEvent(new Event('fail')); document.querySelector('button').click()")
        wait_until(lambda: service.count(website, "errors") > 0, "the error is stored")
        assert count_by(service, website, "message", "errors") == {UNCAUGHT[browser]: 1}
        wait_until(
            lambda: count_by(service, website, "event_name").get("buy") == 1, "the click is stored"
        )
        tab.open("about:blank")  # vitals are final when their page is hidden
    check_vitals(service, website, browser)


def test_vitals_are_stored_where_the_page_has_used_the_quota_of_deferred_requests(
    service: Service, website: str, tab: Tab, browser: Kind
) -> None:
    head = QUOTA_USED % service.url + snippet(service, website)
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/")
        tab.run(SECOND_FILE_LOADED)
        run(tab, "document.querySelector('button').click()")
        tab.open("about:blank")
    check_vitals(service, website, browser)
    assert count_by(service, website, "message", "errors") == {}


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


def test_items_of_all_endpoints_are_sent_when_their_page_is_left(
    service: Service, website: str, tab: Tab, browser: Kind
) -> None:
    # a busy Firefox leaves out the event at which a page sends: there the next page does
    to, views = ("/next", 2) if browser is Kind.FIREFOX else ("about:blank", 1)
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/")
        tab.run(LOADED)
        wait_until(lambda: service.count(website, "events") == 1, "the view is stored")
        run(
            tab,
            "headrace.put('vitals', {path: '/', metricName: 'FPS', metricValue: 60});"
            "headrace.put('errors', {path: '/', message: 'too late'});"
            "headrace.track('left');"
            f"location.href = '{to}'",
        )
        wait_until(
            lambda: (
                count_by(service, website, "event_name")
                == {"screen_view": views, "left": 1, "page_exit": 1}
            ),
            "the last events are stored",
        )
    wait_until(lambda: service.count(website, "errors") == 1, "the error is stored")
    wait_until(
        lambda: count_by(service, website, "metric_name", "performance").get("FPS") == 1,
        "the vital is stored",
    )


def test_exit_is_stored_where_the_browser_leaves_out_the_change_of_visibility(
    service: Service, website: str, tab: Tab
) -> None:
    """As Firefox does where it is busy: the next page sends what was written at `pagehide`."""
    with served_pages(head=snippet(service, website)) as origin:
        tab.open(f"{origin}/left")
        tab.run(LOADED)
        run(
            tab,
            "document.addEventListener('visibilitychange', (event) => event.stopPropagation());"
            "location.href = '/next'",
        )
        wait_until(
            lambda: count_by(service, website, "event_name") == {"screen_view": 2, "page_exit": 1},
            "the exit of the first page is stored",
        )

    rows = _rows(service, website, "event_name", "path", "utm_source", "properties.plan")
    assert [row for row in rows if row["event_name"] == "page_exit"] == [_row("page_exit", "/left")]


def test_navigations_are_views_where_the_browser_has_no_navigation_api(
    service: Service, website: str, tab: Tab
) -> None:
    head = "<script>delete window.navigation</script>" + snippet(service, website)
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/")
        tab.run(SECOND_FILE_LOADED)
        run(tab, "history.pushState({}, '', '/checkout')")
        wait_until(
            lambda: (
                service.counts(website, "events", "path") == {"/": 2, "/checkout": 1}
                and count_by(service, website, "event_name") == {"screen_view": 2, "page_exit": 1}
            ),
            "the views are stored",
        )


def test_third_file_reports_causes_of_vitals_and_frames_a_second(
    service: Service, website: str, tab: Tab
) -> None:
    details = '<script defer src="{}/headrace-details.js" data-attribution="true" data-fps="true">'
    head = snippet(service, website) + details.format(service.url) + "</script>"
    with served_pages(head=head) as origin:
        tab.open(f"{origin}/prices")
        tab.run(SECOND_FILE_LOADED)
        run(tab, "document.querySelector('button').click()")
        wait_until(
            lambda: "FPS" in count_by(service, website, "metric_name", "performance"),
            "the frames are stored",
        )
        run(tab, "document.querySelector('button').click()")  # the same page is measured once
        tab.open("about:blank")
    wait_until(
        lambda: {"FCP", "TTFB"} <= service.counts(website, "events", "properties.metric").keys(),
        "the causes are stored",
    )

    columns = ["event_name", "path", "properties.metric"]
    rows = [row for row in service.rows(website, "events", columns) if row["properties.metric"]]
    assert _causes(rows, "TTFB") == [("web_vital", "/prices", "TTFB")]
    frames = service.rows(website, "performance", ["metric_name", "metric_value", "path"])
    ((value, path),) = [
        (row["metric_value"], row["path"]) for row in frames if row["metric_name"] == "FPS"
    ]
    assert (0 < value < 1000, path) == (True, "/prices")


def _causes(rows: list[Row], metric: str) -> list[tuple[Json, ...]]:
    return [tuple(row.values()) for row in rows if row["properties.metric"] == metric]


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
