"""The Python client and a real service: every item becomes a row, and every query an answer."""

import io
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from arro3.io import read_ipc_stream

from headrace_client import Headrace, QueryRefused, QueryUnavailable
from headrace_client.testing import FakeHeadrace
from testing.service import Service, bearer

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOON_MS = 1_777_636_800_000
TIMESTAMPS: tuple[Any, ...] = (
    *(NOON_MS, 1_777_636_800, 5, True, [], "2026-05-01", "2026-05-01T12:00:00.5Z", "yesterday"),
    "Fri, 01 May 2026 12:00:30 GMT",
)
NOON_TEXT = "2026-05-01T12:00:00.000Z"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "events"}]}
DAY = date(2026, 5, 1)


@pytest.fixture
def client(service: Service, website: str) -> Iterator[Headrace]:
    options: Any = {"outbox": None, "website_id": website, "linger_s": 0.0}
    with Headrace(service.url, service.master.secret, **options) as one:
        yield one


def test_every_method_becomes_a_row(service: Service, website: str, client: Headrace) -> None:
    visitor: Any = {"anonymous_id": "anon_1", "session_id": "sess_1", "timestamp": NOON}
    client.track("a", {"n": 1}, user_agent=FIREFOX, ip="198.51.100.1", **visitor)
    client.page_view("/pricing", **visitor)
    client.identify("acc-1", {"plan": "pro"}, **visitor)
    client.vitals("LCP", 1830.5, path="/pricing", **visitor)
    client.errors(ValueError("broken"), path="/pricing", level="warning", **visitor)
    assert client.flush()

    assert client.stats()[:5] == (0, 0, 5, 0, 0)
    columns = ["event_name", "path", "anonymous_id", "profile_id", "browser_name", "time"]
    rows = service.rows(website, "events", columns)
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", "", "anon_1", "", "Firefox", NOON_TEXT),
        ("identify", "", "anon_1", "acc-1", "", NOON_TEXT),
        ("screen_view", "/pricing", "anon_1", "", "", NOON_TEXT),
    ]
    vital = {"metric_name": "LCP", "metric_value": 1830.5, "path": "/pricing", "time": NOON_TEXT}
    assert service.row(website, "performance", list(vital)) == vital
    error = {"message": "broken", "error_type": "ValueError", "level": "warning"}
    assert service.row(website, "errors", list(error)) == error


def test_client_without_a_key_reports_for_its_website(service: Service, website: str) -> None:
    with Headrace(service.url, outbox=None, website_id=website) as client:
        client.track("a")
        client.identify("acc-1")
        assert client.flush()
    assert service.counts(website, "events", "event_name") == {"a": 1, "identify": 1}


def test_repeated_identification_is_stored_once(service: Service, website: str) -> None:
    for _ in range(2):
        with Headrace(service.url, outbox=None, website_id=website) as client:
            client.identify("acc-1", event_id="id-1")
            assert client.flush()
    assert service.count(website, "events") == 1


def test_item_that_the_service_refuses_is_kept_with_the_reason(client: Headrace) -> None:
    client.track_many(
        [{"name": "a"}, {"name": ""}, {"name": "b", "source": "s" * 65}, {"name": "c"}]
    )
    assert client.flush()

    refused = {(one.item["name"], one.status, one.code) for one in client.refused()}
    assert refused == {("", 400, "INVALID_BODY"), ("b", 400, "INVALID_BODY")}
    assert client.stats()[:5] == (0, 2, 2, 2, 0)


def test_query_returns_rows_with_what_the_service_says_about_them(client: Headrace) -> None:
    client.track_many([{"name": "a", "timestamp": NOON}, {"name": "b", "timestamp": NOON}])
    assert client.flush()

    result = client.query(
        {**COUNT, "groupBy": ["event_name"]},
        start_date=DAY,
        end_date="2026-05-02",
        order_by=[{"field": "event_name"}],
        totals=True,
    )

    assert result == [{"event_name": "a", "events": 1}, {"event_name": "b", "events": 1}]
    assert (result.meta["rowCount"], result.totals, result.others) == (2, {"events": 2}, None)


def buyers(client: Headrace) -> None:
    """Report three who look at prices, two of whom buy, one of them again on the next day."""
    for visitor, names in {"a": ("view", "buy"), "b": ("view", "buy"), "c": ("view",)}.items():
        client.track_many(
            {"name": name, "anonymous_id": visitor, "timestamp": NOON + timedelta(minutes=minute)}
            for minute, name in enumerate(names)
        )
    client.track("buy", anonymous_id="a", timestamp=NOON + timedelta(days=1))
    assert client.flush()


def named(name: str) -> dict[str, Any]:
    return {"filters": [{"field": "event_name", "operator": "eq", "value": name}]}


