"""Repeated items (eventId) and repeated requests (Idempotency-Key)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from testing.service import Json, Service, bearer, empty_counts
from tests.e2e.envelopes import (
    ENDPOINTS,
    ITEMS,
    TABLES,
    error_envelope,
    field_errors,
    outcome,
    success,
)

EVENT_ENDPOINTS = ["/track", "/batch", "/"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_repeated_event_id_is_acknowledged_and_not_stored(
    service: Service, website: str, endpoint: str
) -> None:
    item = {**ITEMS[endpoint], "eventId": "one"}

    for _ in range(3):
        response = service.post(f"{endpoint}?client_id={website}", item)
        assert outcome(response) == (200, success(endpoint, event_ids=("one",)))

    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_repeated_event_id_in_one_batch_counts_and_is_stored_once(
    service: Service, website: str, endpoint: str
) -> None:
    item = {**ITEMS[endpoint], "eventId": "one"}
    batch = [{**item, "sessionId": "first"}, {**item, "sessionId": "second"}, ITEMS[endpoint]]

    response = service.post(f"{endpoint}?client_id={website}", batch)

    assert outcome(response) == (200, success(endpoint, 3, ("one", "one", None)))
    stored = service.counts(website, TABLES[endpoint], "session_id")
    assert stored == {"first": 1, "": 1}


def test_first_of_repeated_items_stays(service: Service, website: str) -> None:
    path = f"/track?website_id={website}"

    service.post(path, {"name": "first", "eventId": "one"})
    service.post(path, {"name": "second", "eventId": "one"})

    assert service.row(website, "events", ["event_name"]) == {"event_name": "first"}


def test_event_ids_are_one_namespace_for_events(service: Service, website: str) -> None:
    for endpoint in EVENT_ENDPOINTS:
        response = service.post(
            f"{endpoint}?client_id={website}", {"name": endpoint, "eventId": "x"}
        )
        assert response.status_code == 200

    assert service.row(website, "events", ["event_name"]) == {"event_name": "/track"}


def test_event_ids_of_the_three_event_kinds_are_independent(service: Service, website: str) -> None:
    for endpoint in ["/track", "/vitals", "/errors"]:
        service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], "eventId": "x"})

    counts = [service.count(website, table) for table in ("events", "performance", "errors")]
    assert counts == [1, 1, 1]


def test_event_ids_of_two_websites_are_independent(service: Service, website: str) -> None:
    other = service.website()

    for one in (website, other):
        service.post(f"/track?website_id={one}", {"name": "a", "eventId": "x"})

    assert (service.count(website, "events"), service.count(other, "events")) == (1, 1)


@pytest.mark.parametrize("is_keyless_first", [True, False], ids=["keyless first", "key first"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_event_ids_of_calls_with_and_without_a_key_are_independent(
    service: Service, website: str, endpoint: str, is_keyless_first: bool
) -> None:
    """Website ids are public: a caller without a key must not suppress a server's events."""
    item = {**ITEMS[endpoint], "eventId": "order-1"}
    no_key: dict[str, str] = {}
    keyless = [("keyless", no_key), ("keyless repeat", no_key)]
    keyed = [("key", bearer(service.master)), ("key repeat", bearer(service.master))]

    for session, headers in keyless + keyed if is_keyless_first else keyed + keyless:
        response = service.post(
            f"{endpoint}?client_id={website}", {**item, "sessionId": session}, headers=headers
        )
        assert outcome(response) == (200, success(endpoint, event_ids=("order-1",)))

    rows_by_id = service.rows(website, TABLES[endpoint], ["session_id"])
    assert sorted(row["session_id"] for row in rows_by_id) == ["key", "keyless"]


def test_event_ids_of_two_keys_are_one_namespace(service: Service, website: str) -> None:
    for name in ("first", "second"):
        key = service.key(websites=[website])
        service.post("/track", {"name": name, "eventId": "x"}, headers=bearer(key))

    assert service.counts(website, "events", "event_name") == {"first": 1}


def test_event_id_of_a_rejected_request_is_not_remembered(service: Service, website: str) -> None:
    path = f"/track?website_id={website}"

    faulty = service.post(path, [{"name": "a", "eventId": "x"}, {"name": ""}])
    service.post(path, {"name": "b", "eventId": "x"})

    assert field_errors(faulty) == [(1, "name")]
    assert service.row(website, "events", ["event_name"]) == {"event_name": "b"}


def test_event_ids_are_compared_exactly(service: Service, website: str) -> None:
    ids = ["x", "X", " x", "x ", "xx", "x\u0301", "\u00e9", "e\u0301"]

    service.post(f"/track?website_id={website}", [{"name": "a", "eventId": one} for one in ids])

    assert service.count(website, "events") == len(ids)


def test_only_one_of_many_concurrent_items_is_stored_for_an_event_id(
    service: Service, website: str
) -> None:
    responses = at_once(service, f"/track?website_id={website}", {"name": "a", "eventId": "x"}, {})

    assert [outcome(response) for response in responses] == [(200, success("/track"))] * len(
        responses
    )
    assert service.count(website, "events") == 1


