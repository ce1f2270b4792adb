"""GET /v1/query/schema: the same for everybody, and of a website for callers that may query it."""

import pytest

from headrace.base.errors import QueryTimedOut
from headrace.query.schema.document import query_schema
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    WRITER_KEY,
    Harness,
    bearer,
    query_error,
    status_and_body,
)

PATH = "/v1/query/schema"
OF_WEBSITE = {
    **query_schema(),
    "eventNames": [{"name": "signup", "count": 2, "lastSeen": "2026-01-05T10:00:00.000Z"}],
    "properties": [{"key": "plan", "kinds": ["text", "number"], "count": 1}],
}


@pytest.mark.parametrize("query", ["", "website_id=", "x=1"])
def test_schema_without_a_website_needs_no_credentials_and_counts_nothing(query: str) -> None:
    harness = Harness()
    for headers in ({}, bearer(READER_KEY), bearer("hr_unknown")):
        response = harness.call("GET", PATH, query=query, headers=headers)
        assert status_and_body(response) == (200, query_schema())
        assert "x-ratelimit-limit" not in response.headers
    assert (harness.limiter.callers, harness.schemas.requests) == ([], [])


def test_schema_of_a_website_adds_its_names_and_keys_and_counts() -> None:
    harness = Harness()
    response = harness.call("GET", PATH, query=f"website_id={PRIVATE}", headers=bearer(READER_KEY))
    assert status_and_body(response) == (200, OF_WEBSITE)
    assert response.headers["x-ratelimit-remaining"] == "29"
    assert harness.limiter.callers == ["key:key_hr_reader"]
    assert harness.schemas.requests == [PRIVATE]


def test_schema_of_a_public_website_needs_no_credentials() -> None:
    harness = Harness()
    response = harness.call("GET", PATH, query=f"website_id={PUBLIC}")
    assert status_and_body(response) == (200, OF_WEBSITE)
    assert harness.limiter.callers == [f"website:{PUBLIC}:203.0.113.9"]


@pytest.mark.parametrize(
    ("website", "headers", "status", "error", "code"),
    [
        (PRIVATE, {}, 401, "Authentication required", "UNAUTHORIZED"),
        ("web_x", {}, 401, "Authentication required", "UNAUTHORIZED"),
        (PUBLIC, bearer("hr_unknown"), 401, "Invalid API key", "INVALID_API_KEY"),
        (
            PRIVATE,
            bearer(WRITER_KEY),
            403,
            "API key missing read:data scope",
            "MISSING_SCOPE",
        ),
        (PRIVATE, bearer(FOREIGN_KEY), 404, "Website not found", "WEBSITE_NOT_FOUND"),
        ("web_x", bearer(READER_KEY), 404, "Website not found", "WEBSITE_NOT_FOUND"),
    ],
)
def test_schema_of_a_website_is_refused_as_queries_are(
    website: str, headers: dict[str, str], status: int, error: str, code: str
) -> None:
    harness = Harness()
    response = harness.call("GET", PATH, query=f"website_id={website}", headers=headers)
    assert status_and_body(response) == (status, query_error(error, code))
    assert harness.schemas.requests == []


def test_schema_that_takes_too_long_is_504() -> None:
    harness = Harness()
    harness.schemas.outcome = QueryTimedOut()
    response = harness.call("GET", PATH, query=f"website_id={PRIVATE}", headers=bearer(READER_KEY))
    assert status_and_body(response) == (504, query_error("Query timed out", "QUERY_TIMEOUT"))
