"""The rate limit of queries: thirty a minute by default."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

import pytest
import requests

from headrace.base.settings import load_settings
from testing.service import PATIENT_QUERIES, Key, Service, bearer, running_service
from tests.e2e.query.queries import body

CUSTOM = "/v1/query/custom"
LIMIT = 5
RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
ENGINE_TIMEOUT_S = 1
"""A worker that waits longer for the engine counts alone, up to its share of the limit."""

Parameters = ParamSpec("Parameters")
waits_s: list[float] = []
"""How long each request has taken."""


def note_wait(response: requests.Response, **_: Any) -> None:
    waits_s.append(response.elapsed.total_seconds())


def counted_by_the_engine(test: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Repeat a test that failed where a busy machine let a worker count alone."""

    @wraps(test)
    def repeated(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        while True:
            waits_s.clear()
            try:
                return test(*arguments, **named)
            except AssertionError:
                if max(waits_s) < ENGINE_TIMEOUT_S:
                    raise

    return repeated


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a rate limit of five queries a minute."""
    settings = {**PATIENT_QUERIES, "HEADRACE_QUERY_RATE_LIMIT": str(LIMIT)}
    folder = tmp_path_factory.mktemp("limited")
    with running_service(folder / "data", workers=2, settings=settings) as own:
        own.http.hooks["response"].append(note_wait)
        yield own


@pytest.fixture(scope="module")
def site(limited: Service) -> str:
    return limited.website()


@pytest.fixture(scope="module")
def open_site(limited: Service) -> str:
    return limited.website(public=True)


def run_query(service: Service, website: str, key: Key | None = None) -> requests.Response:
    """Query on a new connection, so that any worker may respond."""
    headers = {**(bearer(key) if key else {}), "Connection": "close"}
    return service.post(f"{CUSTOM}?website_id={website}", body(), headers=headers)


def statuses(service: Service, website: str, key: Key | None, times: int) -> list[int]:
    return [run_query(service, website, key).status_code for _ in range(times)]


@counted_by_the_engine
def test_responses_count_down_and_then_reject(limited: Service, site: str) -> None:
    key = limited.key("read:data")
    responses = [run_query(limited, site, key) for _ in range(LIMIT + 2)]
    assert [response.status_code for response in responses] == [200] * LIMIT + [429] * 2
    rate_headers = [
        (response.headers["X-RateLimit-Limit"], response.headers["X-RateLimit-Remaining"])
        for response in responses
    ]
    assert rate_headers == [("5", str(left)) for left in (4, 3, 2, 1, 0, 0, 0)]
    resets = [int(response.headers["X-RateLimit-Reset"]) for response in responses]
    assert all(0 < reset <= 60 for reset in resets)


@counted_by_the_engine
def test_rate_limited_response_has_retry_after(limited: Service, site: str) -> None:
    key = limited.key("read:data")
    statuses(limited, site, key, LIMIT)
    response = run_query(limited, site, key)
    full_body = response.json()
    assert full_body.pop("requestId")
    assert (response.status_code, full_body) == (
        429,
        {"success": False, "error": "Rate limit exceeded", "code": "RATE_LIMITED"},
    )
    assert 0 < int(response.headers["Retry-After"]) <= 60


@counted_by_the_engine
def test_each_key_has_a_window_of_its_own(limited: Service, site: str) -> None:
    one, another = limited.key("read:data"), limited.key("read:data")
    assert statuses(limited, site, one, LIMIT + 1) == [200] * LIMIT + [429]
    assert statuses(limited, site, another, 1) == [200]


@counted_by_the_engine
def test_key_has_one_window_for_all_websites(limited: Service, site: str, open_site: str) -> None:
    key = limited.key("read:data")
    assert statuses(limited, site, key, 3) + statuses(limited, open_site, key, 3) == [
        *[200] * LIMIT,
        429,
    ]


@counted_by_the_engine
def test_without_a_key_each_website_has_a_window(limited: Service) -> None:
    one, another = (limited.website(public=True) for _ in range(2))
    assert statuses(limited, one, None, LIMIT + 1) == [200] * LIMIT + [429]
    assert statuses(limited, another, None, 1) == [200]
    assert statuses(limited, one, limited.key("read:data"), 1) == [200]


@counted_by_the_engine
def test_rejected_queries_count_and_carry_the_headers(limited: Service, site: str) -> None:
    key = limited.key("read:data")
    headers = bearer(key)
    responses = [
        limited.post(f"{CUSTOM}?website_id={site}", data=b"{", headers=headers),
        limited.post(f"{CUSTOM}?website_id=web_unknown", body(), headers=headers),
        limited.post(CUSTOM, body(), headers=headers),
        limited.post(f"{CUSTOM}?website_id={site}", body(limit=0), headers=headers),
    ]
    assert [
        (response.status_code, response.headers["X-RateLimit-Remaining"]) for response in responses
    ] == [
        (400, "4"),
        (404, "3"),
        (400, "2"),
        (400, "1"),
    ]
    assert statuses(limited, site, key, 2) == [200, 429]


@counted_by_the_engine
def test_limit_comes_before_website_id_and_after_scope(limited: Service, site: str) -> None:
    key, writer = limited.key("read:data"), limited.key("track:events")
    statuses(limited, site, key, LIMIT)
    assert limited.post(CUSTOM, data=b"{", headers=bearer(key)).status_code == 429
    assert run_query(limited, "web_unknown", key).status_code == 429
    responses = [run_query(limited, site, writer) for _ in range(LIMIT + 2)]
    assert [
        (response.status_code, {name: response.headers.get(name) for name in RATE_HEADERS})
        for response in responses
    ] == [(403, dict(zip(RATE_HEADERS, ("5", "5", "0"), strict=True)))] * (LIMIT + 2)


@counted_by_the_engine
def test_schema_does_not_count(limited: Service, site: str) -> None:
    key = limited.key("read:data")
    headers = bearer(key)
    responses = [limited.get("/v1/query/schema", headers=headers) for _ in range(LIMIT + 2)]
    assert {response.status_code for response in responses} == {200}
    assert run_query(limited, site, key).headers["X-RateLimit-Remaining"] == "4"


@counted_by_the_engine
def test_schema_of_a_website_counts(limited: Service, site: str) -> None:
    key = limited.key("read:data")
    path = f"/v1/query/schema?website_id={site}"
    assert limited.get(path, headers=bearer(key)).headers["X-RateLimit-Remaining"] == "4"
    assert run_query(limited, site, key).headers["X-RateLimit-Remaining"] == "3"


def test_thirty_queries_a_minute_are_allowed_by_default(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    default = load_settings(environment={}).query_rate_limit
    settings = {**PATIENT_QUERIES, "HEADRACE_QUERY_RATE_LIMIT": str(default)}
    with running_service(tmp_path_factory.mktemp("default") / "data", settings=settings) as own:
        website, key = own.website(), own.key("read:data")
        assert statuses(own, website, key, 31) == [200] * 30 + [429]