def at_once(
    service: Service, path: str, body: Json, headers: dict[str, str], times: int = 16
) -> list[requests.Response]:
    """Send the same request over many connections concurrently."""

    def send(_: int) -> requests.Response:
        with service.session() as session:
            return session.post(service.url + path, json=body, headers=headers, timeout=30)

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(send, range(times)))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_repeated_request_gets_the_first_response_whatever_its_valid_body(
    service: Service, website: str, endpoint: str
) -> None:
    path, headers = f"{endpoint}?client_id={website}", {"Idempotency-Key": "once"}
    more = ITEMS["/"] if endpoint == "/" else [ITEMS[endpoint]] * 2

    first = service.post(path, ITEMS[endpoint], headers=headers)
    second = service.post(path, more, headers=headers)

    assert outcome(first) == outcome(second) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_repeated_request_with_an_invalid_body_gets_its_own_400(
    service: Service, website: str, endpoint: str
) -> None:
    path, headers = f"{endpoint}?client_id={website}", {"Idempotency-Key": "once"}

    first = service.post(path, ITEMS[endpoint], headers=headers)
    invalid = service.post(path, {**ITEMS[endpoint], "eventId": 5}, headers=headers)
    again = service.post(path, ITEMS[endpoint], headers=headers)

    assert field_errors(invalid) == [(0, "eventId")]
    assert outcome(first) == outcome(again) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


def test_idempotency_keys_of_two_paths_are_independent(service: Service, website: str) -> None:
    for endpoint in EVENT_ENDPOINTS:
        service.post(
            f"{endpoint}?client_id={website}",
            {"name": endpoint},
            headers={"Idempotency-Key": "once"},
        )

    stored = service.counts(website, "events", "event_name")
    assert stored == dict.fromkeys(EVENT_ENDPOINTS, 1)


def test_idempotency_keys_of_two_websites_are_independent(service: Service, website: str) -> None:
    other = service.website()

    for one in (website, other):
        service.post(f"/track?website_id={one}", {"name": "a"}, headers={"Idempotency-Key": "once"})

    assert (service.count(website, "events"), service.count(other, "events")) == (1, 1)


def test_website_is_one_credential_wherever_it_is_named(service: Service, website: str) -> None:
    headers = {"Idempotency-Key": "once"}
    named = {**headers, "databuddy-client-id": website}

    service.post(f"/track?website_id={website}", {"name": "a"}, headers=headers)
    service.post(f"/track?client_id={website}", {"name": "b"}, headers=headers)
    service.post("/track", {"name": "c"}, headers=named)
    service.post("/track", {"name": "d", "websiteId": website}, headers=headers)

    assert service.counts(website, "events", "event_name") == {"a": 1}


def test_api_key_and_website_are_two_credentials(service: Service, website: str) -> None:
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": f"once {website}"}

    service.post(path, {"name": "a"}, headers=headers)
    service.post(path, {"name": "b"}, headers={**headers, **bearer(service.master)})

    assert service.counts(website, "events", "event_name") == {"a": 1, "b": 1}


def test_idempotency_keys_of_two_api_keys_are_independent(service: Service, website: str) -> None:
    for key in (service.key(websites=[website]), service.key(websites=[website])):
        headers = {**bearer(key), "Idempotency-Key": "once"}
        assert service.post("/track", {"name": "a"}, headers=headers).status_code == 200

    assert service.count(website, "events") == 2


def test_rejected_request_is_not_replayed(service: Service, website: str) -> None:
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": "once"}

    rejected = service.post(path, {"name": ""}, headers=headers)
    accepted = service.post(path, {"name": "a"}, headers=headers)

    assert field_errors(rejected) == [(0, "name")]
    assert outcome(accepted) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_request_rejected_for_its_website_is_not_remembered(service: Service, website: str) -> None:
    service.website()  # a second one: the key has no default website
    headers = {**bearer(service.master), "Idempotency-Key": f"for {website}"}

    rejected = service.post("/track", {"name": "a"}, headers=headers)
    accepted = service.post("/track", {"name": "a", "websiteId": website}, headers=headers)

    assert field_errors(rejected) == [(0, "websiteId")]
    assert outcome(accepted) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_only_one_of_many_concurrent_requests_is_stored_for_an_idempotency_key(
    service: Service, website: str
) -> None:
    responses = at_once(
        service, f"/track?website_id={website}", [{"name": "a"}] * 2, {"Idempotency-Key": "once"}
    )

    assert [outcome(response) for response in responses] == [(200, success("/track", 2))] * len(
        responses
    )
    assert service.count(website, "events") == 2


def test_idempotency_key_of_255_is_accepted(service: Service, website: str) -> None:
    headers = {"Idempotency-Key": "k" * 255}

    for _ in range(2):
        response = service.post(f"/track?website_id={website}", {"name": "a"}, headers=headers)
        assert outcome(response) == (200, success("/track"))

    assert service.count(website, "events") == 1


def test_empty_idempotency_key_counts_as_none(service: Service, website: str) -> None:
    for _ in range(2):
        response = service.post(
            f"/track?website_id={website}", {"name": "a"}, headers={"Idempotency-Key": ""}
        )
        assert outcome(response) == (200, success("/track"))

    assert service.count(website, "events") == 2


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_longer_idempotency_key_is_400(service: Service, quiet_website: str, endpoint: str) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"{endpoint}?client_id={quiet_website}",
            ITEMS[endpoint],
            headers={"Idempotency-Key": "k" * 256},
        )

        assert error_envelope(response) == (
            400,
            {"status": "error", "message": "Invalid Idempotency-Key", "code": "INVALID_BODY"},
        )
