"""Standard queries over HTTP: every type equals its custom query, at a rate of its own."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.query.queries import alike, rows_of, send
from tests.oracle.standard import ALL_TYPES, Body, evaluate_standard

STANDARD = "/v1/query/standard"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36"
)


@pytest.fixture(scope="module")
def filled(service: Service) -> str:
    """A website with a visit each hour of four days, and a visitor who came just now."""
    website = service.website()
    now = datetime.now(UTC)
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(days=4)
    starts = [start + timedelta(hours=hour) for hour in range(90)] + [now - timedelta(seconds=30)]
    send(
        service,
        website,
        *(event for number, at in enumerate(starts) for event in session_events(number, at)),
    )
    vital = {"metricName": "LCP", "path": "/", "timestamp": starts[0].isoformat()}
    values = [{**vital, "metricValue": value} for value in (900, 1800.5, 4100)]
    send(service, website, *values, path="/vitals")
    failure = {"message": "x is undefined", "path": "/", "timestamp": starts[1].isoformat()}
    send(service, website, failure, {**failure, "message": "timeout"}, failure, path="/errors")
    return website


def session_events(number: int, at: datetime) -> list[Json]:
    common = {
        "anonymousId": f"visitor {number % 17}",
        "sessionId": f"session {number}",
        "ip": ("8.8.8.8", "1.1.1.1", "91.12.3.4")[number % 3],
        "userAgent": CHROME,
    }
    campaign = {"utm_source": "letter", "utm_campaign": "spring"} if number % 4 == 0 else {}
    referrer = {"referrer": "https://example.org/"} if number % 2 else {}
    return [
        {
            **common,
            "name": "screen_view" if view % 3 < 2 else "purchase",
            "timestamp": (at + timedelta(seconds=20 * view)).isoformat(),
            "properties": {"path": f"/{(number + view) % 12}", **campaign, **referrer},
        }
        for view in range(1 + number % 4)
    ]


def query_standard(service: Service, website: str, body: Json) -> Row:
    response = service.post(
        f"{STANDARD}?website_id={website}", body, headers=bearer(service.master)
    )
    assert response.status_code == 200, response.text
    answer: Row = response.json()
    return answer


@pytest.mark.parametrize("compare", [None, "previous_period"])
@pytest.mark.parametrize(
    "filters", [[], [{"field": "country", "operator": "in", "value": ["US", "DE"]}]], ids=len
)
def test_every_type_equals_its_custom_query(
    service: Service, filled: str, compare: str | None, filters: list[Json]
) -> None:
    today = datetime.now(UTC).date()
    body = {
        "startDate": str(today - timedelta(days=2)),
        "endDate": str(today + timedelta(days=1)),
        "timezone": "Europe/Berlin",
        "limit": 5,
        "compare": compare,
    }
    shared = [name for name in ALL_TYPES if name not in ("vitals", "errors", "online")]
    key = service.key("read:data")

    def run(custom: Body) -> list[Row]:
        path = f"/v1/query/custom?website_id={filled}"
        return rows_of(service.post(path, custom, headers=bearer(key)))

    for types, own in ((shared, {"filters": filters}), (["vitals", "errors"], {})):
        sent: Any = {**body, "types": types, **own}
        data = query_standard(service, filled, sent)["data"]
        assert list(data) == types
        assert alike(data, evaluate_standard(sent, run, 0))


def test_visitors_of_the_last_five_minutes_are_online_whatever_the_range(
    service: Service, filled: str
) -> None:
    send(service, filled, session_events(90, datetime.now(UTC))[0])  # the same one, once more
    body = {"types": ["online"], "startDate": "2020-01-01", "endDate": "2020-01-01"}
    assert query_standard(service, filled, body)["data"] == {"online": {"visitors": 1}}


def test_standard_queries_have_a_rate_of_their_own(service: Service, filled: str) -> None:
    key = service.key("read:data")
    body = {"types": ["summary", "pages"], "lastDays": 7}

    response = service.post(f"{STANDARD}?website_id={filled}", body, headers=bearer(key))

    assert response.headers["X-RateLimit-Limit"] == "240"
    assert response.headers["X-RateLimit-Remaining"] == "239"
    answer = response.json()
    assert answer["meta"]["rowCount"] == 1 + len(answer["data"]["pages"])
    assert answer["meta"]["rowsRead"] > 0
