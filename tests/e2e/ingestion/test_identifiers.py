"""Website identifiers: accepted locations, precedence, and the website that an event goes to."""

import pytest

from testing.service import Json, Service, bearer, empty_counts
from tests.e2e.envelopes import (
    ENDPOINTS,
    INVALID_BODY,
    ITEMS,
    ORIGIN_NOT_AUTHORIZED,
    SCOPE_MISMATCH,
    TABLES,
    UNAUTHORIZED,
    WEBSITE_NOT_FOUND,
    Refusal,
    error_envelope,
    outcome,
    success,
)

Location = tuple[str, dict[str, str], dict[str, str]]

IDENTIFIER_LOCATIONS: dict[str, Location] = {
    "query website_id": ("?website_id={id}", {}, {}),
    "query client_id": ("?client_id={id}", {}, {}),
    "header": ("", {"databuddy-client-id": "{id}"}, {}),
    "body": ("", {}, {"websiteId": "{id}"}),
}


def filled(values: dict[str, str], website: str) -> dict[str, str]:
    return {name: value.format(id=website) for name, value in values.items()}


@pytest.mark.parametrize("location", IDENTIFIER_LOCATIONS.values(), ids=IDENTIFIER_LOCATIONS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_identifier_is_accepted_in_every_location(
    service: Service, website: str, endpoint: str, location: Location
) -> None:
    query, headers, fields = location

    response = service.post(
        endpoint + query.format(id=website),
        {**ITEMS[endpoint], **filled(fields, website)},
        headers=filled(headers, website),
    )

    assert outcome(response) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("location", IDENTIFIER_LOCATIONS.values(), ids=IDENTIFIER_LOCATIONS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_unknown_identifier_is_404(service: Service, endpoint: str, location: Location) -> None:
    query, headers, fields = location

    response = service.post(
        endpoint + query.format(id="web_nowhere"),
        {**ITEMS[endpoint], **filled(fields, "web_nowhere")},
        headers=filled(headers, "web_nowhere"),
    )

    assert error_envelope(response) == WEBSITE_NOT_FOUND


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_unknown_identifier_is_404_with_a_key_too(service: Service, endpoint: str) -> None:
    response = service.post(
        f"{endpoint}?website_id=web_nowhere", ITEMS[endpoint], headers=bearer(service.master)
    )

    assert error_envelope(response) == WEBSITE_NOT_FOUND


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/track?website_id={first}&client_id={second}", {}),
        ("/track?client_id={second}&website_id={first}", {}),
        ("/track?website_id={first}", {"databuddy-client-id": "{second}"}),
        ("/track?client_id={first}", {"databuddy-client-id": "{second}"}),
        ("/track?website_id=&client_id={first}", {}),
        ("/track?website_id=&client_id=", {"databuddy-client-id": "{first}"}),
    ],
    ids=[
        "website_id before client_id",
        "website_id after client_id",
        "website_id before the header",
        "client_id before the header",
        "empty website_id is passed over",
        "empty query is passed over",
    ],
)
def test_first_non_empty_identifier_is_used(
    service: Service, website: str, path: str, headers: dict[str, str]
) -> None:
    names = {"first": website, "second": "web_nowhere"}

    response = service.post(
        path.format(**names),
        {"name": "signup"},
        headers={name: value.format(**names) for name, value in headers.items()},
    )

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_empty_identifiers_count_as_none(service: Service) -> None:
    response = service.post(
        "/track?website_id=&client_id=",
        {"name": "a", "websiteId": ""},
        headers={"databuddy-client-id": ""},
    )

    assert error_envelope(response) == UNAUTHORIZED


def test_first_unknown_identifier_is_404_though_a_later_one_is_known(
    service: Service, quiet_website: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id=web_nowhere&client_id={quiet_website}", {"name": "a"}
        )

        assert error_envelope(response) == WEBSITE_NOT_FOUND


def test_first_events_website_is_the_batchs_without_a_key(service: Service, website: str) -> None:
    batch = [{"name": "a", "websiteId": website}, {"name": "b"}]

    response = service.post("/track", batch)

    assert outcome(response) == (200, success("/track", 2))
    assert service.count(website, "events") == 2


def test_later_events_website_does_not_identify_the_batch(
    service: Service, quiet_website: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            "/track", [{"name": "a"}, {"name": "b", "websiteId": quiet_website}]
        )

        assert error_envelope(response) == UNAUTHORIZED


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_event_of_another_website_than_the_requests_is_403_without_a_key(
    service: Service, quiet_website: str, endpoint: str
) -> None:
    other = service.website()

    with empty_counts(service, quiet_website, other):
        response = service.post(
            f"{endpoint}?client_id={quiet_website}", {**ITEMS[endpoint], "websiteId": other}
        )

        assert error_envelope(response) == SCOPE_MISMATCH


def test_event_with_the_requests_website_is_accepted(service: Service, website: str) -> None:
    response = service.post(f"/track?client_id={website}", {"name": "a", "websiteId": website})

    assert outcome(response) == (200, success("/track"))


def test_one_event_of_another_website_rejects_the_batch(
    service: Service, quiet_website: str
) -> None:
    other = service.website()
    batch = [{"name": "a"}, {"name": "b", "websiteId": other}]

    with empty_counts(service, quiet_website, other):
        response = service.post(f"/track?website_id={quiet_website}", batch)

        assert error_envelope(response) == SCOPE_MISMATCH


