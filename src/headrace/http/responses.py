"""Responses: the only table from errors to statuses, and the two envelopes of an error."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import Enum
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from headrace.base.errors import (
    AuthenticationRequired,
    DirectoryUnavailable,
    FieldError,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    InvalidQuery,
    InvalidSignIn,
    LogUnavailable,
    MethodNotAllowed,
    MissingCredentials,
    MissingScope,
    MissingWebsiteId,
    NotAcceptable,
    NotFound,
    OriginNotAuthorized,
    PayloadTooLarge,
    QueryTimedOut,
    QueryTooLarge,
    RateLimited,
    RequestTimeout,
    ScopeMismatch,
    SharedStateUnavailable,
    StoreUnavailable,
    Unavailable,
    UnsupportedEncoding,
    UnsupportedMediaType,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)

_T = TypeVar("_T")

Header = tuple[bytes, bytes]

JSON_TYPE = "application/json"
JSON_HEADER: Header = (b"content-type", JSON_TYPE.encode())


class Response(Struct, frozen=True):
    """A response. `headers` lack those of `complete_headers`: length, request id and CORS."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = (JSON_HEADER,)


class StreamedResponse(Struct, frozen=True):
    """A response whose body is made while it is sent, without a Content-Length.

    An error of `body` cuts the connection off, so that no client takes the rest for the whole.
    """

    status: int
    body: AsyncGenerator[bytes | memoryview]
    headers: tuple[Header, ...]


class ErrorResponse(Struct, frozen=True):
    """The response to a class of errors. None means that the error has its own message or code."""

    status: int
    code: str | None
    message: str | None


_UNAVAILABLE = ErrorResponse(503, "UNAVAILABLE", "Service unavailable")

INTERNAL = ErrorResponse(500, "INTERNAL", "Internal server error")
"""The response to every error that is not in the table."""

ERROR_RESPONSES: Mapping[type[HeadraceError], ErrorResponse] = {
    InvalidBody: ErrorResponse(400, "INVALID_BODY", "Invalid request body"),
    InvalidIdempotencyKey: ErrorResponse(400, "INVALID_BODY", "Invalid Idempotency-Key"),
    InvalidQuery: ErrorResponse(400, None, None),
    MissingWebsiteId: ErrorResponse(400, "MISSING_WEBSITE_ID", "website_id is required"),
    WebsiteMissingOrganization: ErrorResponse(
        400, "WEBSITE_MISSING_ORGANIZATION", "Website missing organization"
    ),
    MissingCredentials: ErrorResponse(401, "UNAUTHORIZED", "API key or website_id required"),
    AuthenticationRequired: ErrorResponse(401, "UNAUTHORIZED", "Authentication required"),
    InvalidApiKey: ErrorResponse(401, "INVALID_API_KEY", "Invalid API key"),
    InvalidSignIn: ErrorResponse(401, "INVALID_SIGN_IN", "Invalid sign-in"),
    MissingScope: ErrorResponse(403, "MISSING_SCOPE", None),
    ScopeMismatch: ErrorResponse(403, "SCOPE_MISMATCH", "Website scope mismatch"),
    OriginNotAuthorized: ErrorResponse(403, "ORIGIN_NOT_AUTHORIZED", "Origin not authorized"),
    NotFound: ErrorResponse(404, "NOT_FOUND", "Not found"),
    WebsiteNotFound: ErrorResponse(404, "WEBSITE_NOT_FOUND", "Website not found"),
    MethodNotAllowed: ErrorResponse(405, "METHOD_NOT_ALLOWED", "Method not allowed"),
    NotAcceptable: ErrorResponse(406, "NOT_ACCEPTABLE", "Not acceptable"),
    RequestTimeout: ErrorResponse(408, "REQUEST_TIMEOUT", "Request timeout"),
    PayloadTooLarge: ErrorResponse(413, "PAYLOAD_TOO_LARGE", "Payload too large"),
    UnsupportedMediaType: ErrorResponse(415, "UNSUPPORTED_MEDIA_TYPE", None),
    UnsupportedEncoding: ErrorResponse(415, "UNSUPPORTED_ENCODING", None),
    QueryTooLarge: ErrorResponse(422, "QUERY_TOO_LARGE", "Query too large"),
    RateLimited: ErrorResponse(429, "RATE_LIMITED", "Rate limit exceeded"),
    Unavailable: _UNAVAILABLE,
    LogUnavailable: _UNAVAILABLE,
    StoreUnavailable: _UNAVAILABLE,
    DirectoryUnavailable: _UNAVAILABLE,
    SharedStateUnavailable: _UNAVAILABLE,
    QueryTimedOut: ErrorResponse(504, "QUERY_TIMEOUT", "Query timed out"),
}


class Envelope(Enum):
    """The two formats of an error's body."""

    INGESTION = "ingestion"
    QUERY = "query"


class IngestionError(
    Struct, frozen=True, rename="camel", tag_field="status", tag="error", omit_defaults=True
):
    """The body of every error outside /v1; `errors` lists the errors of the items of a body."""

    message: str
    code: str
    request_id: str
    errors: tuple[FieldError, ...] = ()


class Success(Struct, Generic[_T], frozen=True, rename="camel"):
    """The body of a success below /v1 that is about `data`."""

    success: bool
    data: _T
    request_id: str


class QueryError(Struct, frozen=True, rename="camel"):
    """The body of every error below /v1."""

    success: bool
    error: str
    code: str
    request_id: str


def error_response(error: BaseException, envelope: Envelope, request_id: str) -> Response:
    """Return the response of the table to an error, in an envelope."""
    entry = find_error_response(error)
    message = str(error) if entry.message is None else entry.message
    code = error.code.name if isinstance(error, InvalidQuery) else entry.code or ""
    body: IngestionError | QueryError
    match envelope:
        case Envelope.INGESTION:
            field_errors = error.field_errors if isinstance(error, InvalidBody) else ()
            body = IngestionError(message, code, request_id, field_errors)
        case Envelope.QUERY:
            body = QueryError(success=False, error=message, code=code, request_id=request_id)
    return Response(
        entry.status, msgspec.json.encode(body), (JSON_HEADER, *_error_headers(error, entry))
    )


def complete_headers(
    response: Response | StreamedResponse,
    request_id: str,
    *,
    extra: Sequence[Header] = (),
    cors: Sequence[Header] = (),
) -> list[Header]:
    """Return all headers of a response: its own, request id, `extra`, length and `cors`."""
    headers = [*response.headers, (b"x-request-id", request_id.encode()), *extra]
    if isinstance(response, Response) and response.status not in (
        204,
        304,
    ):  # RFC 9110, section 8.6: none with a 204, and none that differs with a 304
        headers.append((b"content-length", b"%d" % len(response.body)))
    headers.extend(cors)
    return headers


def find_error_response(error: BaseException) -> ErrorResponse:
    """Return the row of the table for an error: `INTERNAL` for one that is not in it."""
    if isinstance(error, HeadraceError):
        return ERROR_RESPONSES.get(type(error), INTERNAL)
    return INTERNAL


def _error_headers(error: BaseException, entry: ErrorResponse) -> tuple[Header, ...]:
    match error:
        case RateLimited() | Unavailable():
            return ((b"retry-after", b"%d" % error.retry_after_s),)
        case MethodNotAllowed():
            return ((b"allow", ", ".join(error.allowed).encode()),)
        case RequestTimeout():
            return ((b"connection", b"close"),)
        case _ if entry.status == 401:
            return ((b"www-authenticate", b"Bearer"),)
        case _:
            return ()
