"""From an outcome to a reply: the one table of refusals, and the two envelopes."""

from collections.abc import Mapping
from enum import Enum

import msgspec
from msgspec import Struct

from headrace.base.errors import (
    AuthenticationRequired,
    DirectoryUnavailable,
    Fault,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    InvalidQuery,
    LogUnavailable,
    MethodNotAllowed,
    MissingCredentials,
    MissingScope,
    MissingWebsiteId,
    NotFound,
    OriginNotAuthorized,
    PayloadTooLarge,
    QueryTimedOut,
    QueryTooLarge,
    RateLimited,
    RequestTimeout,
    ScopeMismatch,
    SharedUnavailable,
    StoreUnavailable,
    Unavailable,
    UnsupportedEncoding,
    UnsupportedMediaType,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)

Header = tuple[bytes, bytes]

JSON_TYPE = "application/json"
JSON_HEADER: Header = (b"content-type", JSON_TYPE.encode())


class Reply(Struct, frozen=True):
    """What is sent back. `headers` lack those that every reply has: length and request id."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = (JSON_HEADER,)


class Refusal(Struct, frozen=True):
    """How one class of errors is told. None means that the error itself has the words or code."""

    status: int
    code: str | None
    message: str | None


_UNAVAILABLE = Refusal(503, "UNAVAILABLE", "Service unavailable")

INTERNAL = Refusal(500, "INTERNAL", "Internal server error")
"""What every error is told as that is not in the table."""

REFUSALS: Mapping[type[HeadraceError], Refusal] = {
    InvalidBody: Refusal(400, "INVALID_BODY", "Invalid request body"),
    InvalidIdempotencyKey: Refusal(400, "INVALID_BODY", "Invalid Idempotency-Key"),
    InvalidQuery: Refusal(400, None, None),
    MissingWebsiteId: Refusal(400, "MISSING_WEBSITE_ID", "website_id is required"),
    WebsiteMissingOrganization: Refusal(
        400, "WEBSITE_MISSING_ORGANIZATION", "Website missing organization"
    ),
    MissingCredentials: Refusal(401, "UNAUTHORIZED", "API key or website_id required"),
    AuthenticationRequired: Refusal(401, "UNAUTHORIZED", "Authentication required"),
    InvalidApiKey: Refusal(401, "INVALID_API_KEY", "Invalid API key"),
    MissingScope: Refusal(403, "MISSING_SCOPE", None),
    ScopeMismatch: Refusal(403, "SCOPE_MISMATCH", "Website scope mismatch"),
    OriginNotAuthorized: Refusal(403, "ORIGIN_NOT_AUTHORIZED", "Origin not authorized"),
    NotFound: Refusal(404, "NOT_FOUND", "Not found"),
    WebsiteNotFound: Refusal(404, "WEBSITE_NOT_FOUND", "Website not found"),
    MethodNotAllowed: Refusal(405, "METHOD_NOT_ALLOWED", "Method not allowed"),
    RequestTimeout: Refusal(408, "REQUEST_TIMEOUT", "Request timeout"),
    PayloadTooLarge: Refusal(413, "PAYLOAD_TOO_LARGE", "Payload too large"),
    UnsupportedMediaType: Refusal(415, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type"),
    UnsupportedEncoding: Refusal(415, "UNSUPPORTED_ENCODING", "Unsupported content encoding"),
    QueryTooLarge: Refusal(422, "QUERY_TOO_LARGE", "Query too large"),
    RateLimited: Refusal(429, "RATE_LIMITED", "Rate limit exceeded"),
    Unavailable: _UNAVAILABLE,
    LogUnavailable: _UNAVAILABLE,
    StoreUnavailable: _UNAVAILABLE,
    DirectoryUnavailable: _UNAVAILABLE,
    SharedUnavailable: _UNAVAILABLE,
    QueryTimedOut: Refusal(504, "QUERY_TIMEOUT", "Query timed out"),
}


class Envelope(Enum):
    """The two shapes of an error's body."""

    INGESTION = "ingestion"
    QUERY = "query"


class IngestionError(
    Struct, frozen=True, rename="camel", tag_field="status", tag="error", omit_defaults=True
):
    """The body of every refusal outside the query; `errors` lists the faults of a body."""

    message: str
    code: str
    request_id: str
    errors: tuple[Fault, ...] = ()


class QueryError(Struct, frozen=True, rename="camel"):
    """The body of every refusal below /v1."""

    success: bool
    error: str
    code: str
    request_id: str


def refuse(error: BaseException, envelope: Envelope, request_id: str) -> Reply:
    """Tell an error as the table says; whatever is not in the table is `INTERNAL`."""
    refusal = refusal_of(error)
    message = str(error) if refusal.message is None else refusal.message
    code = error.fault.name if isinstance(error, InvalidQuery) else refusal.code or ""
    body: IngestionError | QueryError
    match envelope:
        case Envelope.INGESTION:
            faults = error.faults if isinstance(error, InvalidBody) else ()
            body = IngestionError(message, code, request_id, faults)
        case Envelope.QUERY:
            body = QueryError(success=False, error=message, code=code, request_id=request_id)
    return Reply(
        refusal.status, msgspec.json.encode(body), (JSON_HEADER, *_headers_of(error, refusal))
    )


def refusal_of(error: BaseException) -> Refusal:
    """Look an error up in the table."""
    if isinstance(error, HeadraceError):
        return REFUSALS.get(type(error), INTERNAL)
    return INTERNAL


def _headers_of(error: BaseException, refusal: Refusal) -> tuple[Header, ...]:
    match error:
        case RateLimited() | Unavailable():
            return ((b"retry-after", b"%d" % error.retry_after_s),)
        case MethodNotAllowed():
            return ((b"allow", ", ".join(error.allowed).encode()),)
        case RequestTimeout():
            return ((b"connection", b"close"),)
        case _ if refusal.status == 401:
            return ((b"www-authenticate", b"Bearer"),)
        case _:
            return ()
