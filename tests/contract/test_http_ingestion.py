"""The ingestion endpoints over a twin of the use case: what it is asked, and what is replied."""

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.base.errors import (
    Fault,
    InvalidApiKey,
    InvalidBody,
    LogUnavailable,
    MissingScope,
    WebsiteNotFound,
)
from headrace.base.settings import Settings
from headrace.ingest.receive.decode import Endpoint
from headrace.ingest.receive.service import Accepted, IngestRequest
from headrace.model.tenancy import Credentials
from tests.contract.http_twins import (
    JSON_REPLY,
    REQUEST_ID,
    World,
    exchange,
    ingestion_error,
    make_scope,
    told,
)

PATHS = [endpoint.value for endpoint in Endpoint]
ORIGIN = "https://shop.example"
CORS = {
    "access-control-allow-origin": ORIGIN,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "X-Request-Id, Retry-After",
    "vary": "Origin",
}
SMALL = Settings(max_body_bytes=100, max_decoded_bytes=200)


def request_of(endpoint: Endpoint = Endpoint.TRACK, **fields: Any) -> IngestRequest:
    asked: dict[str, Any] = {
        "body": b"{}",
        "credentials": Credentials(),
        "address": "203.0.113.9",
        **fields,
    }
    return IngestRequest(endpoint=endpoint, **asked)


REPLIES: Mapping[Endpoint, tuple[Accepted, Any]] = {
    Endpoint.TRACK: (
        Accepted(3),
        {"status": "success", "type": "custom_event", "count": 3},
    ),
    Endpoint.VITALS: (Accepted(2), {"status": "success", "type": "web_vitals", "count": 2}),
    Endpoint.ERRORS: (Accepted(0), {"status": "success", "type": "error", "count": 0}),
    Endpoint.BATCH: (
        Accepted(2, ("e1", None)),
        {
            "status": "success",
            "batch": True,
            "processed": 2,
            "results": [
                {"status": "success", "type": "track", "eventId": "e1"},
                {"status": "success", "type": "track", "eventId": None},
            ],
        },
    ),
    Endpoint.PAGE: (Accepted(1), {"status": "success", "type": "track"}),
}


@pytest.mark.parametrize("endpoint", Endpoint)
def test_accepted_request_is_told_as_its_endpoint_does(endpoint: Endpoint) -> None:
    world = World()
    world.acceptor.outcome, expected = REPLIES[endpoint]

    reply = world.call("POST", endpoint.value, b"{}")

    assert told(reply) == (200, expected)
    assert reply.headers == {**JSON_REPLY, "content-length": str(len(reply.body))}
    assert world.acceptor.requests == [request_of(endpoint)]


def test_everything_that_a_call_says_reaches_the_use_case() -> None:
    world = World()

    world.call(
        "POST",
        "/track",
        b'{"name":"a"}',
        query="client_id=web_1",
        headers={
            "Authorization": "Bearer hr_1",
            "Origin": ORIGIN,
            "User-Agent": "Browser/1",
            "Idempotency-Key": "once",
        },
    )

    credentials = Credentials(api_key="hr_1", website_id="web_1", origin=ORIGIN)
    assert world.acceptor.requests == [
        request_of(
            body=b'{"name":"a"}',
            credentials=credentials,
            user_agent="Browser/1",
            idempotency_key="once",
        )
    ]


def test_empty_idempotency_key_and_origin_count_as_none() -> None:
    world = World()

    world.call("POST", "/track", b"{}", headers={"Idempotency-Key": "", "Origin": ""})

    assert world.acceptor.requests == [request_of()]


def test_address_is_found_behind_a_trusted_proxy() -> None:
    world = World(Settings(trusted_proxies=("203.0.113.0/24",)))

    world.call("POST", "/track", b"{}", headers={"X-Forwarded-For": "198.51.100.7"})

    assert world.acceptor.requests == [request_of(address="198.51.100.7")]


REFUSALS: dict[str, tuple[Exception, int, Any, dict[str, str]]] = {
    "body": (
        InvalidBody((Fault(3, "name", "is required"),)),
        400,
        {
            **ingestion_error("Invalid request body", "INVALID_BODY"),
            "errors": [{"index": 3, "field": "name", "message": "is required"}],
        },
        {},
    ),
    "body that is not JSON": (
        InvalidBody(),
        400,
        ingestion_error("Invalid request body", "INVALID_BODY"),
        {},
    ),
    "key": (
        InvalidApiKey(),
        401,
        ingestion_error("Invalid API key", "INVALID_API_KEY"),
        {"www-authenticate": "Bearer"},
    ),
    "scope": (
        MissingScope("track:events"),
        403,
        ingestion_error("API key missing track:events scope", "MISSING_SCOPE"),
        {},
    ),
    "website": (
        WebsiteNotFound(),
        404,
        ingestion_error("Website not found", "WEBSITE_NOT_FOUND"),
        {},
    ),
    "log": (
        LogUnavailable("the disk is full", retry_after_s=7),
        503,
        ingestion_error("Service unavailable", "UNAVAILABLE"),
        {"retry-after": "7"},
    ),
    "bug": (
        KeyError("secret"),
        500,
        ingestion_error("Internal server error", "INTERNAL"),
        {},
    ),
}


