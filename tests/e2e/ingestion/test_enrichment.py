"""Enrichment from address and User-Agent, bot detection, and derived anonymous ids."""

import pytest
import requests

from testing.service import Json, Row, Service, bearer
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import ENDPOINTS, ITEMS, TABLES, TIMESTAMP_MS

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/124.0.0.0 Safari/537.36"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1"
)
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.4 Safari/605.1.15"
)
IPAD = (
    "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1"
)
PIXEL = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/124.0.0.0 Mobile Safari/537.36"
)
USER_AGENT_INFO = {
    "Chrome on Windows": (CHROME, "Chrome", "Windows", "desktop"),
    "Edge on Windows": (CHROME + " Edg/124.0.0.0", "Edge", "Windows", "desktop"),
    "Safari on macOS": (SAFARI, "Safari", "macOS", "desktop"),
    "Firefox on Linux": (
        "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
        "Firefox",
        "Linux",
        "desktop",
    ),
    "Safari on an iPhone": (IPHONE, "Safari", "iOS", "mobile"),
    "Safari on an iPad": (IPAD, "Safari", "iOS", "tablet"),
    "Chrome on Android": (PIXEL, "Chrome", "Android", "mobile"),
    "Chrome on an iPhone": (
        IPHONE.replace("Version/17.4", "CriOS/124.0.6367.88"),
        "Chrome",
        "iOS",
        "mobile",
    ),
    "Firefox on an iPhone": (
        IPHONE.replace("Version/17.4", "FxiOS/125.0"),
        "Firefox",
        "iOS",
        "mobile",
    ),
    "Edge on Android": (PIXEL + " EdgA/124.0.0.0", "Edge", "Android", "mobile"),
    "Firefox on Android": (
        "Mozilla/5.0 (Android 14; Mobile; rv:125.0) Gecko/125.0 Firefox/125.0",
        "Firefox",
        "Android",
        "mobile",
    ),
}
TELEVISION = (
    "Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/94.0.4606.128 Safari/537.36 WebAppManager"
)
PLAYSTATION = (
    "Mozilla/5.0 (PlayStation; PlayStation 5/8.60) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/13.0 Safari/605.1.15"
)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
DEVICES = {
    "television": (TELEVISION, "tv"),
    "console": (PLAYSTATION, "console"),
    "crawler": (GOOGLEBOT, "bot"),
    "library": ("python-requests/2.32.3", ""),
}
BOTS = {
    "Googlebot": GOOGLEBOT,
    "Googlebot with Chrome": (
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; "
        "+http://www.google.com/bot.html) Chrome/124.0.0.0 Safari/537.36"
    ),
    "bingbot": "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "AhrefsBot": "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "UptimeRobot": "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    "Pingdom": "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
    "headless Chrome": CHROME.replace("Chrome/", "HeadlessChrome/"),
}
LIBRARIES = {
    "requests": "python-requests/2.32.3",
    "httpx": "python-httpx/0.27.0",
    "aiohttp": "Python/3.12 aiohttp/3.9.5",
    "curl": "curl/8.7.1",
    "okhttp": "okhttp/4.12.0",
    "Go": "Go-http-client/2.0",
    "Java": "Java/17.0.11",
    "axios": "axios/1.6.8",
    "node": "node",
    "WordPress": "WordPress/6.5; https://shop.example",
    "Drupal": "Drupal/10 (+https://www.drupal.org/) GuzzleHttp/7",
    "Apps Script": (
        "Mozilla/5.0 (compatible; Google-Apps-Script; beanserver; +https://script.google.com)"
    ),
    "Indy of Delphi": "Mozilla/3.0 (compatible; Indy Library)",
    "nothing known": "Acme Sender 1.0",
}
COLUMNS = ["browser_name", "os_name", "device_type", "is_bot"]


