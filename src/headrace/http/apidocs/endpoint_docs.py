"""What people read of each endpoint: a title, what it is for, and what a call looks like."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from headrace.http import endpoints
from headrace.http.apidocs.schemas import SchemaResponse
from headrace.http.endpoints import EndpointSpec
from headrace.http.routes.ingest import BatchResponse, CountResponse, PageResponse
from headrace.http.routes.operations import HealthResponse, ReadyResponse
from headrace.http.routes.result_formats import QueryResponse
from headrace.model.wire import CustomEvent, ErrorReport, PageView, QueryRequest, WebVital

INGESTION = "Ingestion"
QUERIES = "Queries"
SERVICE = "Service"

TAGS: Mapping[str, str] = {
    INGESTION: "Endpoints that take events in.",
    QUERIES: "Endpoints that answer questions.",
    SERVICE: "Endpoints about the service itself, for operators and machines.",
}

EXAMPLE_REQUEST_ID = "5f0c6a1be27d4c39"
_TIMESTAMP_MS = 1_767_607_200_000


class EndpointDoc(Struct, frozen=True):
    """How an endpoint is described. `item` is what a body holds, `takes_arrays` whether many."""

    tag: str
    summary: str
    description: str
    response: type[Struct] | None = None
    example_response: Any = None
    item: type[Struct] | None = None
    example: Any = None
    takes_arrays: bool = True


def _count_example(kind: str, count: int) -> dict[str, Any]:
    return {"status": "success", "type": kind, "count": count}


_COLUMN = {"type": "text", "filterable": True, "aggregatable": False}

ENDPOINT_DOCS: Mapping[EndpointSpec, EndpointDoc] = {
    endpoints.TRACK: EndpointDoc(
        INGESTION,
        "Send custom events",
        "Takes one event or an array of them. Batches cost less.",
        CountResponse,
        _count_example("custom_event", 2),
        CustomEvent,
        [
            {
                "name": "signup_completed",
                "anonymousId": "anon_1",
                "sessionId": "sess_1",
                "properties": {"plan": "pro", "seats": 3},
            },
            {
                "name": "purchase",
                "timestamp": _TIMESTAMP_MS,
                "eventId": "order-1001",
                "properties": {"value": 49.5, "currency": "EUR"},
            },
        ],
    ),
    endpoints.VITALS: EndpointDoc(
        INGESTION,
        "Send web vitals",
        "Takes an array of measurements, or one. They are rows of `performance`.",
        CountResponse,
        _count_example("web_vitals", 1),
        WebVital,
        [
            {
                "timestamp": _TIMESTAMP_MS,
                "path": "/pricing",
                "metricName": "LCP",
                "metricValue": 1830.5,
            }
        ],
    ),
    endpoints.ERRORS: EndpointDoc(
        INGESTION,
        "Send client-side errors",
        "Takes an array of error reports, or one. They are rows of `errors`.",
        CountResponse,
        _count_example("error", 1),
        ErrorReport,
        [
            {
                "timestamp": _TIMESTAMP_MS,
                "path": "/checkout",
                "message": "cart is undefined",
                "errorType": "TypeError",
                "filename": "app.js",
                "lineno": 12,
                "colno": 7,
            }
        ],
    ),
    endpoints.BATCH: EndpointDoc(
        INGESTION,
        "Send page views",
        "Takes the page views of browser trackers, an array of them or one. They are rows of"
        " `events`.",
        BatchResponse,
        {
            "status": "success",
            "batch": True,
            "processed": 1,
            "results": [{"status": "success", "type": "track", "eventId": "view-1"}],
        },
        PageView,
        [
            {
                "name": "screen_view",
                "eventId": "view-1",
                "path": "https://shop.example.com/pricing?utm_source=letter",
                "title": "Pricing",
                "referrer": "https://search.example/",
            }
        ],
    ),
    endpoints.PAGE: EndpointDoc(
        INGESTION,
        "Send one page view",
        "Takes one page view, as beacons send it when a page is left.",
        PageResponse,
        {"status": "success", "type": "track"},
        PageView,
        {"name": "page_exit", "path": "https://shop.example.com/pricing", "time_on_page": 12.5},
        takes_arrays=False,
    ),
    endpoints.QUERY: EndpointDoc(
        QUERIES,
        "Run a query",
        "Computes aggregates over one table of one website. What can be asked stands in"
        " [Tables and columns](#tables-and-columns) and [Query language](#query-language).",
        QueryResponse,
        {
            "success": True,
            "data": [
                {"path": "/pricing", "views": 120, "visitors": 86},
                {"path": "/", "views": 97, "visitors": 91},
            ],
            "meta": {"rowCount": 2, "executionTime": 7.4, "limit": 10, "truncated": False},
            "requestId": EXAMPLE_REQUEST_ID,
        },
        QueryRequest,
        {
            "query": {
                "table": "events",
                "selects": [
                    {"field": "*", "aggregate": "count", "alias": "views"},
                    {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"},
                ],
                "filters": [
                    {"field": "event_name", "operator": "eq", "value": "screen_view"},
                    {"field": "country", "operator": "in", "value": ["DE", "AT", "CH"]},
                ],
                "groupBy": ["path"],
            },
            "startDate": "2026-01-01",
            "endDate": "2026-01-31",
            "timezone": "Europe/Berlin",
            "limit": 10,
        },
        takes_arrays=False,
    ),
    endpoints.SCHEMA: EndpointDoc(
        QUERIES,
        "Describe what can be asked",
        "Names tables, columns, functions, operators and limits. Needs no credentials and does not"
        " count for the rate limit.",
        SchemaResponse,
        {
            "tables": [
                {
                    "name": "events",
                    "description": "page views and custom events",
                    "columns": [
                        {"name": "path", **_COLUMN, "description": "path of the page"},
                    ],
                }
            ],
            "aggregates": ["count", "uniq"],
            "operators": ["eq", "ne"],
            "limits": {"maxSelects": 10},
        },
    ),
    endpoints.HEALTH: EndpointDoc(
        SERVICE,
        "Is it alive?",
        "Answers 200 for as long as the process lives.",
        HealthResponse,
        {"status": "alive"},
    ),
    endpoints.READY: EndpointDoc(
        SERVICE,
        "Does it work?",
        "Answers 200 when events can be made durable and queries can be answered, else 503. Names"
        " each part.",
        ReadyResponse,
        {"status": "ready", "parts": {"log": "ready", "engine": "ready"}},
    ),
    endpoints.METRICS: EndpointDoc(
        SERVICE, "Metrics", "All metrics of all processes, in the text format of Prometheus."
    ),
    endpoints.OPENAPI: EndpointDoc(SERVICE, "This description", "An OpenAPI 3.1 document."),
    endpoints.DOCS: EndpointDoc(SERVICE, "This page", "The same description, for people."),
}
"""Every endpoint of the table, in the order in which it is described."""
