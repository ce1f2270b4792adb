"""The ingestion endpoints over a fake use case: request parsing and responses."""

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.base.errors import (
    FieldError,
    InvalidApiKey,
    InvalidBody,
    LogUnavailable,
    MissingScope,
    WebsiteNotFound,
)
from headrace.base.settings import Settings
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest
from headrace.model.tenancy import Credentials
from tests.contract.http.fakes import (
    JSON_HEADERS,
    REQUEST_ID,
    Harness,
    exchange,
    ingestion_error,
    make_scope,
    status_and_body,
)

PATHS = [endpoint.value for endpoint in IngestPath]
ORIGIN = "https://shop.example"
CORS = {
    "access-control-allow-origin": ORIGIN,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "X-Request-Id, Retry-After",
    "vary": "Origin",
}
SMALL = Settings(max_body_bytes=100, max_decoded_bytes=200)


def request_of(endpoint: IngestPath = IngestPath.TRACK, **fields: Any) -> IngestRequest:
    values: dict[str, Any] = {
        "body": b"{}",
        "credentials": Credentials(),
        "address": "203.0.113.9",
        **fields,
    }
    return IngestRequest(endpoint=endpoint, **values)


RESPONSES: Mapping[IngestPath, tuple[AcceptResult, Any]] = {
    IngestPath.TRACK: (
        AcceptResult(3),
        {"status": "success", "type": "custom_event", "count": 3},
    ),
    IngestPath.VITALS: (AcceptResult(2), {"status": "success", "type": "web_vitals", "count": 2}),
    IngestPath.ERRORS: (AcceptResult(0), {"status": "success", "type": "error", "count": 0}),
    IngestPath.BATCH: (
        AcceptResult(2, ("e1", None)),
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
    IngestPath.PAGE: (AcceptResult(1), {"status": "success", "type": "track"}),
    IngestPath.ENGAGEMENT: (
        AcceptResult(2),
        {"status": "success", "type": "engagement", "count": 2},
    ),
    IngestPath.IDENTIFY: (AcceptResult(1), {"status": "success", "type": "identify"}),
}


@pytest.mark.parametrize("endpoint", IngestPath)
def test_accepted_request_gets_the_response_of_its_endpoint(endpoint: IngestPath) -> None:
    harness = Harness()
    harness.acceptor.outcome, expected = RESPONSES[endpoint]

    response = harness.call("POST", endpoint.value, b"{}")

    assert status_and_body(response) == (200, expected)
    assert response.headers == {**JSON_HEADERS, "content-length": str(len(response.body))}
    assert harness.acceptor.requests == [request_of(endpoint)]


def test_every_request_field_reaches_the_service() -> None:
    harness = Harness()

    harness.call(
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
    assert harness.acceptor.requests == [
        request_of(
            body=b'{"name":"a"}',
            credentials=credentials,
            user_agent="Browser/1",
            idempotency_key="once",
        )
    ]


def test_empty_idempotency_key_and_origin_count_as_none() -> None:
    harness = Harness()

    response = harness.call("POST", "/track", b"{}", headers={"Idempotency-Key": "", "Origin": ""})

    length = {"content-length": str(len(response.body))}
    assert (response.status, response.headers) == (200, {**JSON_HEADERS, **length})
    assert harness.acceptor.requests == [request_of()]


@pytest.mark.parametrize("name", ["Authorization", "x-api-key"])
def test_repeated_key_field_is_an_empty_key(name: str) -> None:
    harness = Harness()

    harness.call(
        "POST", "/track", b"{}", query="website_id=web_1", headers=[(name, "Bearer hr_1")] * 2
    )

    (request,) = harness.acceptor.requests
    assert request.credentials == Credentials(api_key="", website_id="web_1")


def test_address_is_found_behind_a_trusted_proxy() -> None:
    harness = Harness(Settings(trusted_proxies=("203.0.113.0/24",)))

    harness.call("POST", "/track", b"{}", headers={"X-Forwarded-For": "198.51.100.7"})

    assert harness.acceptor.requests == [request_of(address="198.51.100.7")]


REJECTIONS: dict[str, tuple[Exception, int, Any, dict[str, str]]] = {
    "body": (
        InvalidBody((FieldError(3, "name", "is required"),)),
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
    ("error", "status", "body", "headers"), REJECTIONS.values(), ids=list(REJECTIONS)
)
def test_error_has_the_ingestion_envelope(
    error: Exception, status: int, body: Any, headers: dict[str, str]
) -> None:
    harness = Harness()
    harness.acceptor.outcome = error

    response = harness.call("POST", "/track", b"{}", headers={"Origin": ORIGIN})

    assert status_and_body(response) == (status, body)
    length = {"content-length": str(len(response.body))}
    assert response.headers == {**JSON_HEADERS, **length, **headers, **CORS}


def test_cancelled_request_gets_a_response() -> None:
    harness = Harness()
    harness.acceptor.outcome = asyncio.CancelledError()

    response = harness.call("POST", "/track", b"{}")

    assert status_and_body(response) == (500, ingestion_error("Internal server error", "INTERNAL"))


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
        'Unsupported media type "image/gif": send application/json',
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "encoding": (
        b"{}",
        {"Content-Encoding": "compress"},
        415,
        'Unsupported content encoding "compress": send one of gzip, deflate, br, zstd, identity',
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
def test_body_format_is_checked_before_the_service_runs(
    body: bytes, headers: dict[str, str], status: int, message: str, code: str
) -> None:
    harness = Harness(SMALL)

    response = harness.call("POST", "/vitals", body, headers=headers)

    assert status_and_body(response) == (status, ingestion_error(message, code))
    assert harness.acceptor.requests == []


OTHER_METHODS = [
    (path, method)
    for path in PATHS
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE")
    if (path, method) not in {("/", "GET"), ("/", "HEAD")}  # these lead browsers to the page
]


@pytest.mark.parametrize(("path", "method"), OTHER_METHODS)
def test_other_method_is_405_before_everything_else(path: str, method: str) -> None:
    harness = Harness()

    response = harness.call(method, path, headers={"Content-Encoding": "nonsense"})

    assert status_and_body(response) == (
        405,
        ingestion_error("Method not allowed", "METHOD_NOT_ALLOWED"),
    )
    assert response.headers["allow"] == allowed_methods(path)


def allowed_methods(path: str) -> str:
    """Return the methods of a path; those that lead browsers from / to the page included."""
    return "GET, HEAD, POST, OPTIONS" if path == "/" else "POST, OPTIONS"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [ORIGIN, "null"])
def test_preflight_names_the_exact_origin(path: str, origin: str) -> None:
    response = Harness().call("OPTIONS", path, headers={"Origin": origin})

    assert (response.status, response.body) == (204, b"")
    assert response.headers == {
        **CORS,
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST, OPTIONS",
        "access-control-allow-headers": (
            "Accept, Accept-Language, Authorization, Content-Encoding, Content-Language,"
            " Content-Type, Idempotency-Key, X-API-Key, X-Requested-With, databuddy-client-id,"
            " databuddy-sdk-name, databuddy-sdk-version"
        ),
        "access-control-max-age": "86400",
        "allow": allowed_methods(path),
        "x-request-id": REQUEST_ID,
    }


@pytest.mark.parametrize("sent", [{}, {"Origin": ""}], ids=["none", "empty"])
def test_options_without_an_origin_lists_the_methods(sent: dict[str, str]) -> None:
    response = Harness().call("OPTIONS", "/track", headers=sent)

    headers = {"allow": "POST, OPTIONS", "x-request-id": REQUEST_ID}
    assert response == (204, headers, b"")


def test_accepted_cross_origin_request_names_its_origin() -> None:
    response = Harness().call("POST", "/track", b"{}", headers={"Origin": ORIGIN})

    assert response.status == 200
    assert CORS.items() <= response.headers.items()


@pytest.mark.parametrize("path", ["/nowhere", "/track/", "/Track", "/v1x", ""])
def test_unknown_path_is_404(path: str) -> None:
    response = Harness().call("POST", path, b"{}")

    assert status_and_body(response) == (404, ingestion_error("Not found", "NOT_FOUND"))


def test_client_disconnect_within_the_body_sends_no_response_and_is_logged() -> None:
    harness = Harness()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(harness.app()(make_scope("POST", "/track"), receive, send))  # type: ignore[arg-type]  # Application returns the coroutine of an endpoint

    assert (sent, harness.acceptor.requests) == ([], [])
    assert [(line["endpoint"], line["status"]) for line in harness.lines] == [("track", 499)]


def test_body_may_come_in_chunks() -> None:
    harness = Harness()

    response = asyncio.run(
        exchange(harness.app(), make_scope("POST", "/track"), b'{"name"', b":", b'"a"}')
    )

    assert response.status == 200
    assert harness.acceptor.requests == [request_of(body=b'{"name":"a"}')]
