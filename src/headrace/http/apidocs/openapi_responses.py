"""The responses of each operation in the OpenAPI document: its success, and every refusal."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from headrace.base.errors import (
    Fault,
    HeadraceError,
    InvalidBody,
    InvalidQuery,
    MissingScope,
    QueryFault,
)
from headrace.http.apidocs.endpoint_docs import EXAMPLE_REQUEST_ID, Operation
from headrace.http.apidocs.field_docs import Schema
from headrace.http.apidocs.schemas import reference
from headrace.http.endpoints import DOCS, METRICS, OPENAPI, QUERY, READY, EndpointRow
from headrace.http.responses import (
    INTERNAL,
    JSON_TYPE,
    REFUSALS,
    Envelope,
    IngestionError,
    QueryError,
    Refusal,
)
from headrace.http.routes.operations import ReadyReply
from headrace.http.routes.result_formats import ARROW_TYPE, CSV_TYPE
from headrace.model.tenancy import Scope

Document = dict[str, Any]

_WHOLE_NUMBER: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}

HEADERS: Mapping[str, Document] = {
    "X-Request-Id": {
        "description": "names the call; the log knows it by the same name",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    },
    "Allow": {"description": "the methods of the path", "required": True, "schema": _TEXT},
    "WWW-Authenticate": {
        "description": "how a key is presented",
        "required": True,
        "schema": _TEXT,
    },
    "Retry-After": {
        "description": "seconds to wait before trying again",
        "required": True,
        "schema": _WHOLE_NUMBER,
    },
    "X-RateLimit-Limit": {"description": "queries a minute", "schema": _WHOLE_NUMBER},
    "X-RateLimit-Remaining": {"description": "queries that are left", "schema": _WHOLE_NUMBER},
    "X-RateLimit-Reset": {
        "description": "seconds until the window is free again",
        "schema": _WHOLE_NUMBER,
    },
    "X-Row-Count": {"description": "rows of a CSV or Arrow answer", "schema": _WHOLE_NUMBER},
    "X-Truncated": {
        "description": "whether more rows existed, for CSV and Arrow answers",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
}
"""Headers of replies that programs may want to read."""

_STATUS_HEADERS: Mapping[int, Sequence[str]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_TABLE_HEADERS = ("X-Row-Count", "X-Truncated")


class _Told(Struct, frozen=True):
    """One refusal as the caller sees it, under a name for the list of examples."""

    name: str
    status: int
    code: str
    message: str
    faults: tuple[Fault, ...] = ()


def make_responses(row: EndpointRow, operation: Operation) -> Document:
    """Return every response that an endpoint can give, by status."""
    responses = {"200": _success(row, operation)}
    if row is READY:
        responses["503"] = _not_ready()
    by_status: defaultdict[int, list[_Told]] = defaultdict(list)
    for told in _refusals_of(row):
        by_status[told.status].append(told)
    for status, refusals in sorted(by_status.items()):
        responses[str(status)] = _refused(row, status, refusals)
    return responses


def _success(row: EndpointRow, operation: Operation) -> Document:
    names = (*_rate_headers_of(row), *(_TABLE_HEADERS if row is QUERY else ()))
    return {
        "description": "Success",
        "headers": _headers(names),
        "content": _success_content(row, operation),
    }


def _success_content(row: EndpointRow, operation: Operation) -> Document:
    if row is METRICS:
        return {"text/plain": {"schema": _TEXT}}
    if row is DOCS:
        return {"text/html": {"schema": _TEXT}}
    if row is OPENAPI or operation.reply is None:
        return {JSON_TYPE: {"schema": {"type": "object"}}}
    body = {"schema": reference(operation.reply), "example": operation.example_reply}
    if row is not QUERY:
        return {JSON_TYPE: body}
    return {
        JSON_TYPE: body,
        CSV_TYPE: {"schema": _TEXT, "example": "path,views\r\n/pricing,120\r\n"},
        ARROW_TYPE: {"schema": {"type": "string", "format": "binary"}},
    }


def _not_ready() -> Document:
    example = {"status": "unavailable", "parts": {"log": "ready", "engine": "unavailable"}}
    return {
        "description": "A part does not work",
        "headers": _headers(_STATUS_HEADERS[503]),
        "content": {JSON_TYPE: {"schema": reference(ReadyReply), "example": example}},
    }


def _refused(row: EndpointRow, status: int, refusals: Sequence[_Told]) -> Document:
    envelope = IngestionError if row.envelope is Envelope.INGESTION else QueryError
    codes = sorted({told.code for told in refusals})
    messages = dict.fromkeys(told.message for told in refusals)
    names = (*_STATUS_HEADERS.get(status, ()), *(() if status == 405 else _rate_headers_of(row)))
    return {
        "description": "; ".join(messages),
        "headers": _headers(names),
        "content": {
            JSON_TYPE: {
                "schema": {
                    "allOf": [reference(envelope), {"properties": {"code": {"enum": codes}}}]
                },
                "examples": {
                    told.name: {"summary": told.message, "value": _example(row.envelope, told)}
                    for told in refusals
                },
            }
        },
    }


def _refusals_of(row: EndpointRow) -> Iterator[_Told]:
    for error in row.refusals:
        yield from _tell(row, error, REFUSALS[error])
    yield _Told("Internal", INTERNAL.status, INTERNAL.code or "", INTERNAL.message or "")


def _tell(row: EndpointRow, error: type[HeadraceError], refusal: Refusal) -> Iterator[_Told]:
    name, status, code = error.__name__, refusal.status, refusal.code or ""
    if error is InvalidQuery:
        for fault in QueryFault:
            yield _Told(fault.name, status, fault.name, fault.value)
    elif error is MissingScope:
        scope = Scope.TRACK_EVENTS if row.is_ingestion else Scope.READ_DATA
        yield _Told(name, status, code, str(MissingScope(scope.value)))
    elif error is InvalidBody and row.is_ingestion:
        faults = (Fault(0, "name", "must be text of 1 to 256 characters"),)
        yield _Told(name, status, code, refusal.message or "", faults)
    elif error is not InvalidBody:
        yield _Told(name, status, code, refusal.message or "")


def _example(envelope: Envelope, told: _Told) -> Any:  # noqa: ANN401 - plain JSON
    match envelope:
        case Envelope.INGESTION:
            body: Struct = IngestionError(told.message, told.code, EXAMPLE_REQUEST_ID, told.faults)
        case Envelope.QUERY:
            body = QueryError(
                success=False, error=told.message, code=told.code, request_id=EXAMPLE_REQUEST_ID
            )
    return msgspec.to_builtins(body)


def _rate_headers_of(row: EndpointRow) -> Sequence[str]:
    return _RATE_HEADERS if row is QUERY else ()


def _headers(names: Sequence[str]) -> Document:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
