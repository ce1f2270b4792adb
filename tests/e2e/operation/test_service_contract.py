"""The operational endpoints: health, readiness, metrics, OpenAPI and its page."""

import re

import msgspec
import pytest

from headrace.base.settings import load_settings
from headrace.http.apidocs.openapi import make_document
from headrace.query.schema.document import query_schema
from testing.service import BASE_SETTINGS, PATIENT_QUERIES, Service
from tests.e2e.envelopes import METHOD_NOT_ALLOWED, error_envelope, outcome

SERVICE_PATHS = ["/health", "/ready", "/metrics", "/openapi.json", "/docs", "/v1/query/schema"]
SAMPLE = re.compile(r'^[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+$|^# ')


def test_health_is_200(service: Service) -> None:
    assert outcome(service.get("/health")) == (200, {"status": "alive"})


def test_ready_is_200_and_lists_each_component(service: Service) -> None:
    parts = dict.fromkeys(("log", "disk", "backlog", "engine"), "ready")

    service.wait_ready()  # an engine that does not answer within a second is unavailable
    assert outcome(service.get("/ready")) == (200, {"status": "ready", "parts": parts})


def test_metrics_are_in_prometheus_text_format(service: Service, website: str) -> None:
    service.post(f"/track?website_id={website}", [{"name": "a"}] * 3)

    response = service.get("/metrics")

    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    strange = [line for line in response.text.splitlines() if not SAMPLE.match(line)]
    assert strange == []


def test_metrics_count_received_items_over_all_workers(service: Service, website: str) -> None:
    service.count(website, "events")  # waits until all earlier events are stored and counted
    before = accepted_events(service)

    for _ in range(20):
        service.post(f"/track?website_id={website}", [{"name": "a"}] * 3)
    assert service.count(website, "events") == 60

    assert accepted_events(service) == before + 60


def accepted_events(service: Service) -> float:
    samples = [
        line
        for line in service.get("/metrics").text.splitlines()
        if line.startswith("headrace_items_total{")
        and 'stream="events"' in line
        and 'outcome="accepted"' in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in samples)


def test_metrics_never_name_a_website_or_an_event(service: Service, website: str) -> None:
    service.post(f"/track?website_id={website}", {"name": "very_own_event_name"})

    text = service.get("/metrics").text

    assert website not in text
    assert "very_own_event_name" not in text


def test_openapi_describes_every_endpoint(service: Service) -> None:
    status, document = outcome(service.get("/openapi.json"))

    expected = make_document(load_settings(environment={**BASE_SETTINGS, **PATIENT_QUERIES}))
    assert (status, document) == (200, msgspec.json.decode(msgspec.json.encode(expected)))
    posted = {
        *("/track", "/vitals", "/errors", "/batch", "/", "/engagement", "/identify"),
        *("/v1/query/custom", "/v1/query/funnel", "/v1/query/retention", "/v1/erasures"),
        *("/v1/query/standard", "/v1/query/sql", "/v1/subject-access"),
        *("/v1/admin/organizations", "/v1/admin/websites", "/v1/admin/keys", "/v1/session"),
        "/v1/admin/quarantine/{id}/retry",
    }
    read = {
        *("/health", "/ready", "/metrics", "/openapi.json", "/docs"),
        *("/headrace.js", "/headrace.js.map", "/headrace-extras.js", "/headrace-extras.js.map"),
        *("/headrace-details.js", "/headrace-details.js.map", "/headrace-details.{hash}.js"),
        *("/headrace.{hash}.js", "/headrace-extras.{hash}.js", "/headrace.json"),
        *("/v1/query/schema", "/v1/query/values", "/v1/export", "/v1/storage"),
        *("/v1/erasures/{id}", "/v1/admin/keys/{id}", "/v1/admin/audit"),
        *("/v1/saved", "/v1/saved/{name}", "/v1/saved/{name}.{format}", "/v1/live"),
        *("/v1/erasures", "/v1/session"),
        *("/v1/admin/organizations", "/v1/admin/websites", "/v1/admin/keys"),
        *("/v1/admin/organizations/{id}", "/v1/admin/websites/{id}"),
        *("/v1/admin/quarantine", "/v1/admin/quarantine/{id}"),
    }
    changed = {"/v1/admin/organizations/{id}", "/v1/admin/websites/{id}"}
    deleted = {*changed, "/v1/admin/keys/{id}", "/v1/saved/{name}", "/v1/session"}
    by_method = {
        method: {path for path, methods in document["paths"].items() if method in methods}
        for method in ("post", "get", "put", "patch", "delete")
    }
    assert by_method == {
        "post": posted,
        "get": read,
        "put": {"/v1/saved/{name}"},
        "patch": changed,
        "delete": deleted,
    }


def test_docs_is_a_self_contained_page(service: Service) -> None:
    response = service.get("/docs")

    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/html")
    for word in ["/track", "/vitals", "/errors", "/v1/query/custom", "metricName"]:
        assert word in response.text
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', response.text)


def test_query_schema_needs_no_credentials(service: Service) -> None:
    status, schema = outcome(service.get("/v1/query/schema"))

    assert (status, schema) == (200, query_schema())
    tables = [table["name"] for table in schema["tables"]]
    assert tables == ["events", "sessions", "profiles", "errors", "performance"]
    assert list(schema) == ["tables", "aggregates", "operators", "limits"]


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/openapi.json", "/docs"])
def test_other_method_is_405(service: Service, path: str) -> None:
    response = service.post(path, {})

    assert error_envelope(response) == METHOD_NOT_ALLOWED
    assert response.headers["Allow"] == "GET, HEAD"


def test_unknown_path_below_v1_has_the_query_envelope(service: Service) -> None:
    expected = {"success": False, "error": "Not found", "code": "NOT_FOUND"}

    for response in (service.get("/v1/nowhere"), service.post("/v1/query/nowhere", {})):
        assert error_envelope(response) == (404, expected)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/query/custom", "POST, OPTIONS"), ("/v1/query/schema", "GET, HEAD, OPTIONS")],
)
def test_other_method_below_v1_has_the_query_envelope(
    service: Service, path: str, allowed: str
) -> None:
    response = service.http.delete(service.url + path, timeout=60)

    expected = {"success": False, "error": "Method not allowed", "code": "METHOD_NOT_ALLOWED"}
    assert error_envelope(response) == (405, expected)
    assert response.headers["Allow"] == allowed


@pytest.mark.parametrize("path", SERVICE_PATHS)
def test_response_is_the_same_for_head_without_a_body(service: Service, path: str) -> None:
    response = service.http.head(service.url + path, timeout=60)

    assert (response.status_code, response.content) == (200, b"")


def test_request_ids_are_not_repeated(service: Service) -> None:
    ids = {service.post("/track", {}).json()["requestId"] for _ in range(50)}

    assert len(ids) == 50
