"""/v1/session, and the session as a credential of everything below /v1."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.base.settings import Settings
from headrace.ports.rate_limiter import RateLimitResult
from headrace.ports.sessions import SESSION_MS
from tests.contract.http.fakes import (
    INVALID_BODY,
    NOW_MS,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    REQUEST_ID,
    SESSION,
    SIGN_IN_CODE,
    UNREADABLE_BODIES,
    WRITER_KEY,
    Harness,
    Response,
)

JSON = {"Content-Type": "application/json"}
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
COOKIE = {"Cookie": f"theme=dark; headrace_session={SESSION}"}
QUERY = {
    "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]},
    "lastDays": 7,
}
DESCRIBED = {
    "scopes": ["read:data"],
    "websites": [
        {"id": PRIVATE, "name": "private", "domain": ""},
        {"id": PUBLIC, "name": "public", "domain": ""},
    ],
    "expires": "2026-01-05T22:00:00.000Z",
}


def sign_in(harness: Harness, body: Any, **headers: str) -> Response:
    sent = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return harness.call("POST", "/v1/session", json.dumps(body).encode(), headers=sent)


def signed_in(body: Any = None) -> Harness:
    harness = Harness()
    assert sign_in(harness, body or {"key": READER_KEY}).status == 200
    return harness


def query(harness: Harness, website: str = PRIVATE, **headers: str) -> Response:
    sent = {**JSON, **COOKIE, **{name.replace("_", "-"): each for name, each in headers.items()}}
    body = json.dumps(QUERY).encode()
    return harness.call(
        "POST", "/v1/query/custom", body, query=f"website_id={website}", headers=sent
    )


def refusal(status: int, message: str, code: str) -> dict[str, Any]:
    assert status >= 400
    return {"success": False, "error": message, "code": code, "requestId": REQUEST_ID}


def test_a_key_signs_in_for_twelve_hours() -> None:
    assert NOW_MS + SESSION_MS == 1_767_650_400_000
    response = sign_in(Harness(), {"key": READER_KEY})
    assert (response.status, response.json) == (
        200,
        {"success": True, "data": DESCRIBED, "requestId": REQUEST_ID},
    )
    assert response.headers["set-cookie"] == (
        f"headrace_session={SESSION}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
    )
    assert response.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in response.headers


def test_behind_tls_the_cookie_is_of_the_host_alone() -> None:
    harness = Harness(Settings(trusted_proxies=("203.0.113.0/24",)))
    response = sign_in(harness, {"code": SIGN_IN_CODE}, X_Forwarded_Proto="https")
    assert response.headers["set-cookie"] == (
        f"__Host-headrace_session={SESSION}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; "
        "Secure"
    )
    plain = sign_in(Harness(), {"code": SIGN_IN_CODE}, X_Forwarded_Proto="https")  # by anybody
    assert plain.headers["set-cookie"].startswith("headrace_session=")


@pytest.mark.parametrize(
    "body",
    [{}, [], {"key": 1}, {"key": READER_KEY, "code": SIGN_IN_CODE}, {"key": READER_KEY, "a": 1}],
    ids=json.dumps,
)
def test_a_body_has_a_key_or_a_code(body: Any) -> None:
    response = sign_in(Harness(), body)
    assert response.status == 400
    assert response.json == refusal(400, "Invalid request body", "INVALID_BODY")


@pytest.mark.parametrize("body", UNREADABLE_BODIES.values(), ids=UNREADABLE_BODIES)
def test_a_body_that_is_no_json_is_400(body: bytes) -> None:
    response = Harness().call("POST", "/v1/session", body, headers=JSON)
    assert (response.status, response.json) == (400, INVALID_BODY)


def test_a_form_cannot_sign_in() -> None:
    headers = {"Content-Type": "text/plain"}
    body = json.dumps({"key": READER_KEY}).encode()
    response = Harness().call("POST", "/v1/session", body, headers=headers)
    assert response.status == 415


@pytest.mark.parametrize("body", [{"key": "hr_wrong"}, {"code": "wrong"}, {"code": ""}])
def test_what_begins_no_session_is_401_and_counts(body: Any) -> None:
    harness = Harness()
    response = sign_in(harness, body)
    assert response.status == 401
    assert response.json == refusal(401, "Invalid sign-in", "INVALID_SIGN_IN")
    assert harness.sign_in_limiter.callers == ["sign-in:203.0.113.9"]


def test_a_sign_in_that_succeeds_does_not_count() -> None:
    assert signed_in().sign_in_limiter.callers == []


def test_after_ten_failures_an_address_waits() -> None:
    harness = Harness()
    harness.sign_in_limiter.verdict = RateLimitResult(
        allowed=False, limit=10, remaining=0, reset_s=7
    )
    response = sign_in(harness, {"code": "wrong"})
    assert (response.status, response.headers["retry-after"]) == (429, "7")


def test_a_key_that_may_not_read_does_not_sign_in() -> None:
    harness = Harness()
    response = sign_in(harness, {"key": WRITER_KEY})
    assert response.status == 403
    assert response.json == refusal(403, "API key missing read:data scope", "MISSING_SCOPE")
    assert harness.sign_in_limiter.callers == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": ""}, 200),
        ({"Sec_Fetch_Site": "same-origin", "Origin": "http://service.example"}, 200),
        ({"Host": "service.example:80", "Origin": "http://service.example"}, 200),
        ({"Host": "service.example", "Origin": "https://service.example"}, 403),
        ({"Host": "service.example", "Origin": "http://service.example:81"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Origin": "http://service.example"}, 403),
    ],
)
def test_only_programs_and_the_page_sign_in(headers: dict[str, str], status: int) -> None:
    assert sign_in(Harness(), {"key": READER_KEY}, **headers).status == status


def test_a_session_is_described_to_the_page() -> None:
    harness = signed_in()
    response = harness.call("GET", "/v1/session", headers={**COOKIE, **SAME_ORIGIN})
    assert (response.status, response.json["data"]) == (200, DESCRIBED)
    for headers in ({}, SAME_ORIGIN, COOKIE, {**COOKIE, "Sec-Fetch-Site": "same-site"}):
        response = harness.call("GET", "/v1/session", headers=headers)
        assert response.status == 401
        assert response.json == refusal(401, "Authentication required", "UNAUTHORIZED")


def test_signing_out_ends_the_session_and_clears_the_cookie() -> None:
    harness = signed_in()
    response = harness.call("DELETE", "/v1/session", headers={**COOKIE, **SAME_ORIGIN})
    assert (response.status, response.body, harness.sessions.ended) == (204, b"", ["ses_1"])
    assert response.headers["set-cookie"] == (
        "headrace_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    )
    assert harness.call("DELETE", "/v1/session", headers=SAME_ORIGIN).status == 204


def test_a_session_queries_as_its_key_does_with_a_rate_of_its_own() -> None:
    harness = signed_in()
    assert query(harness, Sec_Fetch_Site="same-origin").status == 200
    assert query(harness, Host="a.example", Origin="http://a.example").status == 200
    assert harness.limiter.callers == ["key:ses_1", "key:ses_1"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": ""},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": "same-site"},
        {"Host": "a.example", "Origin": "http://b.example"},
    ],
)
def test_a_cookie_that_must_not_count_is_as_if_there_were_none(headers: dict[str, str]) -> None:
    harness = signed_in()
    assert query(harness, **headers).status == 401
    assert query(harness, PUBLIC, **headers).status == 200
    assert harness.limiter.callers == [f"website:{PUBLIC}:203.0.113.9"]


def test_a_key_in_a_header_wins() -> None:
    harness = signed_in()
    response = query(harness, Sec_Fetch_Site="same-origin", Authorization="Bearer hr_wrong")
    assert response.json == refusal(401, "Invalid API key", "INVALID_API_KEY")


def test_the_secret_of_a_session_is_no_key() -> None:
    response = query(signed_in(), Authorization=f"Bearer {SESSION}")
    assert response.json == refusal(401, "Invalid API key", "INVALID_API_KEY")


def test_a_session_that_is_over_is_as_if_there_were_none() -> None:
    harness = signed_in()
    ((secret_hash, session),) = harness.tenancy.newest.sessions.items()
    ended = replace(session, expires_ms=NOW_MS)
    harness.tenancy.newest = replace(harness.tenancy.newest, sessions={secret_hash: ended})
    harness.tenancy.snapshot = harness.tenancy.newest
    assert query(harness, Sec_Fetch_Site="same-origin").status == 401


def test_a_session_manages_data_where_it_has_the_scope() -> None:
    headers = {**COOKIE, **SAME_ORIGIN}
    path, of_website = "/v1/erasures", f"website_id={PRIVATE}"
    manager = signed_in({"code": SIGN_IN_CODE})
    assert manager.call("GET", path, query=of_website, headers=headers).status == 200
    assert signed_in().call("GET", path, query=of_website, headers=headers).status == 403
    unsigned = Harness().call("GET", path, query=f"website_id={PUBLIC}", headers=headers)
    assert unsigned.json == refusal(401, "Authentication required", "UNAUTHORIZED")
