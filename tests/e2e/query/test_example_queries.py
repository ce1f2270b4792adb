"""Five common queries over ingested data; the expected results are computed by hand."""

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.envelopes import outcome, success

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/124.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.4 Safari/605.1.15"
)
US, NL, JP = "8.8.8.8", "193.0.6.139", "133.11.0.1"

# visitor, session, address, User-Agent; then (time, path) of each page view
SAMPLE_EVENTS: list[tuple[str, str, str, str, list[tuple[str, str]]]] = [
    # 02:30 UTC on the 2nd is 22:30 on the 1st in New York
    (
        "ann",
        "s1",
        US,
        CHROME,
        [("2024-05-02T02:30:00Z", "/"), ("2024-05-02T02:31:00Z", "/pricing")],
    ),
    ("ann", "s2", US, CHROME, [("2024-05-02T15:00:00Z", "/")]),
    ("bob", "s3", US, FIREFOX, [("2024-05-02T15:00:00Z", "/"), ("2024-05-02T15:00:30Z", "/docs")]),
    (
        "cas",
        "s4",
        NL,
        SAFARI,
        [
            ("2024-05-02T10:00:00Z", "/pricing"),
            ("2024-05-02T10:05:00Z", "/"),
            ("2024-05-02T10:10:00Z", "/pricing"),
        ],
    ),
    # 04:00 UTC is midnight in New York: the start of the 3rd there
    ("dai", "s5", JP, CHROME, [("2024-05-03T04:00:00Z", "/"), ("2024-05-03T04:00:00.500Z", "/")]),
    # 03:59:59.999 UTC is the last millisecond of the 2nd there
    ("eva", "s6", NL, FIREFOX, [("2024-05-03T03:59:59.999Z", "/docs")]),
    # outside the range: 30 April, 23:59:59.999 in New York
    ("old", "s7", US, CHROME, [("2024-05-01T03:59:59.999Z", "/")]),
]
LCP = {"/": [1000, 2000, 3000, 4000, 5000], "/pricing": [800, 1200], "/docs": [2500]}
FAILURES = [
    ("x is undefined", CHROME, 3),
    ("x is undefined", SAFARI, 1),
    ("Script error.", FIREFOX, 2),
    ("Script error.", CHROME, 2),
]
RANGE: Json = {"start": "2024-05-01", "end": "2024-05-03", "timezone": "America/New_York"}


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A website with the page views, vitals and errors above."""
    website = service.website()
    key = service.key("track:events", websites=[website])
    for path, items in (("/track", views()), ("/vitals", vitals()), ("/errors", failures())):
        response = service.post(path, items, headers=bearer(key))
        assert outcome(response) == (200, success(path, len(items)))
    return website


def views() -> list[Json]:
    return [
        {
            "name": "screen_view",
            "anonymousId": visitor,
            "sessionId": session,
            "ip": address,
            "userAgent": agent,
            "timestamp": timestamp,
            "path": path,
        }
        for visitor, session, address, agent, pages in SAMPLE_EVENTS
        for timestamp, path in pages
    ]


def vitals() -> list[Json]:
    timestamp = "2024-05-02T12:00:00Z"
    measured: list[tuple[str, str, float]]
    measured = [("LCP", path, value) for path, values in LCP.items() for value in values]
    measured += [("CLS", "/", 0.1), ("TTFB", "/", 90_000)]
    return [
        {"timestamp": timestamp, "path": path, "metricName": name, "metricValue": value}
        for name, path, value in measured
    ]


def failures() -> list[Json]:
    error = {"timestamp": "2024-05-02T12:00:00Z", "path": "/"}
    return [
        {**error, "message": message, "userAgent": agent}
        for message, agent, times in FAILURES
        for _ in range(times)
    ]


def test_top_pages_with_visitors(service: Service, shop: str) -> None:
    query = {
        "table": "events",
        "selects": [
            {"field": "*", "aggregate": "count", "alias": "views"},
            {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"},
        ],
        "filters": [{"field": "event_name", "operator": "eq", "value": "screen_view"}],
        "groupBy": ["path"],
    }

    response = service.send_query(shop, query, **RANGE, limit=10)

    body = response.json()
    assert body.pop("requestId")
    assert body["meta"].pop("executionTime") >= 0
    assert body["meta"].pop("rowsRead") >= 11
    assert body["meta"].pop("bytesRead") > 0
    assert body["meta"].pop("watermark") > "2026"
    assert body == {
        "success": True,
        "data": [
            {"path": "/", "views": 6, "visitors": 4},
            {"path": "/pricing", "views": 3, "visitors": 2},
            {"path": "/docs", "views": 2, "visitors": 2},
        ],
        "meta": {"rowCount": 3, "limit": 10, "truncated": False, "cached": False},
    }


def test_visitors_by_country_and_day_in_new_york(service: Service, shop: str) -> None:
    query = {
        "table": "events",
        "selects": [{"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"}],
        "groupBy": ["country"],
    }

    rows = service.answer(shop, query, **RANGE, granularity="daily")

    assert rows == [
        {"date": "2024-05-01", "country": "US", "visitors": 1},
        {"date": "2024-05-02", "country": "NL", "visitors": 2},
        {"date": "2024-05-02", "country": "US", "visitors": 2},
        {"date": "2024-05-03", "country": "JP", "visitors": 1},
    ]


def test_p75_of_lcp_by_path(service: Service, shop: str) -> None:
    query = {
        "table": "performance",
        "selects": [
            {"field": "metric_value", "aggregate": "p75"},
            {"field": "*", "aggregate": "count", "alias": "measured"},
        ],
        "filters": [{"field": "metric_name", "operator": "eq", "value": "LCP"}],
        "groupBy": ["path"],
    }

    assert service.answer(shop, query, **RANGE) == [
        {"path": "/", "p75_metric_value": 4000, "measured": 5},
        {"path": "/docs", "p75_metric_value": 2500, "measured": 1},
        {"path": "/pricing", "p75_metric_value": 1100, "measured": 2},
    ]


def test_errors_by_message_and_browser(service: Service, shop: str) -> None:
    query = {
        "table": "errors",
        "selects": [{"field": "*", "aggregate": "count"}],
        "filters": [{"field": "level", "operator": "eq", "value": "error"}],
        "groupBy": ["message", "browser_name"],
    }

    assert service.answer(shop, query, **RANGE) == [
        error_row("x is undefined", "Chrome", 3),
        error_row("Script error.", "Chrome", 2),
        error_row("Script error.", "Firefox", 2),
        error_row("x is undefined", "Safari", 1),
    ]


def error_row(message: str, browser: str, count: int) -> Row:
    return {"message": message, "browser_name": browser, "count_all": count}


def test_average_session_duration_by_country(service: Service, shop: str) -> None:
    query = {
        "table": "sessions",
        "selects": [
            {"field": "duration", "aggregate": "avg", "alias": "seconds"},
            {"field": "*", "aggregate": "count", "alias": "sessions"},
        ],
        "groupBy": ["country"],
    }

    assert service.answer(shop, query, **RANGE) == [
        {"country": "NL", "seconds": 300, "sessions": 2},  # 600 and 0
        {"country": "US", "seconds": 30, "sessions": 3},  # 60, 0 and 30
        {"country": "JP", "seconds": 0.5, "sessions": 1},
    ]