@pytest.mark.parametrize(
    ("user_agent", "browser", "system", "device"), USER_AGENT_INFO.values(), ids=USER_AGENT_INFO
)
def test_user_agent_info_comes_from_requests_without_a_key(
    service: Service, website: str, *, user_agent: str, browser: str, system: str, device: str
) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers={"User-Agent": user_agent})

    row = service.row(website, "events", COLUMNS)
    assert row == user_agent_info(browser, system, device)


@pytest.mark.parametrize(("user_agent", "device"), DEVICES.values(), ids=DEVICES)
def test_device_type_is_detected(
    service: Service, website: str, user_agent: str, device: str
) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers={"User-Agent": user_agent})

    assert service.row(website, "events", ["device_type"]) == {"device_type": device}


def user_agent_info(browser: str, system: str, device: str, *, is_bot: bool = False) -> Row:
    return dict(zip(COLUMNS, (browser, system, device, is_bot), strict=True))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_user_agent_info_is_added_on_every_endpoint(
    service: Service, website: str, endpoint: str
) -> None:
    service.post(f"{endpoint}?client_id={website}", ITEMS[endpoint], headers={"User-Agent": CHROME})

    row = service.row(website, TABLES[endpoint], [*COLUMNS, "browser_version", "country"])
    assert row.pop("browser_version").startswith("124")
    assert row == {**user_agent_info("Chrome", "Windows", "desktop"), "country": ""}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_user_agent_of_the_event_is_used_with_a_key(
    service: Service, website: str, endpoint: str
) -> None:
    service.post(
        f"{endpoint}?client_id={website}",
        {**ITEMS[endpoint], "userAgent": IPHONE},
        headers={"User-Agent": CHROME, **bearer(service.master)},
    )

    row = service.row(website, TABLES[endpoint], COLUMNS)
    assert row == user_agent_info("Safari", "iOS", "mobile")


def test_user_agent_of_the_request_is_ignored_with_a_key(service: Service, website: str) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a"},
        headers={"User-Agent": CHROME, **bearer(service.master)},
    )

    assert service.row(website, "events", COLUMNS) == user_agent_info("", "", "")


def test_user_agent_of_the_event_is_ignored_without_a_key(service: Service, website: str) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a", "userAgent": IPHONE, "ip": "8.8.8.8"},
        headers={"User-Agent": CHROME},
    )

    row = service.row(website, "events", [*COLUMNS, "country"])
    assert row == {**user_agent_info("Chrome", "Windows", "desktop"), "country": ""}


ADDRESSES = {
    "United States": ("8.8.8.8", "US"),
    "Netherlands": ("193.0.6.139", "NL"),
    "Germany": ("141.20.1.1", "DE"),
    "Japan": ("133.11.0.1", "JP"),
    "Netherlands by IPv6": ("2001:67c:2e8:22::c100:68b", "NL"),
    "loopback": ("127.0.0.1", ""),
    "private": ("192.168.1.1", ""),
    "documentation": ("203.0.113.7", ""),
    "documentation by IPv6": ("2001:db8::1", ""),
}


@pytest.mark.parametrize(("address", "country"), ADDRESSES.values(), ids=ADDRESSES)
def test_country_comes_from_the_events_ip_with_a_key(
    service: Service, website: str, address: str, country: str
) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a", "ip": address},
        headers=bearer(service.master),
    )

    assert service.row(website, "events", ["country"]) == {"country": country}


def test_each_event_of_a_batch_has_its_own_visitor_with_a_key(
    service: Service, website: str
) -> None:
    batch: list[Json] = [
        {"name": "a", "ip": "8.8.8.8", "userAgent": CHROME},
        {"name": "b", "ip": "193.0.6.139", "userAgent": IPHONE},
        {"name": "c"},
    ]

    service.post(f"/track?website_id={website}", batch, headers=bearer(service.master))

    rows = service.rows(website, "events", ["event_name", "country", "browser_name"])
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", "US", "Chrome"),
        ("b", "NL", "Safari"),
        ("c", "", ""),
    ]


