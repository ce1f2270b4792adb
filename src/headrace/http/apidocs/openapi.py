"""Generates the OpenAPI document from the endpoint table, the error table, structs and settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import headrace
from headrace.base.settings import Settings
from headrace.http.apidocs.endpoint_docs import ENDPOINT_DOCS, TAGS, EndpointDoc
from headrace.http.apidocs.guide import build_guide, read_overview
from headrace.http.apidocs.openapi_responses import HEADERS, make_responses
from headrace.http.apidocs.schemas import make_schemas, schema_ref
from headrace.http.endpoints import QUERY, EndpointSpec
from headrace.http.responses import JSON_TYPE
from headrace.ingest.receive.idempotency import MAX_IDEMPOTENCY_KEY

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
    if doc.item is None:
        return described
    return {
        **described,
        "security": _SECURITY,
        "parameters": _parameters(spec),
        "requestBody": {
            "required": True,
            "content": {JSON_TYPE: _request_content(doc, settings)},
        },
    }


def _request_content(doc: EndpointDoc, settings: Settings) -> Document:
    schema = schema_ref(doc.item or "")
    if doc.takes_arrays:
        array = {"type": "array", "items": schema, "maxItems": settings.max_items}
        schema = {"anyOf": [array, schema]}
    return {"schema": schema, "example": doc.example}


def _parameters(spec: EndpointSpec) -> Sequence[Document]:
    if spec is QUERY:
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


def _parameter(name: str, location: str, description: str, **rules: int) -> Document:
    schema = {"type": "string", **rules}
    return {"name": name, "in": location, "description": description, "schema": schema}
