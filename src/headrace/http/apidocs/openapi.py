"""Generates the OpenAPI document from the endpoint table, the error table, structs and settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import headrace
from headrace.base.settings import Settings
from headrace.http.apidocs.descriptions.description import TAGS, EndpointDoc
from headrace.http.apidocs.endpoint_docs import ENDPOINT_DOCS
from headrace.http.apidocs.guide import build_guide, read_overview
from headrace.http.apidocs.openapi_responses import HEADERS, make_responses
from headrace.http.apidocs.schemas import make_schemas, schema_ref
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.endpoints import (
    ADMIN_AUDIT,
    ADMINISTRATION_ENDPOINTS,
    ERASURE,
    ERASURES,
    EXPORT,
    LIVE,
    QUERY_ENDPOINTS,
    SAVED,
    SAVED_ANSWER,
    SAVED_FORMATS,
    SAVED_LIST,
    SCHEMA,
    SESSION,
    SQL,
    STANDARD,
    STORAGE,
    SUBJECT_ACCESS,
    VALUES,
)
from headrace.http.responses import JSON_TYPE
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath
from headrace.ingest.receive.idempotency import MAX_IDEMPOTENCY_KEY
from headrace.model.audit import DEFAULT_AUDIT_LINES, MAX_AUDIT_LINES
from headrace.model.catalog import QUERY_LIMITS, table_names
from headrace.model.saved_query import SAVED_NAME
from headrace.query.export.check import FORMAT_NAMES, TABLE_NAMES

Document = dict[str, Any]

SECURITY_SCHEMES: Mapping[str, Document] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key: `Authorization: Bearer hr_...`",
    },
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same key, for clients that need `Authorization` for something else",
    },
}
_SECURITY: Sequence[Document] = ({"bearer": []}, {"apiKey": []}, {})
"""A key in either header, or none: a website identifier or a public website is enough."""


_TEXT_SELECTOR: Document = {"type": "string", "minLength": 1}
_SELECTORS: Document = {
    "anonymousId": _TEXT_SELECTOR,
    "sessionId": _TEXT_SELECTOR,
    "profileId": _TEXT_SELECTOR,
    "eventId": _TEXT_SELECTOR,
    "property": {
        "type": "object",
        "required": ["key", "value"],
        "additionalProperties": False,
        "properties": {
            "key": {**_TEXT_SELECTOR, "maxLength": QUERY_LIMITS["maxPropertyKeyLength"]},
            "value": {"type": ["string", "number", "boolean"]},
        },
    },
}
_WITH_VISITORS: Document = {"type": "boolean", "default": False}
SUBJECT_BODY: Document = {
    "type": "object",
    "description": "Exactly one selector, and an option.",
    "additionalProperties": False,
    "properties": {**_SELECTORS, "withVisitors": _WITH_VISITORS},
}
"""The body of POST /v1/subject-access."""

ERASURE_BODY: Document = {
    "type": "object",
    "description": "Exactly one selector, and options.",
    "additionalProperties": False,
    "properties": {
        **_SELECTORS,
        "dryRun": {"type": "boolean", "default": False},
        "withVisitors": _WITH_VISITORS,
    },
}
"""The body of POST /v1/erasures."""

_KEY_REQUIRED: Sequence[Document] = ({"bearer": []}, {"apiKey": []})


def make_document(settings: Settings) -> Document:
    """Return the OpenAPI 3.1 document of a service with these settings."""
    guide = build_guide(settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headrace",
            "version": headrace.__version__,
            "summary": "Event ingestion and analytics queries",
            "description": read_overview(),
        },
        "servers": [{"url": "/", "description": "this service"}],
        "tags": [
            *({"name": chapter.title, "description": chapter.text} for chapter in guide),
            *({"name": name, "description": text} for name, text in TAGS.items()),
        ],
        "paths": {
            spec.path: {spec.methods[0].lower(): _operation(spec, doc, settings)}
            for spec, doc in ENDPOINT_DOCS.items()
        },
        "components": {
            "schemas": make_schemas(),
            "headers": HEADERS,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _operation(spec: EndpointSpec, doc: EndpointDoc, settings: Settings) -> Document:
    described: Document = {
        "operationId": spec.name,
        "tags": [doc.tag],
        "summary": doc.summary,
        "description": doc.description,
        "responses": make_responses(spec, doc),
    }
    if "{hash}" in spec.path:
        digits = "the first eight digits of the SHA-256 of the file"
        return {**described, "parameters": (_required("hash", "path", digits),)}
    return {**described, **_request(spec, doc, settings)}


def _request(spec: EndpointSpec, doc: EndpointDoc, settings: Settings) -> Document:
    """Return what an operation has of credentials, parameters and body."""
    request: Document = {}
    if spec is EXPORT:
        request = {"security": _KEY_REQUIRED, "parameters": _export_parameters()}
    elif spec is ERASURES:
        parameters = (_required("website_id", "query", "the website", minLength=1),)
        body = _request_body({"schema": ERASURE_BODY, "example": doc.example})
        request = {"security": _KEY_REQUIRED, "parameters": parameters, **body}
    elif spec is SUBJECT_ACCESS:
        parameters = (_required("website_id", "query", "the website", minLength=1),)
        body = _request_body({"schema": SUBJECT_BODY, "example": doc.example})
        request = {"security": _KEY_REQUIRED, "parameters": parameters, **body}
    elif spec is ERASURE:
        parameters = (_required("id", "path", "the id of the erasure"),)
        request = {"security": _KEY_REQUIRED, "parameters": parameters}
    elif spec is SESSION:
        content = {"schema": schema_ref("SignInBody"), "example": doc.example}
        request = {"security": (), **_request_body(content)}
    elif spec in ADMINISTRATION_ENDPOINTS:
        request = {"security": _KEY_REQUIRED, **_administration(spec, doc, settings)}
    elif spec is SAVED:
        body = _request_body(_request_content(spec, doc, settings))
        request = {"security": _KEY_REQUIRED, "parameters": _saved_parameters(), **body}
    elif spec in (LIVE, SAVED_ANSWER, SAVED_LIST, SCHEMA, STORAGE, VALUES):
        security = _KEY_REQUIRED if spec is SAVED_LIST else _SECURITY
        request = {"security": security, "parameters": _parameters(spec)}
    elif doc.item is not None:
        body = _request_body(_request_content(spec, doc, settings))
        request = {"security": _SECURITY, "parameters": _parameters(spec), **body}
    return request


def _request_body(content: Document) -> Document:
    return {"requestBody": {"required": True, "content": {JSON_TYPE: content}}}


def _administration(spec: EndpointSpec, doc: EndpointDoc, settings: Settings) -> Document:
    parameters: Sequence[Document] = ()
    if spec is ADMIN_AUDIT:
        parameters = _audit_parameters()
    elif "{id}" in spec.path:
        parameters = (_required("id", "path", "the id of the object"),)
    return {
        **({"parameters": parameters} if parameters else {}),
        **(_request_body(_request_content(spec, doc, settings)) if doc.item is not None else {}),
    }


def _audit_parameters() -> Sequence[Document]:
    limit = f"number of lines, reduced to {MAX_AUDIT_LINES}; {DEFAULT_AUDIT_LINES} without it"
    return (
        _parameter("limit", "query", limit, pattern="^[0-9]+$"),
        _parameter("before", "query", "the id of a line: the lines before it"),
    )


def _request_content(spec: EndpointSpec, doc: EndpointDoc, settings: Settings) -> Document:
    schema = schema_ref(doc.item or "")
    if doc.takes_arrays:
        max_items = PATH_SPECS[IngestPath(spec.path)].item_limit(settings.max_items)
        array = {"type": "array", "items": schema, "maxItems": max_items}
        schema = {"anyOf": [array, schema]}
    return {"schema": schema, "example": doc.example}


def _parameters(spec: EndpointSpec) -> Sequence[Document]:
    if spec in _OWN_PARAMETERS:
        return _OWN_PARAMETERS[spec]()
    if spec in (*QUERY_ENDPOINTS, SQL, STANDARD):
        website = _parameter("website_id", "query", "the website to query", minLength=1)
        return ({**website, "required": True},)
    return (
        _parameter("website_id", "query", "the website; required without a key"),
        _parameter("client_id", "query", "alias of `website_id` that browser trackers use"),
        _parameter("databuddy-client-id", "header", "the same, for clients whose URL is fixed"),
        _parameter(
            "Idempotency-Key",
            "header",
            "makes the request safe to retry",
            maxLength=MAX_IDEMPOTENCY_KEY,
        ),
    )


def _export_parameters() -> Sequence[Document]:
    required = (
        _parameter("website_id", "query", "the website to export", minLength=1),
        _parameter("table", "query", "the table", enum=list(TABLE_NAMES)),
        _parameter("format", "query", "the format of the response", enum=list(FORMAT_NAMES)),
    )
    return (
        *({**parameter, "required": True} for parameter in required),
        _parameter("from", "query", "the first day, in UTC; without it, from the first row on"),
        _parameter("to", "query", "the last day, in UTC; it is included"),
    )


def _live_parameters() -> Sequence[Document]:
    return (
        _required("website_id", "query", "the website", minLength=1),
        _parameter("Last-Event-ID", "header", "the id of the last event that the client has"),
    )


def _saved_name() -> Document:
    pattern = f"^{SAVED_NAME.pattern}$"
    return _required("name", "path", "the name of the saved query", pattern=pattern)


def _saved_parameters() -> Sequence[Document]:
    return (
        _saved_name(),
        _required("website_id", "query", "the website", minLength=1),
        _parameter("rotate", "query", "`true` makes a new token in PUT", enum=["true", "false"]),
    )


def _saved_answer_parameters() -> Sequence[Document]:
    return (
        _saved_name(),
        _required("format", "path", "the format of the answer", enum=list(SAVED_FORMATS)),
        _parameter("website_id", "query", "the website; required without a token"),
        _parameter("token", "query", "the token of the saved query, in the place of a key"),
        _parameter("If-None-Match", "header", "the ETag of the answer that the client has"),
    )


def _required(name: str, location: str, description: str, **rules: object) -> Document:
    return {**_parameter(name, location, description, **rules), "required": True}


def _values_parameters() -> Sequence[Document]:
    maximum, days = QUERY_LIMITS["maxValues"], QUERY_LIMITS["maxLastDays"]
    return (
        _required("website_id", "query", "the website to query", minLength=1),
        _required("table", "query", "the table", enum=list(table_names())),
        _required("field", "query", "a column or `properties.KEY`", minLength=1),
        _parameter(
            "search",
            "query",
            "a part of the values, in any case",
            maxLength=QUERY_LIMITS["maxSearchLength"],
        ),
        _parameter("limit", "query", f"number of values, reduced to {maximum}", pattern="^[0-9]+$"),
        _parameter("startDate", "query", "first day, YYYY-MM-DD in the timezone", format="date"),
        _parameter("endDate", "query", "last day, included", format="date"),
        _parameter(
            "lastDays",
            "query",
            f"days up to today, 1 to {days}, instead of the dates; 30 without either",
            pattern="^[0-9]+$",
        ),
        _parameter("timezone", "query", "IANA timezone of the days; UTC without it"),
    )


def _parameter(name: str, location: str, description: str, **rules: object) -> Document:
    schema = {"type": "string", **rules}
    return {"name": name, "in": location, "description": description, "schema": schema}


_OWN_PARAMETERS: Mapping[EndpointSpec, Callable[[], Sequence[Document]]] = {
    LIVE: _live_parameters,
    SAVED_ANSWER: _saved_answer_parameters,
    SAVED_LIST: lambda: (_required("website_id", "query", "the website", minLength=1),),
    SCHEMA: lambda: (_parameter("website_id", "query", "the website to describe, too"),),
    STORAGE: lambda: (_parameter("website_id", "query", "one website; required without a key"),),
    VALUES: _values_parameters,
}