FORWARDED = {
    "X-Forwarded-For": "8.8.8.8",
    "X-Real-IP": "8.8.8.8",
    "Forwarded": "for=8.8.8.8",
    "CF-Connecting-IP": "8.8.8.8",
    "True-Client-IP": "8.8.8.8",
}


def test_forwarding_headers_are_ignored_from_untrusted_peers(
    service: Service, website: str
) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers=FORWARDED)

    assert service.row(website, "events", ["country"]) == {"country": ""}


@pytest.mark.slow
@pytest.mark.parametrize("proxies", ["127.0.0.1", "10.0.0.0/8, 127.0.0.0/8"])
def test_forwarding_headers_are_trusted_from_configured_proxies(
    dedicated_service: ServiceMaker, proxies: str
) -> None:
    service = dedicated_service(settings={"HEADRACE_TRUSTED_PROXIES": proxies}).start()
    chains = {"8.8.8.8": "US", "8.8.8.8, 193.0.6.139": "NL", "193.0.6.139, 127.0.0.1": "NL"}
    chains |= {"nonsense": "", "8.8.8.8, nonsense": ""}

    for chain, country in chains.items():
        website = service.website()
        headers = {"X-Forwarded-For": chain}
        service.post(f"/track?website_id={website}", {"name": "a"}, headers=headers)
        assert service.row(website, "events", ["country"]) == {"country": country}, chain


@pytest.mark.parametrize("user_agent", BOTS.values(), ids=BOTS)
def test_bots_are_flagged_on_requests_without_a_key(
    service: Service, website: str, user_agent: str
) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers={"User-Agent": user_agent})

    row = service.row(website, "events", ["is_bot", "device_type"])
    assert row == {"is_bot": True, "device_type": "bot"}


@pytest.mark.parametrize("user_agent", LIBRARIES.values(), ids=LIBRARIES)
def test_http_libraries_are_not_bots(service: Service, website: str, user_agent: str) -> None:
    service.post(f"/track?website_id={website}", {"name": "a"}, headers={"User-Agent": user_agent})

    assert service.row(website, "events", ["is_bot"]) == {"is_bot": False}


@pytest.mark.parametrize("user_agent", [None, ""], ids=["missing", "empty"])
def test_missing_user_agent_is_not_a_bot(
    service: Service, website: str, user_agent: str | None
) -> None:
    body = b'{"name":"a"}'
    url = f"{service.url}/track?website_id={website}"
    with_visitor = service.http.prepare_request(requests.Request("POST", url, data=body))
    del with_visitor.headers["User-Agent"]
    if user_agent is not None:
        with_visitor.headers["User-Agent"] = user_agent

    assert service.http.send(with_visitor, timeout=30).status_code == 200
    row = service.row(website, "events", COLUMNS)
    assert row == user_agent_info("", "", "")


@pytest.mark.parametrize("user_agent", BOTS.values(), ids=BOTS)
def test_requests_with_a_key_are_never_bots(
    service: Service, website: str, user_agent: str
) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a", "userAgent": user_agent},
        headers={"User-Agent": user_agent, **bearer(service.master)},
    )

    assert service.row(website, "events", ["is_bot"]) == {"is_bot": False}


COUNT: Json = [{"field": "*", "aggregate": "count", "alias": "n"}]


@pytest.mark.parametrize(
    ("endpoint", "table"),
    [("/track", "events"), ("/vitals", "performance"), ("/errors", "errors")],
)
def test_bots_are_left_out_unless_a_filter_names_is_bot(
    service: Service, website: str, endpoint: str, table: str
) -> None:
    path = f"{endpoint}?client_id={website}"
    service.post(path, ITEMS[endpoint], headers={"User-Agent": GOOGLEBOT})
    service.post(path, [ITEMS[endpoint]] * 2, headers={"User-Agent": CHROME})

    def count(*filters: Json) -> int:
        query = {"table": table, "selects": COUNT, "filters": list(filters)}
        rows = service.answer(website, query)
        found: int = rows[0]["n"]
        return found

    assert count() == 2
    assert count({"field": "is_bot", "operator": "eq", "value": True}) == 1
    assert count({"field": "is_bot", "operator": "eq", "value": False}) == 2
    assert count({"field": "is_bot", "operator": "in", "value": [True, False]}) == 3


