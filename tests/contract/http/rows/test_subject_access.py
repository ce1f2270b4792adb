"""POST /v1/subject-access over a fake use case: bodies, rights, rates and replies."""

import json
from typing import Any

import pytest

from headrace.base.errors import StoreUnavailable
from headrace.model.erasure import Selector, SelectorKind
from headrace.ports.rate_limiter import RateLimitResult
from tests.contract.http.fakes import (
    INVALID_BODY,
    MANAGER_KEY,
    PRIVATE,
    READER_KEY,
    UNREADABLE_BODIES,
    Harness,
    Response,
)


def show(
    harness: Harness, body: object, *, query: str = f"website_id={PRIVATE}", key: str = MANAGER_KEY
) -> Response:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    content = json.dumps(body).encode()
    return harness.call("POST", "/v1/subject-access", content, query=query, headers=headers)


@pytest.mark.parametrize("lines", [[], [b'{"table":"events"}\n'], [b'{"a":1}\n', b'{"b":2}\n']])
def test_rows_of_the_subject_are_streamed_as_lines(lines: list[bytes]) -> None:
    harness = Harness()
    harness.subject_access.shown = lines
    response = show(harness, {"property": {"key": "email", "value": "a@example.com"}})
    assert (response.status, response.body) == (200, b"".join(lines))
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["cache-control"] == "no-store"
    selector = Selector(SelectorKind.PROPERTY, "a@example.com", "email")
    assert harness.subject_access.requests == [(PRIVATE, [selector], False)]


def test_rows_of_the_visitors_of_a_profile_are_shown_where_the_body_says_so() -> None:
    harness = Harness()
    assert show(harness, {"profileId": "p", "withVisitors": True}).status == 200
    selector = Selector(SelectorKind.PROFILE_ID, "p")
    assert harness.subject_access.requests == [(PRIVATE, [selector], True)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"anonymousId": ""},
        {"anonymousId": "a", "sessionId": "s"},
        {"anonymousId": "a", "dryRun": True},
        {"anonymousId": "a", "unknown": 1},
        {"anonymousId": "a", "withVisitors": True},
        {"profileId": "p", "withVisitors": 1},
        {"withVisitors": True},
    ],
)
def test_anything_but_one_selector_is_400(body: Any) -> None:
    harness = Harness()
    response = show(harness, body)
    assert (response.status, response.json["error"], response.json["code"]) == (
        400,
        "Invalid request body",
        "INVALID_BODY",
    )
    assert harness.subject_access.requests == []


@pytest.mark.parametrize("body", UNREADABLE_BODIES.values(), ids=UNREADABLE_BODIES)
def test_a_body_that_is_no_json_is_400(body: bytes) -> None:
    harness = Harness()
    headers = {"Authorization": f"Bearer {MANAGER_KEY}"}
    response = harness.call(
        "POST", "/v1/subject-access", body, query=f"website_id={PRIVATE}", headers=headers
    )
    assert (response.status, response.json) == (400, INVALID_BODY)
    assert harness.subject_access.requests == []


def test_a_key_without_the_scope_is_403() -> None:
    harness = Harness()
    response = show(harness, {"anonymousId": "a"}, key=READER_KEY)
    assert (response.status, response.json["error"]) == (403, "API key missing manage:data scope")
    assert harness.subject_access.requests == []


@pytest.mark.parametrize(("query", "status"), [("", 400), ("website_id=unknown", 404)])
def test_a_website_that_is_missing_or_unknown_is_refused(query: str, status: int) -> None:
    assert show(Harness(), {"anonymousId": "a"}, query=query).status == status


def test_a_store_that_is_away_is_503() -> None:
    harness = Harness()
    harness.subject_access.outcome = StoreUnavailable("the engine is away")
    assert show(harness, {"anonymousId": "a"}).status == 503


def test_too_many_calls_are_429() -> None:
    harness = Harness()
    harness.write_limiter.verdict = RateLimitResult(allowed=False, limit=60, remaining=0, reset_s=7)
    assert show(harness, {"anonymousId": "a"}).status == 429
