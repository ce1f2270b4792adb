"""A page of another origin in a real browser sends beacons with a preflight, and fetches."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.browsers.chromium import Tab, opened_tab, served_pages
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.service import Json, Row, Service, wait_until
from tests.e2e.envelopes import TIMESTAMP_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

DESKTOP = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
BEACON = """
const [url, body, type, done] = arguments;
done(navigator.sendBeacon(url, new Blob([JSON.stringify(body)], {type})));
"""
FETCH = """
const [url, body, headers, done] = arguments;
fetch(url, {
  method: 'POST', body: JSON.stringify(body), headers, keepalive: true, credentials: 'include',
}).then(async (reply) => done([reply.status, await reply.json()]), (error) => done(String(error)));
"""
VITAL = {
    "timestamp": TIMESTAMP_MS,
    "path": "/pricing",
    "metricName": "LCP",
    "metricValue": 2400.5,
    "anonymousId": "anon_browser",
    "sessionId": "sess_browser",
}
FAILURE = {
    "timestamp": TIMESTAMP_MS,
    "path": "/pricing",
    "message": "x is undefined",
    "filename": "app.js",
    "lineno": 12,
    "colno": 34,
    "errorType": "TypeError",
    "anonymousId": "anon_browser",
    "sessionId": "sess_browser",
}
VISITOR: Row = {
    "country": "",
    "browser_name": "Chrome",
    "os_name": "Linux",
    "device_type": "desktop",
    "is_bot": False,
    "anonymous_id": "anon_browser",
    "session_id": "sess_browser",
}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab with a page from an origin other than the service's."""
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with served_pages() as origin, opened_tab(profile, user_agent=DESKTOP) as opened:
        opened.open(f"{origin}/pricing")
        yield opened


def wait_for_row(service: Service, website: str, table: str) -> None:
    """Wait for the row, because a beacon does not report its delivery."""
    wait_until(lambda: service.count(website, table) > 0, f"the beacon's row is in {table}")


def test_beacon_with_vitals_arrives_through_its_preflight(
    service: Service, website: str, tab: Tab
) -> None:
    url = f"{service.url}/vitals?client_id={website}"

    assert tab.run(BEACON, url, [VITAL], "application/json") is True

    wait_for_row(service, website, "performance")
    expected = {**VISITOR, "metric_name": "LCP", "metric_value": 2400.5, "path": "/pricing"}
    assert service.row(website, "performance", list(expected)) == expected


def test_beacon_with_errors_arrives_through_its_preflight(
    service: Service, website: str, tab: Tab
) -> None:
    url = f"{service.url}/errors?client_id={website}"

    assert tab.run(BEACON, url, [FAILURE], "application/json") is True

    wait_for_row(service, website, "errors")
    expected = {
        **VISITOR,
        "message": "x is undefined",
        "error_type": "TypeError",
        "filename": "app.js",
        "lineno": 12,
        "colno": 34,
        "path": "/pricing",
    }
    assert service.row(website, "errors", list(expected)) == expected


def test_beacon_with_plain_text_arrives(service: Service, website: str, tab: Tab) -> None:
    view = {"name": "page_exit", "path": "https://shop.example/pricing", "time_on_page": 12}
    url = f"{service.url}/batch?client_id={website}"

    assert tab.run(BEACON, url, [view], "text/plain") is True

    wait_for_row(service, website, "events")
    row = service.row(website, "events", ["event_name", "path", "time_on_page", "browser_name"])
    assert list(row.values()) == ["page_exit", "/pricing", 12, "Chrome"]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (
            "/batch",
            [{"name": "screen_view", "eventId": "one", "path": "https://shop.example/"}],
            {
                "status": "success",
                "batch": True,
                "processed": 1,
                "results": [{"status": "success", "type": "track", "eventId": "one"}],
            },
        ),
        ("/", {"name": "screen_view"}, {"status": "success", "type": "track"}),
        (
            "/track",
            [{"name": "click"}, {"name": "click"}],
            {"status": "success", "type": "custom_event", "count": 2},
        ),
    ],
    ids=["batch", "one page view", "custom events"],
)
def test_page_reads_the_fetch_response_with_tracker_headers(
    service: Service, website: str, tab: Tab, path: str, *, body: Json, expected: Json
) -> None:
    headers = {
        "Content-Type": "application/json",
        "databuddy-client-id": website,
        "databuddy-sdk-name": "web",
        "databuddy-sdk-version": "2.6.0",
    }

    answer = tab.run(FETCH, service.url + path, body, headers)

    assert answer == [200, expected]
    assert service.count(website, "events") == (2 if path == "/track" else 1)


def test_page_reads_an_error_response(service: Service, tab: Tab) -> None:
    headers = {"Content-Type": "application/json"}

    status, body = tab.run(FETCH, f"{service.url}/track?website_id=web_x", {"name": "a"}, headers)

    assert status == 404
    assert body["message"] == "Website not found"


def test_page_of_an_unlisted_origin_is_rejected(service: Service, tab: Tab) -> None:
    guarded = service.website(origins=["https://shop.example"])
    headers = {"Content-Type": "application/json"}

    status, body = tab.run(
        FETCH, f"{service.url}/track?website_id={guarded}", {"name": "a"}, headers
    )

    assert (status, body["message"]) == (403, "Origin not authorized")
    assert service.count(guarded, "events") == 0


def test_headless_browser_is_a_bot_and_left_out(
    service: Service, website: str, tmp_path: Path
) -> None:
    with served_pages() as origin, opened_tab(tmp_path / "profile") as headless:
        headless.open(origin)
        url = f"{service.url}/vitals?client_id={website}"
        assert headless.run(BEACON, url, [VITAL], "application/json") is True
        wait_for_row(service, website, "performance")

    assert service.row(website, "performance", ["is_bot"]) == {"is_bot": True}
    query = {"table": "performance", "selects": [{"field": "*", "aggregate": "count"}]}
    assert service.answer(website, query) == [{"count_all": 0}]
