"""API keys on the ingestion endpoints: scopes, and the errors of invalid keys."""

import json
from contextlib import closing
from http.client import HTTPResponse

import pytest
import requests

from headrace.base.errors import OperatorError
from testing.service import Key, Service, bearer, empty_counts, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.connections import connect, encode_head
from tests.e2e.envelopes import (
    ENDPOINTS,
    INVALID_API_KEY,
    ITEMS,
    MISSING_ORGANIZATION,
    MISSING_SCOPE,
    SCOPE_MISMATCH,
    TABLES,
    UNAUTHORIZED,
    WEBSITE_NOT_FOUND,
    error_envelope,
    field_errors,
    outcome,
    success,
)

Headers = dict[str, str]

PROPAGATION_S = 10
"""How long a change may take: the documented limit is five seconds; a busy machine needs more."""

KEY_FORMS = {
    "bearer": {"Authorization": "Bearer {key}"},
    "bearer in lower case": {"Authorization": "bearer {key}"},
    "bearer in upper case": {"Authorization": "BEARER {key}"},
    "bearer with blanks": {"Authorization": "Bearer   {key}  "},
    "x-api-key": {"x-api-key": "{key}"},
    "x-api-key with blanks": {"x-api-key": "{key}  "},
    "x-api-key beside another scheme": {
        "Authorization": "Basic dTpw",
        "x-api-key": "{key}",
    },
    "bearer beside a broken x-api-key": {
        "Authorization": "Bearer {key}",
        "x-api-key": "nonsense",
    },
}

BROKEN_KEYS = {
    "unknown": {"Authorization": "Bearer hr_0123456789abcdef0123456789abcdef"},
    "not even like a key": {"Authorization": "Bearer nonsense"},
    "not ASCII": {"Authorization": "Bearer schlüssel"},
    "empty": {"Authorization": "Bearer"},
    "blank": {"Authorization": "Bearer   "},
    "unknown x-api-key": {"x-api-key": "nonsense"},
    "empty x-api-key": {"x-api-key": ""},
    "broken bearer beside a valid x-api-key": {
        "Authorization": "Bearer nonsense",
        "x-api-key": "{key}",
    },
}


def filled(headers: Headers, key: Key) -> dict[str, bytes]:
    return {name: value.format(key=key.secret).encode() for name, value in headers.items()}


@pytest.fixture(scope="module")
def limited_key(service: Service, quiet_website: str) -> Key:
    return service.key(websites=[quiet_website])


@pytest.mark.parametrize("headers", KEY_FORMS.values(), ids=KEY_FORMS)
def test_key_is_accepted_in_every_form(service: Service, website: str, headers: Headers) -> None:
    key = service.key("track:events", websites=[website])

    response = service.post("/track", {"name": "signup"}, headers=filled(headers, key))

    assert outcome(response) == (200, success("/track"))
    assert service.row(website, "events", ["event_name"]) == {"event_name": "signup"}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_key_with_scope_is_enough_on_every_endpoint(
    service: Service, website: str, endpoint: str
) -> None:
    key = service.key("track:events", websites=[website])

    response = service.post(endpoint, ITEMS[endpoint], headers=bearer(key))

    assert outcome(response) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("with_identifier", [False, True], ids=["alone", "with identifier"])
@pytest.mark.parametrize("headers", BROKEN_KEYS.values(), ids=BROKEN_KEYS)
def test_broken_key_is_401_also_with_a_valid_identifier(
    service: Service,
    quiet_website: str,
    limited_key: Key,
    headers: Headers,
    with_identifier: bool,
) -> None:
    path = f"/track?website_id={quiet_website}" if with_identifier else "/track"

    with empty_counts(service, quiet_website):
        response = service.post(path, {"name": "signup"}, headers=filled(headers, limited_key))

        assert error_envelope(response) == INVALID_API_KEY


@pytest.mark.parametrize(
    "fields",
    [
        [("Authorization", "Bearer {key}"), ("Authorization", "Bearer {key}")],
        [("Authorization", "Basic dTpw"), ("Authorization", "Bearer {key}")],
        [("x-api-key", "{key}"), ("x-api-key", "{key}")],
    ],
    ids=["two bearers", "another scheme and bearer", "two x-api-key"],
)
def test_repeated_key_header_is_401(
    service: Service, quiet_website: str, limited_key: Key, fields: list[tuple[str, str]]
) -> None:
    body = b'{"name":"signup"}'
    with empty_counts(service, quiet_website), closing(connect(service)) as connection:
        for _ in range(3):  # the heads of later requests come from a cache
            connection.sendall(
                encode_head(
                    f"POST /track?website_id={quiet_website}",
                    *((name, value.format(key=limited_key.secret)) for name, value in fields),
                    ("Content-Type", "application/json"),
                    ("Content-Length", str(len(body))),
                )
                + body
            )
            response = HTTPResponse(connection)
            response.begin()
            full_body = json.loads(response.read())
            assert full_body.pop("requestId")
            assert (response.status, full_body) == INVALID_API_KEY


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_broken_key_is_401_on_every_endpoint(
    service: Service, quiet_website: str, endpoint: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"{endpoint}?client_id={quiet_website}",
            ITEMS[endpoint],
            headers={"Authorization": "Bearer nonsense"},
        )

        assert error_envelope(response) == INVALID_API_KEY


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic dTpw"}], ids=["none", "basic"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_neither_key_nor_identifier_is_401(
    service: Service, endpoint: str, headers: Headers
) -> None:
    response = service.post(endpoint, ITEMS[endpoint], headers=headers)

    assert error_envelope(response) == UNAUTHORIZED


