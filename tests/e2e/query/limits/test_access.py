"""Access to the query endpoint, and the order of the checks that precede those of the body."""

import gzip
import json
from typing import Any

import pytest
import requests

from testing.service import Key, Service, bearer, wait_until
from tests.e2e.ingestion.test_credentials import PROPAGATION_S
from tests.e2e.query.queries import body

CUSTOM = "/v1/query/custom"
TOO_LONG = b" " * (1_048_576 + 1)


def run_query(
    service: Service, website: str | None, *, key: Key | None = None, **options: Any
) -> requests.Response:
    query_string = "" if website is None else f"?website_id={website}"
    headers = {**(bearer(key) if key else {}), **options.pop("headers", {})}
    return service.post(
        CUSTOM + query_string, options.pop("sent", body()), headers=headers, **options
    )


def output(response: requests.Response) -> tuple[int, dict[str, Any]]:
    """Return the status and the body without the requestId, which must be present."""
    full_body = response.json()
    request_id = full_body.pop("requestId")
    assert isinstance(request_id, str)
    assert request_id
    return response.status_code, full_body


def rejection(status: int, code: str, error: str) -> tuple[int, dict[str, Any]]:
    return status, {"success": False, "error": error, "code": code}


AUTHENTICATION_REQUIRED = rejection(401, "UNAUTHORIZED", "Authentication required")
INVALID_KEY = rejection(401, "INVALID_API_KEY", "Invalid API key")
MISSING_SCOPE = rejection(403, "MISSING_SCOPE", "API key missing read:data scope")
NOT_FOUND = rejection(404, "WEBSITE_NOT_FOUND", "Website not found")
MISSING_ORGANIZATION = rejection(
    400, "WEBSITE_MISSING_ORGANIZATION", "Website missing organization"
)
WEBSITE_REQUIRED = rejection(400, "MISSING_WEBSITE_ID", "website_id is required")
METHOD_NOT_ALLOWED = rejection(405, "METHOD_NOT_ALLOWED", "Method not allowed")
TOO_LARGE = rejection(413, "PAYLOAD_TOO_LARGE", "Payload too large")


@pytest.fixture(scope="module")
def private(service: Service) -> str:
    return service.website()


@pytest.fixture(scope="module")
def public(service: Service) -> str:
    return service.website(public=True)


@pytest.fixture(scope="module")
def foreign(service: Service) -> str:
    return service.website(organization=service.organization("another"))


@pytest.fixture(scope="module")
def writer(service: Service) -> Key:
    """A key with write scope only."""
    return service.key("track:events")


@pytest.fixture(scope="module")
def reader_of_private(service: Service, private: str) -> Key:
    """A key that is limited to the private website."""
    return service.key("read:data", websites=[private])


def test_key_with_read_scope_is_accepted(
    service: Service, private: str, reader_of_private: Key
) -> None:
    assert output(run_query(service, private, key=reader_of_private))[0] == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_scheme_counts_in_any_case_and_blanks_are_trimmed(
    service: Service, private: str, scheme: str
) -> None:
    headers = {"Authorization": f"{scheme}   {service.master.secret}  "}
    assert run_query(service, private, headers=headers).status_code == 200


def test_x_api_key_header_is_a_key_too(service: Service, private: str) -> None:
    headers = {"x-api-key": service.master.secret}
    assert run_query(service, private, headers=headers).status_code == 200


def test_authorization_wins_over_x_api_key(service: Service, private: str) -> None:
    headers = {"Authorization": "Bearer hr_wrong", "x-api-key": service.master.secret}
    assert output(run_query(service, private, headers=headers)) == INVALID_KEY


def test_another_scheme_counts_as_no_key(service: Service, private: str) -> None:
    basic = {"Authorization": f"Basic {service.master.secret}"}
    assert output(run_query(service, private, headers=basic)) == AUTHENTICATION_REQUIRED


