"""GET /v1/storage over a fake use case: who may ask, and what is returned."""

from typing import Any

import pytest
from msgspec import structs

from headrace.base.errors import StoreUnavailable
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    MANAGER_KEY,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    REQUEST_ID,
    FakeTenancySource,
    Harness,
    Response,
    bearer,
    query_error,
    status_and_body,
)

EVENTS = {
    "table": "events",
    "rows": 2,
    "expired": 1,
    "bytes": 300,
    "oldest": "2026-01-05T10:00:00.000Z",
    "newest": "2026-01-05T10:00:00.007Z",
    "retainDays": 30,
    "cutoff": "2026-01-05T00:00:00.000Z",
}
ERRORS = {
    "table": "errors",
    "rows": 0,
    "expired": 0,
    "bytes": 0,
    "oldest": None,
    "newest": None,
    "retainDays": 0,
    "cutoff": None,
}


def send(harness: Harness, website: str | None = PRIVATE, key: str | None = READER_KEY) -> Response:
    query = "" if website is None else f"website_id={website}"
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return harness.call("GET", "/v1/storage", query=query, headers=headers)


def described(*websites: str) -> dict[str, Any]:
    tables = EVENTS, ERRORS
    rows = [{"website": website, **table} for website in websites for table in tables]
    return {"success": True, "data": rows, "requestId": REQUEST_ID}


@pytest.mark.parametrize(
    ("website", "key"), [(PRIVATE, READER_KEY), (PUBLIC, None)], ids=["key", "public website"]
)
def test_storage_describes_each_table_of_the_website(website: str, key: str | None) -> None:
    response = send(Harness(), website, key)
    assert (response.status, response.json) == (200, described(website))
    assert response.headers["content-type"] == "application/json"
    assert "x-ratelimit-remaining" in response.headers


def test_without_a_website_storage_describes_those_that_the_key_reaches() -> None:
    harness = Harness()
    response = send(harness, None)
    assert (response.status, response.json) == (200, described(PRIVATE, PUBLIC))
    assert "x-ratelimit-remaining" in response.headers
    assert len(harness.limiter.callers) == 1
    assert send(Harness(), None, FOREIGN_KEY).json == described()


def test_a_key_that_is_limited_to_a_website_sees_the_storage_of_it_alone() -> None:
    harness = Harness()
    snapshot = harness.tenancy.newest
    limited = {
        secret_hash: structs.replace(key, website_ids=(PUBLIC,))
        for secret_hash, key in snapshot.keys.items()
    }
    harness.tenancy = FakeTenancySource(structs.replace(snapshot, keys=limited))
    assert send(harness, None).json == described(PUBLIC)


@pytest.mark.parametrize(
    ("website", "key", "status", "error"),
    [
        (PRIVATE, None, 401, "Authentication required"),
        (PRIVATE, "hr_unknown", 401, "Invalid API key"),
        (PRIVATE, MANAGER_KEY, 403, "API key missing read:data scope"),
        (None, None, 401, "Authentication required"),
        (None, "hr_unknown", 401, "Invalid API key"),
        (None, MANAGER_KEY, 403, "API key missing read:data scope"),
        (PRIVATE, FOREIGN_KEY, 404, "Website not found"),
    ],
)
def test_storage_is_refused_as_a_query_is(
    website: str | None, key: str | None, status: int, error: str
) -> None:
    response = send(Harness(), website, key)
    assert (response.status, response.json["error"]) == (status, error)


@pytest.mark.parametrize(
    ("query", "key", "status", "error", "code"),
    [
        ("websiteid=web_1", None, 401, "Authentication required", "UNAUTHORIZED"),
        (
            "website_ids=web_1",
            READER_KEY,
            400,
            'Invalid parameter "website_ids" (did you mean "website_id"?)',
            "INVALID_PARAMETER",
        ),
        (
            f"website_id={PRIVATE}&table=events",
            READER_KEY,
            400,
            'Invalid parameter "table" (one of website_id)',
            "INVALID_PARAMETER",
        ),
    ],
    ids=["without a key", "for the website", "beside the website"],
)
def test_storage_refuses_an_unknown_parameter(
    query: str, key: str | None, status: int, error: str, code: str
) -> None:
    headers = {} if key is None else bearer(key)
    response = Harness().call("GET", "/v1/storage", query=query, headers=headers)
    assert status_and_body(response) == (status, query_error(error, code))


def test_storage_is_unavailable_while_the_engine_is_away() -> None:
    harness = Harness()
    harness.storage.outcome = StoreUnavailable("the engine is away")
    response = send(harness)
    assert (response.status, response.json["code"]) == (503, "UNAVAILABLE")