def test_another_scheme_counts_as_no_key(service: Service, website: str) -> None:
    response = service.post(
        f"/track?website_id={website}", {"name": "a"}, headers={"Authorization": "Basic dTpw"}
    )

    assert outcome(response) == (200, success("/track"))


@pytest.mark.parametrize("with_identifier", [False, True], ids=["alone", "with identifier"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_key_without_scope_is_403_also_with_a_valid_identifier(
    service: Service, quiet_website: str, endpoint: str, with_identifier: bool
) -> None:
    key = service.key("read:data", websites=[quiet_website])
    path = f"{endpoint}?website_id={quiet_website}" if with_identifier else endpoint

    with empty_counts(service, quiet_website):
        response = service.post(path, ITEMS[endpoint], headers=bearer(key))

        assert error_envelope(response) == MISSING_SCOPE


def test_expired_key_is_401(service: Service, quiet_website: str) -> None:
    key = service.key(websites=[quiet_website], expires="2024-05-01T12:00:00Z")

    with empty_counts(service, quiet_website):
        assert error_envelope(post_signup(service, key)) == INVALID_API_KEY


def test_key_that_expires_later_is_accepted(service: Service, website: str) -> None:
    key = service.key(websites=[website], expires="2199-01-01T00:00:00Z")

    assert outcome(post_signup(service, key)) == (200, success("/track"))


def test_revoked_key_is_401(service: Service, website: str) -> None:
    key = service.key(websites=[website])
    assert post_signup(service, key).status_code == 200

    service.command("key", "revoke", key.id)

    wait_until(
        lambda: post_signup(service, key).status_code == 401,
        "the key stops working",
        timeout_s=PROPAGATION_S,
    )
    with empty_counts(service, website):
        assert error_envelope(post_signup(service, key)) == INVALID_API_KEY


def test_deleted_website_is_404(service: Service, website: str) -> None:
    path = f"/track?website_id={website}"
    assert service.post(path, {"name": "a"}).status_code == 200

    service.command("website", "delete", website)

    wait_until(
        lambda: service.post(path, {"name": "a"}).status_code == 404,
        "the website stops working",
        timeout_s=PROPAGATION_S,
    )
    assert error_envelope(service.post(path, {"name": "a"})) == WEBSITE_NOT_FOUND


def test_deleting_an_organization_deletes_keys_and_keeps_websites(
    service: Service,
) -> None:
    organization = service.organization()
    website = service.website(organization=organization)
    key = service.key(organization=organization)
    path = f"/track?website_id={website}"
    assert post_signup(service, key).status_code == 200

    service.command("organization", "delete", organization)

    wait_until(
        lambda: service.post(path, {"name": "a"}).status_code == 400,
        "the website stops working",
        timeout_s=PROPAGATION_S,
    )
    assert error_envelope(service.post(path, {"name": "a"})) == MISSING_ORGANIZATION
    wait_until(
        lambda: post_signup(service, key).status_code == 401,
        "the key stops working",
        timeout_s=PROPAGATION_S,
    )
    assert error_envelope(post_signup(service, key)) == INVALID_API_KEY


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_website_without_organization_is_400_on_every_endpoint(
    website_without_organization: str, service: Service, endpoint: str
) -> None:
    response = service.post(f"{endpoint}?client_id={website_without_organization}", ITEMS[endpoint])

    assert error_envelope(response) == MISSING_ORGANIZATION


@pytest.mark.parametrize("is_limited", [False, True], ids=["any key", "key without rights to it"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_website_without_organization_is_400_with_a_key_too(
    website_without_organization: str,
    service: Service,
    limited_key: Key,
    endpoint: str,
    is_limited: bool,
) -> None:
    response = service.post(
        f"{endpoint}?client_id={website_without_organization}",
        ITEMS[endpoint],
        headers=bearer(limited_key if is_limited else service.master),
    )

    assert error_envelope(response) == MISSING_ORGANIZATION


@pytest.fixture(scope="module")
def website_without_organization(service: Service) -> str:
    organization = service.organization()
    website = service.website(organization=organization)
    service.command("organization", "delete", organization)
    path = f"/track?website_id={website}"
    wait_until(
        lambda: service.post(path, {"name": "a"}).status_code == 400,
        "the website stops working",
        timeout_s=PROPAGATION_S,
    )
    return website


def test_default_website_is_the_only_website_of_the_keys_list(
    service: Service, website: str
) -> None:
    key = service.key(websites=[website])

    assert outcome(post_signup(service, key)) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_default_website_is_the_configured_one(service: Service, website: str) -> None:
    other = service.website()
    key = service.key(websites=[other, website], home=website)

    assert outcome(post_signup(service, key)) == (200, success("/track"))
    assert (service.count(website, "events"), service.count(other, "events")) == (1, 0)


def test_deleted_default_website_counts_as_none_configured(service: Service) -> None:
    organization = service.organization()
    home, other = (service.website(organization=organization) for _ in range(2))
    key = service.key(organization=organization, home=home)
    assert outcome(post_signup(service, key)) == (200, success("/track"))

    service.command("website", "delete", home)

    wait_until(
        lambda: (
            post_signup(service, key).status_code == 200
            and service.count(other, "events", key=key) > 0
        ),
        "events go to the only website that is left",
        timeout_s=PROPAGATION_S,
    )


def test_default_website_is_resolved_per_request(service: Service) -> None:
    organization = service.organization()
    key = service.key(organization=organization)
    assert field_errors(post_signup(service, key)) == [(0, "websiteId")]

    only = service.website(organization=organization)
    assert outcome(post_signup(service, key)) == (200, success("/track"))
    assert service.count(only, "events", key=key) == 1

    service.website(organization=organization)
    wait_until(lambda: post_signup(service, key).status_code == 400, "the second website is known")
    assert field_errors(post_signup(service, key)) == [(0, "websiteId")]


def test_key_of_several_websites_without_default_requires_website_id_per_event(
    service: Service, website: str
) -> None:
    key = service.key(websites=[website, service.website()])
    batch = [{"name": "a"}, {"name": "b", "websiteId": website}, {"name": "c"}]

    with empty_counts(service, website):
        response = service.post("/track", batch, headers=bearer(key))

        assert field_errors(response) == [(0, "websiteId"), (2, "websiteId")]


def test_default_website_that_the_key_cannot_write_is_rejected_at_creation(
    service: Service, website: str
) -> None:
    with pytest.raises(OperatorError, match="home"):
        service.key(websites=[website], home=service.website())


def test_key_writes_only_websites_of_its_list(service: Service, website: str) -> None:
    other = service.website()
    key = service.key(websites=[website])

    with empty_counts(service, other):
        response = service.post(f"/track?website_id={other}", {"name": "a"}, headers=bearer(key))

        assert error_envelope(response) == SCOPE_MISMATCH


def test_key_writes_no_website_of_another_organization(service: Service, website: str) -> None:
    organization = service.organization()
    service.website(organization=organization)
    key = service.key(organization=organization)

    with empty_counts(service, website):
        response = service.post(f"/track?website_id={website}", {"name": "a"}, headers=bearer(key))

        assert error_envelope(response) == SCOPE_MISMATCH


def test_default_website_does_not_replace_an_unauthorized_website(
    service: Service, website: str
) -> None:
    other = service.website()
    key = service.key(websites=[website])

    with empty_counts(service, website, other):
        response = service.post(
            "/track", [{"name": "a"}, {"name": "b", "websiteId": other}], headers=bearer(key)
        )

        assert error_envelope(response) == SCOPE_MISMATCH


def test_secrets_are_not_listed(service: Service, website: str) -> None:
    key = service.key(websites=[website])

    listed = service.command("key", "list")

    assert [one for one in listed if one["id"] == key.id]
    assert key.secret not in str(listed)


def test_secret_is_long_and_identified_by_its_prefix(service: Service, website: str) -> None:
    secret = service.key(websites=[website]).secret

    assert secret.startswith("hr_")
    assert len(secret) >= len("hr_") + 32


def test_website_and_key_created_by_cli_work_immediately(service: Service) -> None:
    website = service.command("website", "create", "--name", "shop")["id"]
    scopes = ["--scope", "track:events", "--scope", "read:data"]
    made = service.command("key", "create", *scopes, "--website", website)
    key = Key(made["key"], made["id"])

    response = post_signup(service, key)

    assert outcome(response) == (200, success("/track"))
    assert service.row(website, "events", ["event_name"], key=key) == {"event_name": "signup"}


def test_keys_created_while_the_service_is_down_work_when_it_is_up(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service()
    website = service.website()
    key = service.key()

    service.start()

    assert outcome(post_signup(service, key)) == (200, success("/track"))
    assert service.count(website, "events") == 1


def post_signup(service: Service, key: Key) -> requests.Response:
    return service.post("/track", {"name": "signup"}, headers=bearer(key))
