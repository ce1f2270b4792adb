"""Endpoints about the service itself, and the files of the tracker."""

from collections.abc import Mapping

from headrace.http import endpoints
from headrace.http.apidocs.descriptions.description import (
    SERVICE,
    OperationDoc,
)
from headrace.http.endpoint_spec import Operation
from headrace.http.routes.operations import HealthResponse, ReadyResponse
from headrace.http.tracker.files import PinnedScript

DESCRIPTIONS: Mapping[Operation, OperationDoc] = {
    endpoints.HEALTH.first: OperationDoc(
        SERVICE,
        "Liveness",
        "Responds with 200 while the process is alive.",
        HealthResponse,
        {"status": "alive"},
    ),
    endpoints.READY.first: OperationDoc(
        SERVICE,
        "Readiness",
        "Responds with 200 if events can be made durable and queries can be answered, else with"
        " 503. Reports the status of each part.",
        ReadyResponse,
        {"status": "ready", "parts": {"log": "ready", "engine": "ready"}},
    ),
    endpoints.METRICS.first: OperationDoc(
        SERVICE, "Metrics", "All metrics of all processes, in the Prometheus text format."
    ),
    endpoints.OPENAPI.first: OperationDoc(SERVICE, "This description", "An OpenAPI 3.1 document."),
    endpoints.DOCS.first: OperationDoc(
        SERVICE, "This page", "The same description, as a page for people."
    ),
    endpoints.TRACKER.first: OperationDoc(
        SERVICE,
        "The tracker",
        "The script that pages load: page views, errors, web vitals and events of a website.",
    ),
    endpoints.TRACKER_MAP.first: OperationDoc(
        SERVICE, "Source map of the tracker", "For debuggers."
    ),
    endpoints.TRACKER_EXTRAS.first: OperationDoc(
        SERVICE,
        "The second file of the tracker",
        "Web vitals, errors and clicks; the tracker loads it when its page is idle.",
    ),
    endpoints.TRACKER_EXTRAS_MAP.first: OperationDoc(
        SERVICE, "Source map of the second file", "For debuggers."
    ),
    endpoints.TRACKER_DETAILS.first: OperationDoc(
        SERVICE,
        "The third file of the tracker",
        "Causes of web vitals, and frames a second; pages that want them load it themselves.",
    ),
    endpoints.TRACKER_DETAILS_MAP.first: OperationDoc(
        SERVICE, "Source map of the third file", "For debuggers."
    ),
    endpoints.TRACKER_PINNED.first: OperationDoc(
        SERVICE,
        "A version of the tracker",
        "The script under the hash of its content; it never changes. Every release keeps the"
        " versions of earlier ones.",
    ),
    endpoints.TRACKER_EXTRAS_PINNED.first: OperationDoc(
        SERVICE,
        "A version of the second file",
        "The same for the second file, which the tracker loads by hash and integrity value.",
    ),
    endpoints.TRACKER_DETAILS_PINNED.first: OperationDoc(
        SERVICE, "A version of the third file", "The same for the third file."
    ),
    endpoints.TRACKER_MANIFEST.first: OperationDoc(
        SERVICE,
        "How to pin the tracker",
        "The path of the current version of the tracker, and its integrity value for the"
        " attribute `integrity` of a script element.",
        PinnedScript,
        {
            "path": "/headrace.5f0c6a1b.js",
            "integrity": "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC",
        },
    ),
}