@pytest.mark.parametrize("table", ["sessions", "profiles"])
def test_sessions_and_profiles_exclude_bots(service: Service, website: str, table: str) -> None:
    path = f"/track?website_id={website}"
    event = {"name": "a", "timestamp": TIMESTAMP_MS}
    bot = {**event, "sessionId": "bot", "anonymousId": "bot"}
    human = {**event, "sessionId": "person", "anonymousId": "person"}
    service.post(path, bot, headers={"User-Agent": GOOGLEBOT})
    service.post(path, human, headers={"User-Agent": GOOGLEBOT})
    service.post(path, human, headers={"User-Agent": CHROME})

    selects = [*COUNT, {"field": "event_count", "aggregate": "sum", "alias": "events"}]
    query = {"table": table, "selects": selects, "groupBy": ["anonymous_id"]}

    assert service.answer(website, query) == [{"anonymous_id": "person", "n": 1, "events": 1}]


def visitor_of(service: Service, website: str, user_agent: str, endpoint: str = "/track") -> str:
    """Send one item without an anonymousId and return the anonymous id that the service derives."""
    path = f"{endpoint}?client_id={website}"
    session_id = f"{user_agent}{endpoint}"[-200:]
    item = {**ITEMS[endpoint], "sessionId": session_id}
    service.post(path, item, headers={"User-Agent": user_agent})
    filters = [{"field": "session_id", "operator": "eq", "value": session_id}]
    rows = service.rows(website, TABLES[endpoint], ["anonymous_id"], filters=filters)
    visitor: str = rows[-1]["anonymous_id"]
    return visitor


def test_visitor_id_is_the_same_for_the_same_visitor(service: Service, website: str) -> None:
    made = {visitor_of(service, website, CHROME, endpoint) for endpoint in ENDPOINTS}

    assert len(made) == 1
    assert "127.0.0.1" not in made.pop()


def test_visitor_id_differs_by_user_agent_and_website(service: Service, website: str) -> None:
    made = {visitor_of(service, website, CHROME), visitor_of(service, website, IPHONE)}
    made.add(visitor_of(service, service.website(), CHROME))

    assert len(made) == 3
    assert "" not in made


@pytest.mark.slow
def test_visitor_id_differs_by_address_and_survives_a_restart(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(
        workers=2, settings={"HEADRACE_TRUSTED_PROXIES": "127.0.0.1"}
    ).start()
    website = service.website()
    path = f"/track?website_id={website}"

    for address in ("8.8.8.8", "8.8.4.4", "8.8.8.8"):
        headers = {"X-Forwarded-For": address, "User-Agent": CHROME}
        service.post(path, {"name": "a", "timestamp": TIMESTAMP_MS}, headers=headers)
    assert sorted(service.counts(website, "events", "anonymous_id").values()) == [1, 2]

    service.stop()
    service.restart()
    service.post(path, {"name": "a"}, headers={"X-Forwarded-For": "8.8.4.4", "User-Agent": CHROME})
    assert sorted(service.counts(website, "events", "anonymous_id").values()) == [2, 2]


def test_no_visitor_id_is_generated_with_a_key(service: Service, website: str) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a", "ip": "8.8.8.8", "userAgent": CHROME},
        headers=bearer(service.master),
    )

    assert service.row(website, "events", ["anonymous_id"]) == {"anonymous_id": ""}


def test_anonymous_id_that_was_sent_is_kept(service: Service, website: str) -> None:
    service.post(
        f"/track?website_id={website}",
        {"name": "a", "anonymousId": "anon_1"},
        headers={"User-Agent": CHROME},
    )

    assert service.row(website, "events", ["anonymous_id"]) == {"anonymous_id": "anon_1"}