def test_with_a_key_each_event_goes_to_its_own_website(service: Service, website: str) -> None:
    other = service.website()
    batch: Json = [{"name": "a"}, {"name": "b", "websiteId": other}]

    response = service.post(f"/track?website_id={website}", batch, headers=bearer(service.master))

    assert outcome(response) == (200, success("/track", 2))
    assert service.rows(website, "events", ["event_name"]) == [{"event_name": "a"}]
    assert service.rows(other, "events", ["event_name"]) == [{"event_name": "b"}]


def test_with_a_key_the_events_website_is_not_the_requests_identifier(
    service: Service, website: str
) -> None:
    home = service.website()
    key = service.key(home=home)
    batch = [{"name": "a", "websiteId": website}, {"name": "b"}]

    response = service.post("/track", batch, headers=bearer(key))

    assert outcome(response) == (200, success("/track", 2))
    assert service.rows(website, "events", ["event_name"]) == [{"event_name": "a"}]
    assert service.rows(home, "events", ["event_name"]) == [{"event_name": "b"}]


def test_identifier_takes_precedence_over_the_keys_default_website(
    service: Service, website: str
) -> None:
    home = service.website()
    key = service.key(home=home)

    response = service.post(f"/track?client_id={website}", {"name": "a"}, headers=bearer(key))

    assert outcome(response) == (200, success("/track"))
    assert (service.count(website, "events"), service.count(home, "events")) == (1, 0)


def test_events_unknown_website_is_404_with_a_key(service: Service, quiet_website: str) -> None:
    batch = [{"name": "a"}, {"name": "b", "websiteId": "web_nowhere"}]

    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}", batch, headers=bearer(service.master)
        )

        assert error_envelope(response) == WEBSITE_NOT_FOUND


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
@pytest.mark.parametrize(
    ("identifier", "expected"),
    [("", UNAUTHORIZED), ("?client_id=web_nowhere", WEBSITE_NOT_FOUND)],
    ids=["no credentials", "unknown website"],
)
def test_empty_batch_is_checked_for_credentials(
    service: Service, endpoint: str, identifier: str, expected: Refusal
) -> None:
    assert error_envelope(service.post(endpoint + identifier, [])) == expected


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_empty_batch_is_checked_for_the_keys_websites(
    service: Service, website: str, endpoint: str
) -> None:
    key = service.key(websites=[service.website()])

    response = service.post(f"{endpoint}?website_id={website}", [], headers=bearer(key))

    assert error_envelope(response) == SCOPE_MISMATCH


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_empty_batch_with_credentials_is_200(
    service: Service, quiet_website: str, endpoint: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(f"{endpoint}?client_id={quiet_website}", [])

        assert outcome(response) == (200, success(endpoint, 0))


def test_body_is_checked_before_credentials(service: Service) -> None:
    status, body = error_envelope(service.post("/track", {"name": ""}))

    assert [field_error["field"] for field_error in body.pop("errors")] == ["name"]
    assert (status, body) == INVALID_BODY


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "https://shop.example",
        "http://localhost:3000",
        "https://www.brand.example",
        "https://a.b.brand.example",
        "http://www.brand.example:8080",
    ],
    ids=[
        "no Origin",
        "empty Origin",
        "exact",
        "exact with port",
        "subdomain",
        "deeper subdomain",
        "subdomain with any scheme and port",
    ],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_authorized_origin_is_accepted(
    service: Service, guarded_website: str, endpoint: str, origin: str | None
) -> None:
    response = service.post(
        f"{endpoint}?client_id={guarded_website}",
        ITEMS[endpoint],
        headers={} if origin is None else {"Origin": origin},
    )

    assert outcome(response) == (200, success(endpoint))


@pytest.mark.parametrize(
    "origin",
    [
        "https://other.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://www.shop.example",
        "http://localhost:3001",
        "https://brand.example",
        "https://notbrand.example",
        "https://brand.example.evil.example",
        "null",
    ],
    ids=[
        "another host",
        "another scheme",
        "another port",
        "subdomain of an exact one",
        "another port than the exact one's",
        "the domain itself",
        "same ending without a dot",
        "domain as a prefix",
        "opaque",
    ],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_other_origin_is_403(
    service: Service, guarded_website: str, endpoint: str, origin: str
) -> None:
    with empty_counts(service, guarded_website):
        response = service.post(
            f"{endpoint}?client_id={guarded_website}",
            ITEMS[endpoint],
            headers={"Origin": origin},
        )

        assert error_envelope(response) == ORIGIN_NOT_AUTHORIZED


def test_origin_does_not_matter_with_a_key(service: Service, guarded_website: str) -> None:
    response = service.post(
        f"/track?website_id={guarded_website}",
        {"name": "a"},
        headers={"Origin": "https://other.example", **bearer(service.master)},
    )

    assert outcome(response) == (200, success("/track"))


def test_origin_does_not_matter_where_the_website_lists_none(
    service: Service, website: str
) -> None:
    response = service.post(
        f"/track?website_id={website}", {"name": "a"}, headers={"Origin": "https://any.example"}
    )

    assert outcome(response) == (200, success("/track"))


@pytest.fixture(scope="module")
def guarded_website(service: Service) -> str:
    return service.website(
        origins=["https://shop.example", "http://localhost:3000", "*.brand.example"]
    )