def test_another_scheme_leaves_x_api_key_to_decide(service: Service, private: str) -> None:
    headers = {"Authorization": "Basic abc", "x-api-key": service.master.secret}
    assert run_query(service, private, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Authorization": "Bearer "}, id="empty bearer"),
        pytest.param({"Authorization": "Bearer"}, id="bearer without a blank"),
        pytest.param({"Authorization": "Bearer hr_unknown"}, id="unknown"),
        pytest.param({"x-api-key": ""}, id="empty x-api-key"),
        pytest.param({"x-api-key": "hr_unknown"}, id="unknown x-api-key"),
    ],
)
@pytest.mark.parametrize("website", ["private", "public", "unknown"])
def test_invalid_key_is_401_whatever_the_website(
    request: pytest.FixtureRequest, service: Service, website: str, headers: dict[str, str]
) -> None:
    name = website if website == "unknown" else request.getfixturevalue(website)
    assert output(run_query(service, name, headers=headers)) == INVALID_KEY


def test_expired_key_is_401(service: Service, private: str) -> None:
    key = service.key("read:data", expires="2020-01-01T00:00:00Z")
    assert output(run_query(service, private, key=key)) == INVALID_KEY


def test_revoked_key_is_soon_401(service: Service, private: str) -> None:
    key = service.key("read:data")
    assert run_query(service, private, key=key).status_code == 200
    service.command("key", "revoke", key.id)
    wait_until(
        lambda: output(run_query(service, private, key=key)) == INVALID_KEY,
        "the key is refused",
        timeout_s=PROPAGATION_S,
    )


def test_deleted_website_is_soon_404(service: Service, website: str) -> None:
    assert run_query(service, website, key=service.master).status_code == 200
    service.command("website", "delete", website)
    wait_until(
        lambda: output(run_query(service, website, key=service.master)) == NOT_FOUND,
        "the website is not found",
        timeout_s=PROPAGATION_S,
    )


def test_private_and_unknown_websites_are_indistinguishable_without_credentials(
    service: Service, private: str
) -> None:
    assert output(run_query(service, private)) == AUTHENTICATION_REQUIRED
    assert output(run_query(service, "web_unknown")) == AUTHENTICATION_REQUIRED


def test_key_without_read_scope_is_403(service: Service, private: str, writer: Key) -> None:
    assert output(run_query(service, private, key=writer)) == MISSING_SCOPE


def test_key_without_read_scope_is_403_on_a_public_website(
    service: Service, public: str, writer: Key
) -> None:
    assert output(run_query(service, public, key=writer)) == MISSING_SCOPE


def test_unknown_foreign_and_unlisted_websites_are_the_same_404(
    service: Service, website: str, foreign: str, reader_of_private: Key
) -> None:
    responses = [
        run_query(service, name, key=reader_of_private)
        for name in ("web_unknown", foreign, website)
    ]
    assert [output(response) for response in responses] == [NOT_FOUND] * 3
    texts = {response.text.replace(response.json()["requestId"], "ID") for response in responses}
    assert len(texts) == 1
    headers = [
        {
            name: value
            for name, value in response.headers.items()
            if response.json()["requestId"] != value
        }
        for response in responses
    ]
    assert headers[0].keys() == headers[1].keys() == headers[2].keys()


def test_key_without_a_list_can_read_every_website_of_its_organization(
    service: Service, private: str, website: str
) -> None:
    key = service.key("read:data")
    responses = [run_query(service, name, key=key).status_code for name in (private, website)]
    assert responses == [200, 200]


def test_public_website_needs_no_credentials(service: Service, public: str) -> None:
    assert run_query(service, public).status_code == 200


def test_public_website_is_readable_by_keys_of_other_organizations(
    service: Service, public: str, reader_of_private: Key
) -> None:
    foreign_key = service.key("read:data", organization=service.organization("strangers"))
    assert run_query(service, public, key=foreign_key).status_code == 200
    assert run_query(service, public, key=reader_of_private).status_code == 200


@pytest.fixture(scope="module")
def orphans(service: Service) -> dict[str, str]:
    """A public and a private website whose organization was deleted."""
    organization = service.organization("deleted")
    websites = {
        "public": service.website(organization=organization, public=True),
        "private": service.website(organization=organization),
    }
    service.command("organization", "delete", organization)
    wait_until(
        lambda: output(run_query(service, websites["public"])) == MISSING_ORGANIZATION,
        "the deletion is known",
        timeout_s=PROPAGATION_S,
    )
    return websites


@pytest.mark.parametrize(
    ("website", "has_key", "expected"),
    [
        ("public", False, MISSING_ORGANIZATION),
        ("public", True, MISSING_ORGANIZATION),
        ("private", False, AUTHENTICATION_REQUIRED),
        ("private", True, NOT_FOUND),
    ],
)
def test_website_whose_organization_was_deleted_is_not_readable(
    service: Service, orphans: dict[str, str], website: str, has_key: bool, expected: Any
) -> None:
    key = service.master if has_key else None
    assert output(run_query(service, orphans[website], key=key)) == expected