@pytest.mark.parametrize(
    ("error", "status", "body", "headers"), REFUSALS.values(), ids=list(REFUSALS)
)
def test_refusal_is_told_in_the_envelope_of_ingestion(
    error: Exception, status: int, body: Any, headers: dict[str, str]
) -> None:
    world = World()
    world.acceptor.outcome = error

    reply = world.call("POST", "/track", b"{}", headers={"Origin": ORIGIN})

    assert told(reply) == (status, body)
    length = {"content-length": str(len(reply.body))}
    assert reply.headers == {**JSON_REPLY, **length, **headers, **CORS}


def test_cancelled_call_is_answered_before_it_ends() -> None:
    world = World()
    world.acceptor.outcome = asyncio.CancelledError()

    reply = world.call("POST", "/track", b"{}")

    assert told(reply) == (500, ingestion_error("Internal server error", "INTERNAL"))


FORMS: dict[str, tuple[bytes, dict[str, str], int, str, str]] = {
    "size": (b"x" * 101, {}, 413, "Payload too large", "PAYLOAD_TOO_LARGE"),
    "declared size": (
        b"",
        {"Content-Length": "101", "Content-Type": "image/gif"},
        413,
        "Payload too large",
        "PAYLOAD_TOO_LARGE",
    ),
    "decoded size": (
        gzip.compress(b"x" * 201),
        {"Content-Encoding": "gzip"},
        413,
        "Payload too large",
        "PAYLOAD_TOO_LARGE",
    ),
    "type": (
        b"{}",
        {"Content-Type": "image/gif"},
        415,
        "Unsupported media type",
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "encoding": (
        b"{}",
        {"Content-Encoding": "compress"},
        415,
        "Unsupported content encoding",
        "UNSUPPORTED_ENCODING",
    ),
    "damage": (
        b"{}",
        {"Content-Encoding": "gzip"},
        400,
        "Invalid request body",
        "INVALID_BODY",
    ),
}


@pytest.mark.parametrize(
    ("body", "headers", "status", "message", "code"), FORMS.values(), ids=list(FORMS)
)
def test_form_of_the_body_is_judged_before_the_use_case(
    body: bytes, headers: dict[str, str], status: int, message: str, code: str
) -> None:
    world = World(SMALL)

    reply = world.call("POST", "/vitals", body, headers=headers)

    assert told(reply) == (status, ingestion_error(message, code))
    assert world.acceptor.requests == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE"])
def test_other_method_is_405_before_everything_else(path: str, method: str) -> None:
    world = World()

    reply = world.call(method, path, headers={"Content-Encoding": "nonsense"})

    assert told(reply) == (405, ingestion_error("Method not allowed", "METHOD_NOT_ALLOWED"))
    assert reply.headers["allow"] == "POST, OPTIONS"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [ORIGIN, "null"])
def test_preflight_names_the_very_origin(path: str, origin: str) -> None:
    reply = World().call("OPTIONS", path, headers={"Origin": origin})

    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers == {
        **CORS,
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST, OPTIONS",
        "access-control-allow-headers": (
            "Accept, Accept-Language, Authorization, Content-Encoding, Content-Language,"
            " Content-Type, Idempotency-Key, X-API-Key, X-Requested-With, databuddy-client-id,"
            " databuddy-sdk-name, databuddy-sdk-version"
        ),
        "access-control-max-age": "86400",
        "allow": "POST, OPTIONS",
        "x-request-id": REQUEST_ID,
    }


def test_options_without_an_origin_tells_the_methods() -> None:
    reply = World().call("OPTIONS", "/track")

    headers = {"allow": "POST, OPTIONS", "x-request-id": REQUEST_ID}
    assert reply == (204, headers, b"")


def test_accepted_call_of_a_page_names_its_origin() -> None:
    reply = World().call("POST", "/track", b"{}", headers={"Origin": ORIGIN})

    assert reply.status == 200
    assert CORS.items() <= reply.headers.items()


@pytest.mark.parametrize("path", ["/nowhere", "/track/", "/Track", "/v1x", ""])
def test_unknown_path_is_404(path: str) -> None:
    reply = World().call("POST", path, b"{}")

    assert told(reply) == (404, ingestion_error("Not found", "NOT_FOUND"))


def test_caller_that_leaves_within_its_body_gets_no_reply_and_is_noted() -> None:
    world = World()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(world.app()(make_scope("POST", "/track"), receive, send))  # type: ignore[arg-type]  # a coroutine

    assert (sent, world.acceptor.requests) == ([], [])
    assert [(line["endpoint"], line["status"]) for line in world.lines] == [("track", 499)]


def test_body_may_come_in_pieces() -> None:
    world = World()

    reply = asyncio.run(
        exchange(world.app(), make_scope("POST", "/track"), b'{"name"', b":", b'"a"}')
    )

    assert reply.status == 200
    assert world.acceptor.requests == [request_of(body=b'{"name":"a"}')]
