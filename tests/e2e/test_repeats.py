"""Repeated items (eventId) and repeated requests (Idempotency-Key)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.e2e.envelopes import ENDPOINTS, ITEMS, TABLES, faults, outcome, refusal, success
from tests.e2e.service import Json, Service, bearer, nothing_stored

EVENT_ENDPOINTS = ["/track", "/batch", "/"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_repeated_event_id_is_acknowledged_and_not_stored(
    service: Service, website: str, endpoint: str
) -> None:
    item = {**ITEMS[endpoint], "eventId": "one"}

    for _ in range(3):
        reply = service.post(f"{endpoint}?client_id={website}", item)
        assert outcome(reply) == (200, success(endpoint, event_ids=("one",)))

    assert service.count(website, TABLES[endpoint]) == 1


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch"])
def test_repeated_event_id_in_one_batch_counts_and_is_stored_once(
    service: Service, website: str, endpoint: str
) -> None:
    item = {**ITEMS[endpoint], "eventId": "one"}
    batch = [{**item, "sessionId": "first"}, {**item, "sessionId": "second"}, ITEMS[endpoint]]

    reply = service.post(f"{endpoint}?client_id={website}", batch)

    assert outcome(reply) == (200, success(endpoint, 3, ("one", "one", None)))
    stored = service.counts(website, TABLES[endpoint], "session_id")
    assert stored == {"first": 1, "": 1}


def test_first_of_repeated_items_stays(service: Service, website: str) -> None:
    path = f"/track?website_id={website}"

    service.post(path, {"name": "first", "eventId": "one"})
    service.post(path, {"name": "second", "eventId": "one"})

    assert service.row(website, "events", ["event_name"]) == {"event_name": "first"}


def test_event_ids_are_one_namespace_for_events(service: Service, website: str) -> None:
    for endpoint in EVENT_ENDPOINTS:
        reply = service.post(f"{endpoint}?client_id={website}", {"name": endpoint, "eventId": "x"})
        assert reply.status_code == 200

    assert service.row(website, "events", ["event_name"]) == {"event_name": "/track"}


def test_event_ids_of_the_three_streams_do_not_meet(service: Service, website: str) -> None:
    for endpoint in ["/track", "/vitals", "/errors"]:
        service.post(f"{endpoint}?client_id={website}", {**ITEMS[endpoint], "eventId": "x"})

    counts = [service.count(website, table) for table in ("events", "performance", "errors")]
    assert counts == [1, 1, 1]


def test_event_ids_of_two_websites_do_not_meet(service: Service, website: str) -> None:
    other = service.website()

    for one in (website, other):
        service.post(f"/track?website_id={one}", {"name": "a", "eventId": "x"})

    assert (service.count(website, "events"), service.count(other, "events")) == (1, 1)


def test_event_id_of_a_refused_request_is_not_remembered(service: Service, website: str) -> None:
    path = f"/track?website_id={website}"

    faulty = service.post(path, [{"name": "a", "eventId": "x"}, {"name": ""}])
    service.post(path, {"name": "b", "eventId": "x"})

    assert faults(faulty) == [(1, "name")]
    assert service.row(website, "events", ["event_name"]) == {"event_name": "b"}


def test_event_ids_are_told_apart_exactly(service: Service, website: str) -> None:
    ids = ["x", "X", " x", "x ", "xx", "x\u0301", "\u00e9", "e\u0301"]

    service.post(f"/track?website_id={website}", [{"name": "a", "eventId": one} for one in ids])

    assert service.count(website, "events") == len(ids)


def test_only_one_of_many_at_once_is_stored_for_an_event_id(service: Service, website: str) -> None:
    replies = at_once(service, f"/track?website_id={website}", {"name": "a", "eventId": "x"}, {})

    assert [outcome(reply) for reply in replies] == [(200, success("/track"))] * len(replies)
    assert service.count(website, "events") == 1


def at_once(
    service: Service, path: str, body: Json, headers: dict[str, str], times: int = 16
) -> list[requests.Response]:
    """Send the same request over many connections at the same time."""

    def send(_: int) -> requests.Response:
        with service.session() as session:
            return session.post(service.url + path, json=body, headers=headers, timeout=30)

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(send, range(times)))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_repeated_request_gets_the_first_reply_whatever_its_body(
    service: Service, website: str, endpoint: str
) -> None:
    path, headers = f"{endpoint}?client_id={website}", {"Idempotency-Key": "once"}
    more = ITEMS["/"] if endpoint == "/" else [ITEMS[endpoint]] * 2

    first = service.post(path, ITEMS[endpoint], headers=headers)
    second = service.post(path, more, headers=headers)

    assert outcome(first) == outcome(second) == (200, success(endpoint))
    assert service.count(website, TABLES[endpoint]) == 1


def test_idempotency_keys_of_two_paths_do_not_meet(service: Service, website: str) -> None:
    for endpoint in EVENT_ENDPOINTS:
        service.post(
            f"{endpoint}?client_id={website}",
            {"name": endpoint},
            headers={"Idempotency-Key": "once"},
        )

    stored = service.counts(website, "events", "event_name")
    assert stored == dict.fromkeys(EVENT_ENDPOINTS, 1)


def test_idempotency_keys_of_two_websites_do_not_meet(service: Service, website: str) -> None:
    other = service.website()

    for one in (website, other):
        service.post(f"/track?website_id={one}", {"name": "a"}, headers={"Idempotency-Key": "once"})

    assert (service.count(website, "events"), service.count(other, "events")) == (1, 1)


def test_same_website_is_the_same_credential_wherever_it_is_named(
    service: Service, website: str
) -> None:
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


def test_idempotency_keys_of_two_api_keys_do_not_meet(service: Service, website: str) -> None:
    for key in (service.key(websites=[website]), service.key(websites=[website])):
        headers = {**bearer(key), "Idempotency-Key": "once"}
        assert service.post("/track", {"name": "a"}, headers=headers).status_code == 200

    assert service.count(website, "events") == 2


def test_refused_request_is_not_remembered(service: Service, website: str) -> None:
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": "once"}

    refused = service.post(path, {"name": ""}, headers=headers)
    accepted = service.post(path, {"name": "a"}, headers=headers)

    assert faults(refused) == [(0, "name")]
    assert outcome(accepted) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_request_refused_for_its_website_is_not_remembered(service: Service, website: str) -> None:
    headers = {**bearer(service.master), "Idempotency-Key": f"for {website}"}

    refused = service.post("/track", {"name": "a"}, headers=headers)
    accepted = service.post("/track", {"name": "a", "websiteId": website}, headers=headers)

    assert faults(refused) == [(0, "websiteId")]
    assert outcome(accepted) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_only_one_of_many_at_once_is_stored_for_an_idempotency_key(
    service: Service, website: str
) -> None:
    replies = at_once(
        service, f"/track?website_id={website}", [{"name": "a"}] * 2, {"Idempotency-Key": "once"}
    )

    assert [outcome(reply) for reply in replies] == [(200, success("/track", 2))] * len(replies)
    assert service.count(website, "events") == 2


def test_idempotency_key_of_255_is_taken(service: Service, website: str) -> None:
    headers = {"Idempotency-Key": "k" * 255}

    for _ in range(2):
        reply = service.post(f"/track?website_id={website}", {"name": "a"}, headers=headers)
        assert outcome(reply) == (200, success("/track"))

    assert service.count(website, "events") == 1


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_longer_idempotency_key_is_400(service: Service, quiet_website: str, endpoint: str) -> None:
    with nothing_stored(service, quiet_website):
        reply = service.post(
            f"{endpoint}?client_id={quiet_website}",
            ITEMS[endpoint],
            headers={"Idempotency-Key": "k" * 256},
        )

        status, body = refusal(reply)
        assert (status, body["status"]) == (400, "error")
        assert body["message"] == "Invalid Idempotency-Key"
