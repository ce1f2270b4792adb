"""The CORS headers that browsers of other origins get."""

import pytest
import requests

from testing.service import Service, bearer
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import ENDPOINTS, ITEMS

ORIGIN = "https://shop.example"
HEADERS = {
    "content-type",
    "authorization",
    "databuddy-client-id",
    "databuddy-sdk-name",
    "databuddy-sdk-version",
    "idempotency-key",
}


def listed(value: str) -> set[str]:
    return {part.strip().lower() for part in value.split(",")}


def preflight(
    service: Service, path: str, *, origin: str = ORIGIN, headers: str = "content-type"
) -> requests.Response:
    sent_query = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": headers,
    }
    return service.http.options(
        service.url + path, headers={"Origin": origin, **sent_query}, timeout=30
    )


@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:3000", "null"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_preflight_allows_the_exact_origin_with_credentials(
    service: Service, endpoint: str, origin: str
) -> None:
    response = preflight(service, f"{endpoint}?client_id=web_x", origin=origin)

    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["Access-Control-Allow-Origin"] == origin
    assert response.headers["Access-Control-Allow-Credentials"] == "true"
    assert listed(response.headers["Access-Control-Allow-Methods"]) == {"post", "options"}
    assert listed(response.headers["Access-Control-Allow-Headers"]) >= HEADERS
    assert "origin" in listed(response.headers["Vary"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_response_names_the_exact_origin_with_credentials(
    service: Service, website: str, endpoint: str
) -> None:
    response = service.post(
        f"{endpoint}?client_id={website}", ITEMS[endpoint], headers={"Origin": ORIGIN}
    )

    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert response.headers["Access-Control-Allow-Credentials"] == "true"
    assert "origin" in listed(response.headers["Vary"])


@pytest.mark.parametrize(
    ("path", "data", "headers", "status"),
    [
        ("/track", b"{", {}, 400),
        ("/track", b'{"name":"a"}', {}, 401),
        ("/track?website_id=web_x", b'{"name":"a"}', {}, 404),
        ("/track", b"x" * 10_485_761, {}, 413),
        ("/track", b"{}", {"Content-Type": "image/gif"}, 415),
        ("/track", b"{}", {"Content-Encoding": "compress"}, 415),
    ],
    ids=["400", "401", "404", "413", "415 by type", "415 by encoding"],
)
def test_error_response_has_cors_headers(
    service: Service, path: str, data: bytes, headers: dict[str, str], status: int
) -> None:
    response = service.post(path, data=data, headers={"Origin": ORIGIN, **headers})

    assert response.status_code == status
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert response.headers["Access-Control-Allow-Credentials"] == "true"
    assert "origin" in listed(response.headers["Vary"])


def test_query_allows_no_origin_unless_configured(service: Service, website: str) -> None:
    path = f"/v1/query/custom?website_id={website}"

    sent_query = preflight(service, path)
    response = service.post(path, {}, headers={"Origin": ORIGIN, **bearer(service.master)})

    assert "Access-Control-Allow-Origin" not in sent_query.headers
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.slow
def test_query_allows_configured_origins_only(dedicated_service: ServiceMaker) -> None:
    origins = "https://app.example, https://other.example:8443"
    service = dedicated_service(settings={"HEADRACE_QUERY_ORIGINS": origins}).start()
    path = "/v1/query/custom"

    allowed = preflight(service, path, origin="https://app.example", headers="authorization")
    with_port = preflight(service, path, origin="https://other.example:8443")
    rejected = preflight(service, path, origin=ORIGIN)
    response = service.post(path, {}, headers={"Origin": "https://app.example"})

    assert allowed.status_code == 204
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "authorization" in listed(allowed.headers["Access-Control-Allow-Headers"])
    assert with_port.headers["Access-Control-Allow-Origin"] == "https://other.example:8443"
    assert "Access-Control-Allow-Origin" not in rejected.headers
    assert response.headers["Access-Control-Allow-Origin"] == "https://app.example"
