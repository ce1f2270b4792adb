"""The endpoints around the contract, and what is kept of each call."""

import json
import re
from typing import Any

import pytest

from headrace.base.errors import LogUnavailable, LogUncertain, OperatorError
from headrace.base.settings import Settings
from tests.contract.http_twins import (
    JSON_REPLY,
    READER,
    REQUEST_ID,
    World,
    bearer,
    ingestion_error,
    told,
)

PATHS = ["/health", "/ready", "/metrics", "/openapi.json", "/docs"]


def test_health_is_alive() -> None:
    reply = World().call("GET", "/health")

    assert told(reply) == (200, {"status": "alive"})
    assert reply.headers == {**JSON_REPLY, "content-length": "18", "cache-control": "no-store"}


def test_readiness_names_each_part() -> None:
    reply = World().call("GET", "/ready")

    assert told(reply) == (200, {"status": "ready", "parts": {"log": "ready", "engine": "ready"}})
    assert "retry-after" not in reply.headers


BROKEN = {
    "log": (False, True, {"log": "unavailable", "engine": "ready"}),
    "engine": (True, False, {"log": "ready", "engine": "unavailable"}),
    "both": (False, False, {"log": "unavailable", "engine": "unavailable"}),
}


@pytest.mark.parametrize(("log_up", "engine_up", "parts"), BROKEN.values(), ids=list(BROKEN))
def test_part_that_does_not_work_makes_the_whole_unavailable(
    log_up: bool, engine_up: bool, parts: dict[str, str]
) -> None:
    world = World()
    world.log_is_ready, world.store.ready = log_up, engine_up

    reply = world.call("GET", "/ready")

    assert told(reply) == (503, {"status": "unavailable", "parts": parts})
    assert reply.headers["retry-after"] == "1"


def test_metrics_count_calls_by_endpoint_and_status() -> None:
    world = World()
    world.call("POST", "/track", b"{}")
    world.call("POST", "/track", b"{}")
    world.call("GET", "/secret-path")

    reply = world.call("GET", "/metrics")

    samples = re.findall(
        r"^headrace_http_requests_total\{(.*)\} (.*)$", reply.body.decode(), re.MULTILINE
    )
    assert samples == [
        ('endpoint="track",status="200"', "2.0"),
        ('endpoint="unknown",status="404"', "1.0"),
    ]
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_other_method_is_405(path: str, method: str) -> None:
    reply = World().call(method, path)

    assert told(reply) == (405, ingestion_error("Method not allowed", "METHOD_NOT_ALLOWED"))
    assert reply.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/health", "/ready", "/openapi.json", "/docs", "/v1/query/schema"]
)
def test_head_is_answered_as_get_is(path: str) -> None:
    assert World().call("HEAD", path).headers == World().call("GET", path).headers


def test_schema_needs_no_credentials_and_does_not_count() -> None:
    world = World()

    reply = world.call("GET", "/v1/query/schema")

    assert (reply.status, list(reply.json)) == (
        200,
        ["tables", "aggregates", "operators", "limits"],
    )
    assert world.limiter.callers == []


def test_openapi_document_describes_this_services_limits() -> None:
    reply = World(Settings(max_items=7)).call("GET", "/openapi.json")

    content = reply.json["paths"]["/track"]["post"]["requestBody"]["content"]
    assert content["application/json"]["schema"]["anyOf"][0]["maxItems"] == 7


def test_docs_page_is_complete_in_itself() -> None:
    reply = World().call("GET", "/docs")

    page = reply.body.decode()
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha")
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:|openapi\.json")', page)


def test_trusted_proxy_that_is_no_network_is_named() -> None:
    with pytest.raises(OperatorError, match="'proxy' is neither an address nor a network"):
        World(Settings(trusted_proxies=("10.0.0.0/8", "proxy"))).app()


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


def test_every_call_is_one_line() -> None:
    world = World()

    world.call("GET", "/docs")
    world.call("POST", "/v1/query/custom", b"{}")
    world.call("GET", "/admin?token=secret")

    assert world.lines == [
        line("docs", 200, "GET"),
        line("query", 401),
        line("unknown", 404, "GET"),
    ]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/track"), ("GET", "/health"), ("GET", "/metrics")]
)
def test_routine_calls_are_worth_a_line_only_to_who_debugs(method: str, path: str) -> None:
    quiet, debugged = World(), World()

    quiet.call(method, path, b"{}")
    debugged.call(method, path, b"{}", debug=True)

    assert quiet.lines == []
    assert debugged.lines == [line(path[1:], 200, method, level="debug")]


def test_cause_of_our_own_failure_is_in_the_log_alone() -> None:
    world = World()
    world.acceptor.outcome = LogUnavailable("the disk is full")

    reply = world.call("POST", "/track", b"{}")

    assert b"disk" not in reply.body
    assert world.lines == [
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


def test_what_nobody_can_tell_is_500_and_no_refusal() -> None:
    world = World()
    world.acceptor.outcome = LogUncertain("Events cannot be written to disk: it is broken.")

    reply = world.call("POST", "/track", b"{}")

    assert (reply.status, reply.json) == (
        500,
        ingestion_error("Internal server error", "INTERNAL"),
    )
    assert world.lines[0]["reason"] == "Events cannot be written to disk: it is broken."


def test_unexpected_failure_is_logged_by_type_and_place_without_what_it_quotes() -> None:
    world = World()
    failure = ValueError("payload-of-a-caller")
    failure.__cause__ = KeyError("address-of-a-caller")
    world.acceptor.outcome = failure

    world.call("POST", "/track", b"{}")

    failed, answered = world.lines
    assert answered == line("track", 500)
    assert "in accept" in failed.pop("traceback")
    assert failed == {
        "level": "error",
        "event": "request_failed",
        "endpoint": "track",
        "request_id": REQUEST_ID,
        "error": "ValueError from KeyError",
    }


def test_no_line_carries_what_a_caller_sent() -> None:
    world = World()
    headers = {**bearer(READER), "User-Agent": "agent-of-a-caller", "X-Forwarded-For": "192.0.2.1"}

    world.call("POST", "/track", b"payload", query="website_id=web_secret", headers=headers)
    world.call("POST", "/v1/query/custom", b"payload", query="website_id=x", headers=headers)
    world.call("GET", "/path-of-a-caller", headers=headers, debug=True)

    lines = json.dumps(world.lines)
    sent = ["payload", "web_secret", READER, "agent", "192.0.2.1", "203.0.113.9", "path-of"]
    assert [text for text in sent if text in lines] == []
