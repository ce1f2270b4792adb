"""The responses of each operation in the OpenAPI document: success and every error."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from headrace.base.errors import (
    FieldError,
    HeadraceError,
    InvalidBody,
    InvalidQuery,
    MissingScope,
    RateLimited,
    UnsupportedEncoding,
    UnsupportedMediaType,
)
from headrace.http.apidocs.descriptions.description import (
    EXAMPLE_REQUEST_ID,
    OperationDoc,
    ResponseDoc,
)
from headrace.http.apidocs.schema_rules import Schema
from headrace.http.apidocs.schemas import schema_ref
from headrace.http.endpoint_operations import SESSION_END
from headrace.http.endpoint_spec import EndpointSpec, Operation
from headrace.http.endpoints import (
    ADMIN_KEYS,
    ADMIN_ORGANIZATIONS,
    ADMIN_WEBSITES,
    DOCS,
    ERASURES,
    EXPORT,
    LIVE,
    METRICS,
    OPENAPI,
    PARAMETER_QUERY_ENDPOINTS,
    QUERY_ENDPOINTS,
    READY,
    SAVED,
    SAVED_ANSWER,
    SESSION,
    SQL,
    SUBJECT_ACCESS,
    TRACKER,
    TRACKER_DETAILS,
    TRACKER_DETAILS_PINNED,
    TRACKER_EXTRAS,
    TRACKER_EXTRAS_PINNED,
    TRACKER_PINNED,
)
from headrace.http.reading.content_encoding import ENCODINGS
from headrace.http.responses import (
    ERROR_RESPONSES,
    INTERNAL,
    JSON_TYPE,
    Envelope,
    ErrorResponse,
    IngestionError,
    QueryError,
)
from headrace.http.routes.formats.query_results import ARROW_TYPE, CSV_TYPE
from headrace.http.routes.formats.sql_results import SQL_TYPE
from headrace.http.routes.live import EVENT_STREAM_TYPE
from headrace.http.routes.operations import ReadyResponse
from headrace.http.routes.rows.export import MEDIA_TYPES, NDJSON_TYPE, PARQUET_TYPE

Document = dict[str, Any]

_RESULT_ENDPOINTS = (*QUERY_ENDPOINTS, *PARAMETER_QUERY_ENDPOINTS, SAVED_ANSWER)

_NON_NEGATIVE_INTEGER: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}

HEADERS: Mapping[str, Document] = {
    "X-Request-Id": {
        "description": "id of the request; the service log uses the same id",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    },
    "Allow": {"description": "the methods of the path", "required": True, "schema": _TEXT},
    "WWW-Authenticate": {
        "description": "the authentication scheme",
        "required": True,
        "schema": _TEXT,
    },
    "Retry-After": {
        "description": "seconds to wait before trying again",
        "required": True,
        "schema": _NON_NEGATIVE_INTEGER,
    },
    "X-RateLimit-Limit": {
        "description": "maximum number of such calls a minute",
        "schema": _NON_NEGATIVE_INTEGER,
    },
    "X-RateLimit-Remaining": {
        "description": "calls left in the window",
        "schema": _NON_NEGATIVE_INTEGER,
    },
    "X-RateLimit-Reset": {
        "description": "seconds until the window is free",
        "schema": _NON_NEGATIVE_INTEGER,
    },
    "ETag": {"description": "changes when the answer may have changed", "schema": _TEXT},
    "X-Row-Count": {
        "description": "rows of a CSV or Arrow result",
        "schema": _NON_NEGATIVE_INTEGER,
    },
    "X-Truncated": {
        "description": "whether more rows exist, for CSV and Arrow results",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
}
"""Response headers, by name."""

_STATUS_HEADERS: Mapping[int, Sequence[str]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_RATE_LIMIT_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_TABLE_HEADERS = ("X-Row-Count", "X-Truncated")


class _ErrorExample(Struct, frozen=True):
    """One error response; `name` is its key in the list of examples."""

    name: str
    status: int
    code: str
    message: str
    field_errors: tuple[FieldError, ...] = ()


SUCCESS_STATUSES: Mapping[Operation, Sequence[int]] = {
    ERASURES.first: (200, 202),
    SAVED.first: (200, 201),
    SESSION_END: (204,),
    ADMIN_ORGANIZATIONS.first: (201,),
    ADMIN_WEBSITES.first: (201,),
    ADMIN_KEYS.first: (201,),
}
"""Those of operations that do not always answer with 200."""


def make_responses(operation: Operation, doc: OperationDoc) -> Document:
    """Return every response of an operation, by status."""
    statuses = SUCCESS_STATUSES.get(operation, (200,))
    responses = {str(status): _success(operation, doc, status) for status in statuses}
    if operation == SAVED_ANSWER.first:
        responses["304"] = {
            "description": "The client has this answer",
            "headers": _headers(("ETag", *_RATE_LIMIT_HEADERS)),
        }
    if operation == READY.first:
        responses["503"] = _not_ready()
    by_status: defaultdict[int, list[_ErrorExample]] = defaultdict(list)
    for example in _error_examples(operation):
        by_status[example.status].append(example)
    for status, examples in sorted(by_status.items()):
        responses[str(status)] = _error_response_object(operation, status, examples)
    return responses


_TEXT_TYPES: Mapping[EndpointSpec, str] = {
    METRICS: "text/plain",
    DOCS: "text/html",
    LIVE: EVENT_STREAM_TYPE,
    TRACKER: "text/javascript",
    TRACKER_EXTRAS: "text/javascript",
    TRACKER_DETAILS: "text/javascript",
    TRACKER_PINNED: "text/javascript",
    TRACKER_EXTRAS_PINNED: "text/javascript",
    TRACKER_DETAILS_PINNED: "text/javascript",
}


def _success(operation: Operation, doc: OperationDoc, status: int) -> Document:
    spec = operation.endpoint
    names = (
        *_rate_limit_headers_of(operation),
        *(_TABLE_HEADERS if spec in _RESULT_ENDPOINTS else ()),
        *(("ETag",) if spec is SAVED_ANSWER else ()),
    )
    response: Document = {"description": "Success", "headers": _headers(names)}
    return (
        response
        if status == 204
        else {**response, "content": _success_content(spec, doc.response_of(status))}
    )


def _success_content(spec: EndpointSpec, doc: ResponseDoc | None) -> Document:
    if spec in _TEXT_TYPES:
        return {_TEXT_TYPES[spec]: {"schema": _TEXT}}
    if spec is SUBJECT_ACCESS:
        return {NDJSON_TYPE: {"schema": {"type": "string", "format": "binary"}}}
    if spec is EXPORT:
        return {
            media_type.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media_type in MEDIA_TYPES.values()
        }
    if spec is OPENAPI or doc is None:
        return {JSON_TYPE: {"schema": {"type": "object"}}}
    body = {"schema": schema_ref(doc.type), "example": doc.example}
    return {JSON_TYPE: body, **_other_formats(spec)}


def _other_formats(spec: EndpointSpec) -> Document:
    """Return the contents of a response by media type, but for JSON."""
    if spec is SQL:
        return {SQL_TYPE: {"schema": _TEXT}}
    if spec not in _RESULT_ENDPOINTS:
        return {}
    binary: Document = {"schema": {"type": "string", "format": "binary"}}
    return {
        CSV_TYPE: {"schema": _TEXT, "example": "path,views\r\n/pricing,120\r\n"},
        ARROW_TYPE: binary,
        **({PARQUET_TYPE: binary, NDJSON_TYPE: {"schema": _TEXT}} if spec is SAVED_ANSWER else {}),
    }


def _not_ready() -> Document:
    example = {"status": "unavailable", "parts": {"log": "ready", "engine": "unavailable"}}
    return {
        "description": "A part is not ready",
        "headers": _headers(_STATUS_HEADERS[503]),
        "content": {JSON_TYPE: {"schema": schema_ref(ReadyResponse), "example": example}},
    }


def _error_response_object(
    operation: Operation, status: int, examples: Sequence[_ErrorExample]
) -> Document:
    envelope = operation.endpoint.envelope
    schema = IngestionError if envelope is Envelope.INGESTION else QueryError
    codes = sorted({example.code for example in examples})
    messages = dict.fromkeys(example.message for example in examples)
    names = (
        *_STATUS_HEADERS.get(status, ()),
        *(() if status == 405 else _rate_limit_headers_of(operation)),
    )
    return {
        "description": "; ".join(messages),
        "headers": _headers(names),
        "content": {
            JSON_TYPE: {
                "schema": {
                    "allOf": [schema_ref(schema), {"properties": {"code": {"enum": codes}}}]
                },
                "examples": {
                    example.name: {
                        "summary": example.message,
                        "value": _example(envelope, example),
                    }
                    for example in examples
                },
            }
        },
    }


def _error_examples(operation: Operation) -> Iterator[_ErrorExample]:
    for error in operation.errors:
        yield from _examples_for(operation, error, ERROR_RESPONSES[error])
    yield _ErrorExample("Internal", INTERNAL.status, INTERNAL.code or "", INTERNAL.message or "")


def _examples_for(
    operation: Operation, error: type[HeadraceError], entry: ErrorResponse
) -> Iterator[_ErrorExample]:
    name, status, code = error.__name__, entry.status, entry.code or ""
    if error is InvalidQuery:
        for query_error in operation.query_errors:
            yield _ErrorExample(query_error.name, status, query_error.name, query_error.value)
    elif error is MissingScope:
        yield _ErrorExample(name, status, code, str(MissingScope(operation.scope.value)))
    elif error is UnsupportedMediaType:
        yield _ErrorExample(name, status, code, str(UnsupportedMediaType("text/html")))
    elif error is UnsupportedEncoding:
        yield _ErrorExample(name, status, code, str(UnsupportedEncoding("compress", ENCODINGS)))
    elif error is InvalidBody and operation.endpoint.is_ingestion:
        field_errors = (FieldError(0, "name", "must be text of 1 to 256 characters"),)
        yield _ErrorExample(name, status, code, entry.message or "", field_errors)
    else:
        yield _ErrorExample(name, status, code, entry.message or "")


def _example(envelope: Envelope, example: _ErrorExample) -> Any:  # noqa: ANN401 - plain JSON
    match envelope:
        case Envelope.INGESTION:
            body: Struct = IngestionError(
                example.message, example.code, EXAMPLE_REQUEST_ID, example.field_errors
            )
        case Envelope.QUERY:
            body = QueryError(
                success=False,
                error=example.message,
                code=example.code,
                request_id=EXAMPLE_REQUEST_ID,
            )
    return msgspec.to_builtins(body)


def _rate_limit_headers_of(operation: Operation) -> Sequence[str]:
    """Return the headers of an operation that counts its callers; sign-in counts addresses."""
    is_counted = RateLimited in operation.errors and operation != SESSION.first
    return _RATE_LIMIT_HEADERS if is_counted else ()


def _headers(names: Sequence[str]) -> Document:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
