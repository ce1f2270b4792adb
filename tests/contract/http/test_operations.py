"""The operations and documentation endpoints, and the access log."""

import json
import re
from typing import Any

import pytest

from headrace.base.errors import (
    DurabilityUnknown,
    LogUnavailable,
    OperatorError,
    StoreAckTimeout,
)
from headrace.base.settings import Settings
from headrace.ports.store import StoreStatus
from tests.contract.http.fakes import (
    JSON_HEADERS,
    READER_KEY,
    REQUEST_ID,
    Harness,
    bearer,
    ingestion_error,
    status_and_body,
)

PATHS = ["/health", "/ready", "/metrics", "/openapi.json", "/docs"]


def test_health_is_alive() -> None:
    response = Harness().call("GET", "/health")

    assert status_and_body(response) == (200, {"status": "alive"})
    assert response.headers == {**JSON_HEADERS, "content-length": "18", "cache-control": "no-store"}


def test_readiness_lists_each_component() -> None:
    response = Harness().call("GET", "/ready")

    assert status_and_body(response) == (
        200,
        {"status": "ready", "parts": {"log": "ready", "engine": "ready"}},
    )
    assert "retry-after" not in response.headers


BROKEN = {
    "log": (False, StoreStatus.READY, {"log": "unavailable", "engine": "ready"}),
    "engine": (True, StoreStatus.UNAVAILABLE, {"log": "ready", "engine": "unavailable"}),
    "incomplete store": (
        True,
        StoreStatus.INCOMPLETE,
        {"log": "ready", "engine": "incomplete"},
    ),
    "both": (
        False,
        StoreStatus.UNAVAILABLE,
        {"log": "unavailable", "engine": "unavailable"},
    ),
}


@pytest.mark.parametrize(("log_up", "store_status", "parts"), BROKEN.values(), ids=list(BROKEN))
def test_failing_component_makes_the_service_unavailable(
    log_up: bool, store_status: StoreStatus, parts: dict[str, str]
) -> None:
    harness = Harness()
    harness.log_is_ready, harness.store.store_status = log_up, store_status

    response = harness.call("GET", "/ready")

    assert status_and_body(response) == (503, {"status": "unavailable", "parts": parts})
    assert response.headers["retry-after"] == "1"


def test_metrics_count_requests_by_endpoint_and_status() -> None:
    harness = Harness()
    harness.call("POST", "/track", b"{}")
    harness.call("POST", "/track", b"{}")
    harness.call("GET", "/secret-path")

    response = harness.call("GET", "/metrics")

    samples = re.findall(
        r"^headrace_http_requests_total\{(.*)\} (.*)$", response.body.decode(), re.MULTILINE
    )
    assert samples == [
        ('endpoint="track",status="200"', "2.0"),
        ('endpoint="unknown",status="404"', "1.0"),
    ]
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_other_method_is_405(path: str, method: str) -> None:
    response = Harness().call(method, path)

    assert status_and_body(response) == (
        405,
        ingestion_error("Method not allowed", "METHOD_NOT_ALLOWED"),
    )
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/health", "/ready", "/openapi.json", "/docs", "/v1/query/schema"]
)
def test_head_is_answered_as_get_is(path: str) -> None:
    assert Harness().call("HEAD", path).headers == Harness().call("GET", path).headers


def test_schema_needs_no_credentials_and_does_not_count() -> None:
    harness = Harness()

    response = harness.call("GET", "/v1/query/schema")

    assert (response.status, list(response.json)) == (
        200,
        ["tables", "aggregates", "operators", "limits"],
    )
    assert harness.limiter.callers == []


def test_openapi_document_describes_this_services_limits() -> None:
    response = Harness(Settings(max_items=7)).call("GET", "/openapi.json")

    content = response.json["paths"]["/track"]["post"]["requestBody"]["content"]
    assert content["application/json"]["schema"]["anyOf"][0]["maxItems"] == 7


