"""Limits that protect the service from expensive queries, and the origins that may query."""

from collections.abc import Callable

import pytest
import requests

from testing.service import Service, bearer
from tests.e2e.query.queries import body, event, query, select, send

CUSTOM = "/v1/query/custom"
PAGE = "https://dashboard.example"
ServiceMaker = Callable[..., Service]


def run_query(service: Service, website: str, origin: str | None = None) -> requests.Response:
    everything = query(select("path", "uniq"), group_by=["path", "title", "properties.k"])
    headers = bearer(service.master) | ({"Origin": origin} if origin else {})
    return service.post(f"{CUSTOM}?website_id={website}", body(everything), headers=headers)


def rejection(response: requests.Response) -> tuple[int, dict[str, object]]:
    full_body = response.json()
    assert full_body.pop("requestId")
    return response.status_code, full_body


LIMITS = [
    pytest.param(
        "QUERY_TIMEOUT_S", "0.000001", (504, "QUERY_TIMEOUT", "Query timed out"), id="time"
    ),
    pytest.param(
        "QUERY_MAX_MEMORY_BYTES", "1000", (422, "QUERY_TOO_LARGE", "Query too large"), id="memory"
    ),
    pytest.param(
        "QUERY_QUEUE_TIMEOUT_S",
        "0.000001",
        (503, "UNAVAILABLE", "Service unavailable"),
        id="waiting",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "value", "expected"), LIMITS)
def test_query_over_its_limits_is_cancelled(
    dedicated_service: ServiceMaker, setting: str, value: str, expected: tuple[int, str, str]
) -> None:
    service = dedicated_service(settings={f"HEADRACE_{setting}": value}).start()
    website = service.website()
    send(service, website, *(event(path=f"/{n}" * 200) for n in range(1000)))
    status, code, error = expected
    response = run_query(service, website)
    assert rejection(response) == (status, {"success": False, "error": error, "code": code})
    assert ("Retry-After" in response.headers) is (status == 503)


@pytest.mark.slow
def test_only_configured_origins_may_query_from_browsers(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings={"HEADRACE_QUERY_ORIGINS": PAGE}).start()
    website = service.website()
    allowed = run_query(service, website, PAGE)
    assert allowed.headers["Access-Control-Allow-Origin"] == PAGE
    assert allowed.headers["Vary"] == "Origin"
    assert (
        "Access-Control-Allow-Origin"
        not in run_query(service, website, "https://a.example").headers
    )
    assert "Access-Control-Allow-Origin" not in run_query(service, website).headers
    preflight = service.http.options(
        service.url + CUSTOM,
        headers={
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        },
        timeout=30,
    )
    assert preflight.status_code in (200, 204)
    assert preflight.headers["Access-Control-Allow-Origin"] == PAGE
    header_fields = preflight.headers["Access-Control-Allow-Headers"].lower()
    assert "authorization" in header_fields
    assert "content-type" in header_fields


def test_no_origin_is_configured_by_default(service: Service, quiet_website: str) -> None:
    assert "Access-Control-Allow-Origin" not in run_query(service, quiet_website, PAGE).headers
