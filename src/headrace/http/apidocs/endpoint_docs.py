"""The description of each endpoint: its summary, purpose, and examples of request and response."""

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
    INGESTION: "Endpoints that ingest events.",
    QUERIES: "Endpoints that run queries.",
    SERVICE: "Endpoints about the service itself, for operators and monitoring.",
}

EXAMPLE_REQUEST_ID = "5f0c6a1be27d4c39"
_TIMESTAMP_MS = 1_767_607_200_000


class EndpointDoc(Struct, frozen=True):
    """The description of an endpoint.

    `item` is the type of the items in a request body, None for endpoints without a body.
    `takes_arrays` is whether a body may be an array of items.
    """

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
        "Takes one event or an array of events. A batch costs less than single events.",
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
        "Takes one measurement or an array of measurements. They become rows of `performance`.",
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
        "Takes one error report or an array of error reports. They become rows of `errors`.",
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
        "Takes the page views of browser trackers, one or an array. They become rows of `events`.",
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
        "Takes one page view, such as the beacon that a tracker sends when a page is closed.",
        PageResponse,
        {"status": "success", "type": "track"},
        PageView,
        {"name": "page_exit", "path": "https://shop.example.com/pricing", "time_on_page": 12.5},
        takes_arrays=False,
    ),
    endpoints.QUERY: EndpointDoc(
        QUERIES,
        "Run a query",
        "Computes aggregates over one table of one website. See"
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
        "Describe the query schema",
        "Lists all tables, columns, functions, operators and limits. Needs no credentials and does"
        " not count towards the rate limit.",
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
        "Liveness",
        "Responds with 200 while the process is alive.",
        HealthResponse,
        {"status": "alive"},
    ),
    endpoints.READY: EndpointDoc(
        SERVICE,
        "Readiness",
        "Responds with 200 if events can be made durable and queries can be answered, else with"
        " 503. Reports the status of each part.",
        ReadyResponse,
        {"status": "ready", "parts": {"log": "ready", "engine": "ready"}},
    ),
    endpoints.METRICS: EndpointDoc(
        SERVICE, "Metrics", "All metrics of all processes, in the Prometheus text format."
    ),
    endpoints.OPENAPI: EndpointDoc(SERVICE, "This description", "An OpenAPI 3.1 document."),
    endpoints.DOCS: EndpointDoc(
        SERVICE, "This page", "The same description, as a page for people."
    ),
}
"""Every endpoint, in the order of the reference."""
