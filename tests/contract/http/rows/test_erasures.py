"""/v1/erasures over a fake use case: bodies, rights, rates and replies."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.base.errors import StoreUnavailable
from headrace.model.erasure import Selector, SelectorKind
from headrace.ports.rate_limiter import RateLimitResult
from tests.contract.http.fakes import (
    INVALID_BODY,
    MANAGER_KEY,
    PRIVATE,
    READER_KEY,
    REQUEST_ID,
    UNREADABLE_BODIES,
    Harness,
    Response,
)

MANAGER = {"Authorization": f"Bearer {MANAGER_KEY}", "Content-Type": "application/json"}


def erase(harness: Harness, body: object, *, query: str = f"website_id={PRIVATE}") -> Response:
    return harness.call(
        "POST", "/v1/erasures", json.dumps(body).encode(), query=query, headers=MANAGER
    )


def get(harness: Harness, path: str, query: str = "") -> Response:
    return harness.call("GET", path, query=query, headers=MANAGER)


@pytest.mark.parametrize(
    ("body", "selector"),
    [
        ({"anonymousId": "a"}, Selector(SelectorKind.ANONYMOUS_ID, "a")),
        ({"sessionId": "s"}, Selector(SelectorKind.SESSION_ID, "s")),
        ({"eventId": "e", "dryRun": False}, Selector(SelectorKind.EVENT_ID, "e")),
        ({"property": {"key": "n", "value": 1}}, Selector(SelectorKind.PROPERTY, 1, "n")),
        ({"property": {"key": "n", "value": True}}, Selector(SelectorKind.PROPERTY, True, "n")),
        (
            {"property": {"key": "k" * 256, "value": ""}},
            Selector(SelectorKind.PROPERTY, "", "k" * 256),
        ),
    ],
)
def test_an_erasure_is_202_with_its_receipt(body: object, selector: Selector) -> None:
    harness = Harness()
    response = erase(harness, body)
    assert response.status == 202
    (request,) = harness.erasures.requests
    assert request.selectors == (selector,)
    assert not request.dry_run
    assert response.json["requestId"] == REQUEST_ID
    data = response.json["data"]
    assert data == {
        "id": "era_1",
        "state": "pending",
        "requested": data["requested"],
        "answersClean": data["requested"],
        "done": None,
        "by": request.by,
        "website": PRIVATE,
        "selector": selector.kind.value,
        "subject": "hmac-sha256:ab",
        "rows": {"events": 1, "quarantine": 0},
        "byHand": [],
        "lastError": None,
    }


def test_a_dry_run_is_200_with_the_rows() -> None:
    harness = Harness()
    response = erase(harness, {"profileId": "p", "dryRun": True, "withVisitors": True})
    assert response.status == 200
    assert response.json["data"] == {"dryRun": True, "rows": {"events": 1, "quarantine": 0}}
    assert harness.erasures.requests[0].with_visitors


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "text",
        {"anonymousId": ""},
        {"anonymousId": 1},
        {"anonymousId": None},
        {"anonymousId": "a", "sessionId": "s"},
        {"anonymousId": "a", "unknown": 1},
        {"anonymousId": "a", "dryRun": "yes"},
        {"anonymousId": "a", "dryRun": None},
        {"anonymousId": "a", "withVisitors": True},
        {"website": "web_1"},
        {"property": {"key": "k"}},
        {"property": {"key": "k", "value": None}},
        {"property": {"key": "k", "value": [1]}},
        {"property": {"key": "", "value": 1}},
        {"property": {"key": "k" * 257, "value": 1}},
        {"property": {"key": "k", "value": 1, "more": 1}},
        {"property": "k=1"},
    ],
)
def test_anything_else_is_400(body: Any) -> None:
    harness = Harness()
    response = erase(harness, body)
    assert response.status == 400
    assert (response.json["error"], response.json["code"]) == (
        "Invalid request body",
        "INVALID_BODY",
    )
    assert harness.erasures.requests == []


@pytest.mark.parametrize("body", UNREADABLE_BODIES.values(), ids=UNREADABLE_BODIES)
def test_a_body_that_is_no_json_is_400(body: bytes) -> None:
    harness = Harness()
    response = harness.call(
        "POST", "/v1/erasures", body, query=f"website_id={PRIVATE}", headers=MANAGER
    )
    assert (response.status, response.json) == (400, INVALID_BODY)
    assert harness.erasures.requests == []


def test_an_engine_that_is_away_is_503() -> None:
    harness = Harness()
    harness.erasures.outcome = StoreUnavailable("the engine is away")
    assert erase(harness, {"anonymousId": "a"}).status == 503


def test_too_many_erasures_are_429_before_the_website_is_looked_at() -> None:
    harness = Harness()
    harness.write_limiter.verdict = RateLimitResult(allowed=False, limit=60, remaining=0, reset_s=7)
    response = erase(harness, {"anonymousId": "a"}, query="")
    assert response.status == 429
    assert erase(Harness(), {"anonymousId": "a"}, query="").status == 400


def test_receipts_are_listed_newest_first_and_shown_by_id() -> None:
    harness = Harness()
    erase(harness, {"anonymousId": "a"})
    erase(harness, {"anonymousId": "b"})
    listed = get(harness, "/v1/erasures", f"website_id={PRIVATE}").json["data"]
    assert [one["id"] for one in listed] == ["era_2", "era_1"]
    assert get(harness, "/v1/erasures/era_1").json["data"] == listed[1]
    assert get(harness, "/v1/erasures/era_3").status == 404


def test_an_erasure_of_a_website_out_of_reach_is_unknown() -> None:
    harness = Harness()
    erase(harness, {"anonymousId": "a"})
    (kept,) = harness.erasures.kept
    harness.erasures.kept = [replace(kept, website_id="web_other")]
    assert get(harness, "/v1/erasures/era_1").status == 404
    assert get(harness, "/v1/erasures/era_1").json["error"] == "Not found"


@pytest.mark.parametrize("path", ["/v1/erasures", "/v1/erasures/era_1"])
def test_keys_without_the_scope_are_403_and_no_key_is_401(path: str) -> None:
    harness = Harness()
    query = f"website_id={PRIVATE}"
    assert harness.call("GET", path, query=query).status == 401
    response = harness.call("GET", path, query=query, headers={"x-api-key": READER_KEY})
    assert (response.status, response.json["error"]) == (
        403,
        "API key missing manage:data scope",
    )


def test_other_methods_are_405() -> None:
    response = Harness().call("PUT", "/v1/erasures", b"{}", headers=MANAGER)
    assert response.status == 405
