"""Endpoints that ingest events."""

from collections.abc import Mapping
from typing import Any

from headrace.http import endpoints
from headrace.http.apidocs.descriptions.description import (
    EXAMPLE_TIMESTAMP_MS,
    INGESTION,
    OperationDoc,
)
from headrace.http.endpoint_spec import Operation
from headrace.http.routes.ingest import BatchResponse, CountResponse, SingleResponse
from headrace.model.wire import (
    CustomEvent,
    Engagement,
    ErrorReport,
    Identification,
    PageView,
    WebVital,
)


def _count_example(kind: str, count: int) -> dict[str, Any]:
    return {"status": "success", "type": kind, "count": count}


DESCRIPTIONS: Mapping[Operation, OperationDoc] = {
    endpoints.TRACK.first: OperationDoc(
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
                "timestamp": EXAMPLE_TIMESTAMP_MS,
                "eventId": "order-1001",
                "properties": {"value": 49.5, "currency": "EUR"},
            },
        ],
    ),
    endpoints.VITALS.first: OperationDoc(
        INGESTION,
        "Send web vitals",
        "Takes one measurement or an array of measurements. They become rows of `performance`.",
        CountResponse,
        _count_example("web_vitals", 1),
        WebVital,
        [
            {
                "timestamp": EXAMPLE_TIMESTAMP_MS,
                "path": "/pricing",
                "metricName": "LCP",
                "metricValue": 1830.5,
            }
        ],
    ),
    endpoints.ERRORS.first: OperationDoc(
        INGESTION,
        "Send client-side errors",
        "Takes one error report or an array of error reports. They become rows of `errors`.",
        CountResponse,
        _count_example("error", 1),
        ErrorReport,
        [
            {
                "timestamp": EXAMPLE_TIMESTAMP_MS,
                "path": "/checkout",
                "message": "cart is undefined",
                "errorType": "TypeError",
                "filename": "app.js",
                "lineno": 12,
                "colno": 7,
            }
        ],
    ),
    endpoints.BATCH.first: OperationDoc(
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
    endpoints.PAGE.first: OperationDoc(
        INGESTION,
        "Send one page view",
        "Takes one page view, such as the beacon that a tracker sends when a page is closed.",
        SingleResponse,
        {"status": "success", "type": "track"},
        PageView,
        {"name": "page_exit", "path": "https://shop.example.com/pricing", "time_on_page": 12.5},
        takes_arrays=False,
    ),
    endpoints.ENGAGEMENT.first: OperationDoc(
        INGESTION,
        "Send how pages were used",
        "Takes what trackers measure while a page is open, one object or an array of at most 100."
        " Each becomes an event named `engagement`; keys that are no fields become its properties.",
        CountResponse,
        _count_example("engagement", 1),
        Engagement,
        [
            {
                "timestamp": EXAMPLE_TIMESTAMP_MS,
                "path": "https://shop.example.com/pricing",
                "anonymousId": "anon_1",
                "sessionId": "sess_1",
                "exitType": "navigation",
                "activeTime": 12500,
                "maxScrollDepth": 80,
            }
        ],
    ),
    endpoints.IDENTIFY.first: OperationDoc(
        INGESTION,
        "Tell whose account a visitor has",
        "Takes one object. It becomes an event named `identify`; `traits` becomes a property."
        " Nothing is merged: later events name the profile themselves, with `profileId`.",
        SingleResponse,
        {"status": "success", "type": "identify"},
        Identification,
        {"profileId": "account-17", "anonymousId": "anon_1", "traits": {"plan": "pro"}},
        takes_arrays=False,
    ),
}