def test_docs_page_is_self_contained() -> None:
    response = Harness().call("GET", "/docs")

    page = response.body.decode()
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"].startswith(
        "default-src 'none'; style-src 'sha"
    )
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:|openapi\.json")', page)


def test_invalid_trusted_proxy_is_named() -> None:
    with pytest.raises(OperatorError, match="'proxy' is neither an address nor a network"):
        Harness(Settings(trusted_proxies=("10.0.0.0/8", "proxy"))).app()


# Log lines.


def line(endpoint: str, status: int, method: str = "POST", level: str = "info") -> dict[str, Any]:
    return {
        "level": level,
        "event": "request",
        "method": method,
        "endpoint": endpoint,
        "status": status,
        "duration_ms": 0.0,
        "request_id": REQUEST_ID,
    }


def test_every_request_is_one_log_line() -> None:
    harness = Harness()

    harness.call("GET", "/docs")
    harness.call("POST", "/v1/query/custom", b"{}")
    harness.call("GET", "/admin?token=secret")

    assert harness.lines == [
        line("docs", 200, "GET"),
        line("query", 401),
        line("unknown", 404, "GET"),
    ]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/track"), ("GET", "/health"), ("GET", "/metrics")]
)
def test_routine_requests_are_logged_at_debug_level_only(method: str, path: str) -> None:
    quiet, debugged = Harness(), Harness()

    quiet.call(method, path, b"{}")
    debugged.call(method, path, b"{}", debug=True)

    assert quiet.lines == []
    assert debugged.lines == [line(path[1:], 200, method, level="debug")]


def test_internal_error_cause_is_only_in_the_log() -> None:
    harness = Harness()
    harness.acceptor.outcome = LogUnavailable("the disk is full")

    response = harness.call("POST", "/track", b"{}")

    assert b"disk" not in response.body
    assert harness.lines == [
        {
            "level": "error",
            "event": "request_failed",
            "endpoint": "track",
            "request_id": REQUEST_ID,
            "error": "LogUnavailable",
            "reason": "the disk is full",
        },
        line("track", 503),
    ]


@pytest.mark.parametrize("error", [DurabilityUnknown, StoreAckTimeout])
def test_unknown_durability_is_500(error: type[DurabilityUnknown | StoreAckTimeout]) -> None:
    harness = Harness()
    harness.acceptor.outcome = error("Events cannot be written to disk: it is broken.")

    response = harness.call("POST", "/track", b"{}")

    assert (response.status, response.json) == (
        500,
        ingestion_error("Internal server error", "INTERNAL"),
    )
    assert harness.lines[0]["reason"] == "Events cannot be written to disk: it is broken."


def test_unexpected_error_is_logged_by_type_and_location_without_values() -> None:
    harness = Harness()
    failure = ValueError("payload-of-a-client")
    failure.__cause__ = KeyError("address-of-a-client")
    harness.acceptor.outcome = failure

    harness.call("POST", "/track", b"{}")

    failed, answered = harness.lines
    assert answered == line("track", 500)
    assert "in accept" in failed.pop("traceback")
    assert failed == {
        "level": "error",
        "event": "request_failed",
        "endpoint": "track",
        "request_id": REQUEST_ID,
        "error": "ValueError from KeyError",
    }


def test_log_lines_contain_no_client_data() -> None:
    harness = Harness()
    headers = {
        **bearer(READER_KEY),
        "User-Agent": "agent-of-a-client",
        "X-Forwarded-For": "192.0.2.1",
    }

    harness.call("POST", "/track", b"payload", query="website_id=web_secret", headers=headers)
    harness.call("POST", "/v1/query/custom", b"payload", query="website_id=x", headers=headers)
    harness.call("GET", "/path-of-a-client", headers=headers, debug=True)

    lines = json.dumps(harness.lines)
    sent = ["payload", "web_secret", READER_KEY, "agent", "192.0.2.1", "203.0.113.9", "path-of"]
    assert [text for text in sent if text in lines] == []