def test_first_website_id_that_is_not_empty_is_used(service: Service, private: str) -> None:
    query_string = f"?website_id=&website_id={private}&website_id=web_unknown"
    response = service.post(CUSTOM + query_string, body(), headers=bearer(service.master))
    assert response.status_code == 200


@pytest.mark.parametrize("query_string", ["", "?website_id=", "?client_id=web_unknown"])
def test_query_without_website_id_is_400(service: Service, query_string: str) -> None:
    response = service.post(CUSTOM + query_string, body(), headers=bearer(service.master))
    assert output(response) == WEBSITE_REQUIRED


def test_every_response_has_a_request_id_of_its_own(service: Service, private: str) -> None:
    ids = {run_query(service, private, key=service.master).json()["requestId"] for _ in range(5)}
    ids |= {run_query(service, private).json()["requestId"] for _ in range(5)}
    assert len(ids) == 10


# Order of checks: method, size, credentials, scope, (rate limit,) website_id, website, body.


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_other_methods_are_405_before_anything_else(service: Service, method: str) -> None:
    response = service.http.request(method, service.url + CUSTOM, data=TOO_LONG, timeout=30)
    assert output(response) == METHOD_NOT_ALLOWED
    assert "POST" in response.headers["Allow"]


def test_too_long_a_body_is_413_before_credentials(service: Service) -> None:
    assert output(service.post(CUSTOM, data=TOO_LONG)) == TOO_LARGE


def test_more_objects_than_the_bound_are_413(service: Service, private: str) -> None:
    def run(objects: int) -> tuple[int, dict[str, Any]]:
        nested = b'{"query":[' + b"{}," * (objects - 3) + b"{}]}"
        return output(run_query(service, private, key=service.master, data=nested))

    assert run(100_001) == TOO_LARGE
    assert run(100_000)[0] == 400


def test_body_of_one_mebibyte_is_accepted(service: Service, private: str) -> None:
    sent = json.dumps(body()).encode().ljust(1_048_576)
    assert run_query(service, private, key=service.master, data=sent).status_code == 200


def test_missing_credentials_come_before_website_id_and_body(service: Service) -> None:
    assert output(service.post(CUSTOM, data=b"{")) == AUTHENTICATION_REQUIRED


def test_missing_scope_comes_before_website_id_and_body(service: Service, writer: Key) -> None:
    assert output(service.post(CUSTOM, data=b"{", headers=bearer(writer))) == MISSING_SCOPE


def test_missing_website_id_comes_before_the_body(service: Service) -> None:
    assert (
        output(service.post(CUSTOM, data=b"{", headers=bearer(service.master))) == WEBSITE_REQUIRED
    )


def test_unknown_website_comes_before_the_body(service: Service) -> None:
    assert output(run_query(service, "web_unknown", key=service.master, data=b"{")) == NOT_FOUND


# Encodings and content types are those of ingestion.


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/json", "application/vnd.api+json", "text/plain;charset=UTF-8", None],
)
def test_json_may_come_under_these_content_types(
    service: Service, private: str, content_type: str | None
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    sent = json.dumps(body()).encode()
    response = run_query(service, private, key=service.master, data=sent, headers=headers)
    assert response.status_code == 200


def test_other_content_types_are_415(service: Service, private: str) -> None:
    headers = {"Content-Type": "application/xml"}
    response = run_query(service, private, key=service.master, data=b"{}", headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_body_may_be_compressed(service: Service, private: str) -> None:
    sent = gzip.compress(json.dumps(body()).encode())
    headers = {"Content-Encoding": "gzip"}
    response = run_query(service, private, key=service.master, data=sent, headers=headers)
    assert response.status_code == 200


def test_unknown_encodings_are_415(service: Service, private: str) -> None:
    headers = {"Content-Encoding": "lzma"}
    response = run_query(service, private, key=service.master, data=b"{}", headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "UNSUPPORTED_ENCODING")


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/query/custom/more", "/v1/"])
def test_unknown_path_below_v1_is_404_in_the_query_envelope(service: Service, path: str) -> None:
    assert output(service.get(path)) == rejection(404, "NOT_FOUND", "Not found")