def test_funnel_counts_who_took_each_step(client: Headrace) -> None:
    buyers(client)
    steps = [{"name": "Look", **named("view")}, {"name": "Buy", **named("buy")}]

    result = client.funnel(steps, start_date=DAY, end_date=DAY, window=3600)

    assert result == [
        {"step": 1, "name": "Look", "count": 3, "rate": 1, "medianSeconds": None},
        {"step": 2, "name": "Buy", "count": 2, "rate": 2 / 3, "medianSeconds": 60},
    ]


def test_retention_counts_who_came_back(client: Headrace) -> None:
    buyers(client)

    result = client.retention(
        named("view"), named("buy"), granularity="daily", periods=2, start_date=DAY, end_date=DAY
    )

    assert result == [{"date": "2026-05-01", "size": 3, "returned": [2, 1]}]


def test_standard_queries_return_their_results_by_type(client: Headrace) -> None:
    client.page_view("/prices", anonymous_id="a", timestamp=NOON)
    assert client.flush()

    results = client.standard(["pages", "summary"], start_date=DAY, end_date=DAY)

    assert results["pages"] == [{"path": "/prices", "views": 1, "visitors": 1}]
    assert (results["summary"]["visitors"], results["summary"]["pageViews"]) == (1, 1)


def test_unknown_option_of_a_query_is_an_error(client: Headrace) -> None:
    options: Any = {"last_day": 7}
    with pytest.raises(TypeError, match="a custom query has no option 'last_day'"):
        client.query(COUNT, **options)


def test_result_can_be_read_as_an_arrow_stream(client: Headrace) -> None:
    client.track("a", timestamp=NOON)
    assert client.flush()

    stream = client.query(COUNT, start_date=DAY, end_date=DAY).arrow_stream()

    table: Any = read_ipc_stream(io.BytesIO(stream)).read_all()
    assert (table.column_names, table.column("events").to_pylist()) == (["events"], [1])


def test_wrong_query_is_refused_with_the_message_and_the_code(client: Headrace) -> None:
    with pytest.raises(QueryRefused) as refusal:
        client.query({**COUNT, "table": "event"}, last_days=7)
    error = refusal.value
    assert (error.status, error.code) == (400, "INVALID_TABLE")
    assert str(error).startswith('Invalid table "event"')


def test_query_without_a_service_is_unavailable(website: str) -> None:
    with (
        Headrace("http://127.0.0.1:9", "key", outbox=None) as client,
        pytest.raises(QueryUnavailable, match="no response"),
    ):
        client.query(COUNT, website_id=website, last_days=7)


VITAL = {"timestamp": NOON_MS, "path": "/", "metricName": "LCP", "metricValue": 1}
ERROR = {"timestamp": NOON_MS, "path": "/", "message": "m"}
BODIES: dict[str, tuple[str, Any]] = {
    "one event": ("/track", {"name": "a"}),
    "events": ("/track", [{"name": "a"}, {"name": "b"}]),
    "no events": ("/track", []),
    "no objects": ("/track", [5, None]),
    "no name": ("/track", [{"name": "a"}, {}, {"name": ""}, {"name": 5}, {"name": "n" * 257}]),
    "wrong texts": ("/track", {"name": "a", "source": "s" * 65, "path": 5, "anonymousId": "\0"}),
    "wrong properties": ("/track", [{"name": "a", "properties": one} for one in (5, {"a": "\0"})]),
    "timestamps": ("/track", [{"name": "a", "timestamp": one} for one in TIMESTAMPS]),
    "visitor": ("/track", [{"name": "a", "ip": "x"}, {"name": "a", "userAgent": 5}]),
    "too many errors": ("/track", [{}] * 60),
    "vitals": ("/vitals", [VITAL, {**VITAL, "metricName": "X", "metricValue": True}, {}]),
    "error": ("/errors", [ERROR]),
    "wrong errors": ("/errors", [{**ERROR, "message": 5, "lineno": "1", "level": "bad"}, {}]),
    "account": ("/identify", {"profileId": "acc-1"}),
    "accounts": ("/identify", [{"profileId": "acc-1"}]),
    "no account": ("/identify", {"profileId": "", "traits": []}),
    "unknown path": ("/tracks", {"name": "a"}),
    "unknown query": ("/v1/query/customs", {}),
    "query of no website": ("/v1/query/custom", {}),
}


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES)
def test_fake_server_answers_as_the_service_does(
    service: Service, website: str, path: str, body: Any
) -> None:
    headers = bearer(service.key("track:events", "read:data", home=website))
    real = service.post(path, body, headers=headers)
    with FakeHeadrace() as fake, service.session() as session:
        faked = session.post(fake.url + path, json=body, headers=headers, timeout=60)

    replies = [{**one.json(), "requestId": ""} for one in (faked, real)]
    assert (faked.status_code, replies[0]) == (real.status_code, replies[1])
