"""Generates the OpenAPI document from the endpoint table, the error table, structs and settings."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import headrace
from headrace.base.errors import InvalidApiKey
from headrace.base.settings import Settings
from headrace.http.apidocs.descriptions.description import TAGS, OperationDoc
from headrace.http.apidocs.guide import build_guide, read_overview
from headrace.http.apidocs.openapi_responses import HEADERS, make_responses
from headrace.http.apidocs.operation_docs import OPERATION_DOCS
from headrace.http.apidocs.parameters import parameters_of
from headrace.http.apidocs.schemas import make_schemas, schema_ref
from headrace.http.endpoint_operations import SESSION_END, SESSION_SHOW
from headrace.http.endpoint_spec import Operation
from headrace.http.endpoints import ERASURES, SESSION, SUBJECT_ACCESS
from headrace.http.reading.session_cookie import COOKIE
from headrace.http.responses import JSON_TYPE
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath
from headrace.model.catalog import QUERY_LIMITS
from headrace.model.tenancy import Scope

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
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The cookie of the page; behind TLS its name begins with `__Host-`",
    },
}
_KEY_REQUIRED: Sequence[Document] = ({"bearer": []}, {"apiKey": []})
_KEY_OR_NONE: Sequence[Document] = (*_KEY_REQUIRED, {})
"""A key in either header, or none: a website identifier or a public website is enough."""

_OWN_SECURITY: Mapping[Operation, Sequence[Document]] = {
    SESSION.first: (),
    SESSION_SHOW: ({"session": []},),
    SESSION_END: ({"session": []}, {}),
}

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
_SUBJECT_BODY: Document = {
    "type": "object",
    "description": "Exactly one selector, and an option.",
    "additionalProperties": False,
    "properties": {**_SELECTORS, "withVisitors": _WITH_VISITORS},
}
"""The body of POST /v1/subject-access."""

_ERASURE_BODY: Document = {
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

_OWN_BODIES: Mapping[Operation, Document] = {
    ERASURES.first: _ERASURE_BODY,
    SUBJECT_ACCESS.first: _SUBJECT_BODY,
}
"""The schemas of bodies that are no structs."""


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
        "paths": _paths(settings),
        "components": {
            "schemas": make_schemas(),
            "headers": HEADERS,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _paths(settings: Settings) -> Document:
    """Return all operations, by path and method."""
    paths: defaultdict[str, Document] = defaultdict(dict)
    for operation, doc in OPERATION_DOCS.items():
        described = _describe(operation, doc, settings)
        paths[operation.endpoint.path][operation.method.lower()] = described
    return paths


def _describe(operation: Operation, doc: OperationDoc, settings: Settings) -> Document:
    security, parameters = _security_of(operation), parameters_of(operation)
    body = _body_schema(operation, doc, settings)
    described: Document = {
        "operationId": operation.name,
        "tags": [doc.tag],
        "summary": doc.summary,
        "description": doc.description,
        "responses": make_responses(operation, doc),
    }
    if security is not None:
        described["security"] = security
    if parameters:
        described["parameters"] = parameters
    if body is not None:
        content = {JSON_TYPE: {"schema": body, "example": doc.example}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _security_of(operation: Operation) -> Sequence[Document] | None:
    """Return the alternatives of credentials, None for operations that look at none."""
    if operation in _OWN_SECURITY:
        return _OWN_SECURITY[operation]
    if InvalidApiKey not in operation.errors:
        return None
    is_key_required = operation.scope in {Scope.MANAGE_DATA, Scope.MANAGE_CONFIG}
    return _KEY_REQUIRED if is_key_required else _KEY_OR_NONE


def _body_schema(operation: Operation, doc: OperationDoc, settings: Settings) -> Document | None:
    if doc.item is None:
        return _OWN_BODIES.get(operation)
    schema = schema_ref(doc.item)
    if not doc.takes_arrays:
        return schema
    path = IngestPath(operation.endpoint.path)
    max_items = PATH_SPECS[path].item_limit(settings.max_items)
    return {"anyOf": [{"type": "array", "items": schema, "maxItems": max_items}, schema]}
