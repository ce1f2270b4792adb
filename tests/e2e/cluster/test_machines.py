"""Two machines share PostgreSQL and Valkey; each has its own store."""

import signal
from collections.abc import Iterator, Mapping
from os import kill

import pytest
import requests

from testing.servers.shared_state import PostgreSQL, ValkeyServer
from testing.service import Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import UNAVAILABLE, error_envelope

pytestmark = pytest.mark.slow

COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
ACCEPTED_ONCE = {"Idempotency-Key": "order-1"}

Machines = tuple[Service, Service]


@pytest.fixture
def settings(postgresql: PostgreSQL, valkey_server: ValkeyServer) -> Iterator[Mapping[str, str]]:
    """The settings of all machines; restarts both servers after the test, which may stop them."""
    valkey_server.empty()
    yield {
        "HEADRACE_DATABASE_URL": postgresql.new_database(),
        "HEADRACE_VALKEY_URL": valkey_server.url,
        "HEADRACE_LOAD_INTERVAL_S": "0.05",
    }
    for server in (postgresql.server, valkey_server.server):
        server.kill()
        server.start()


@pytest.fixture
def machines(dedicated_service: ServiceMaker, settings: Mapping[str, str]) -> Machines:
    """Two machines that start concurrently, the first ones of their cluster."""
    first, second = dedicated_service(settings=settings), dedicated_service(settings=settings)
    for machine in (first, second):
        machine.launch()
    for machine in (first, second):
        machine.wait_ready()
    return first, second


def send(machine: Service, website: str, *ids: str, **options: object) -> requests.Response:
    body = [{"name": "order", "eventId": name} for name in ids]
    return machine.post(f"/track?website_id={website}", body, **options)


def stored(machine: Service, website: str) -> int:
    count: int = machine.answer(website, COUNT)[0]["n"]
    return count


def test_website_and_key_changes_apply_on_every_machine(
    machines: Machines,
) -> None:
    first, second = machines
    website, key = first.website(), first.key()
    assert send(second, website, "1").status_code == 200
    assert second.send_query(website, COUNT, key=key).status_code == 200
    first.command("key", "revoke", key.id)
    wait_until(
        lambda: second.send_query(website, COUNT, key=key).status_code == 401,
        "the other machine knows that the key is revoked",
    )


def test_duplicate_sent_to_another_machine_is_stored_once(machines: Machines) -> None:
    first, second = machines
    website = first.website()
    for machine, names in ((first, "abc"), (second, "bcd"), (first, "cde"), (second, "xyz")):
        assert send(machine, website, *names).json()["count"] == 3
        assert stored(machine, website) > 0
    assert (stored(first, website), stored(second, website)) == (4, 4)


def test_idempotent_retry_replays_the_response_on_any_machine(
    machines: Machines,
) -> None:
    first, second = machines
    website = first.website()
    responses = [
        send(machine, website, *names, headers=ACCEPTED_ONCE).json()["count"]
        for machine, names in ((first, "ab"), (second, "c"), (first, "def"))
    ]
    assert responses == [2, 2, 2]
    assert (stored(first, website), stored(second, website)) == (2, 0)


def test_machines_share_one_rate_limit(
    dedicated_service: ServiceMaker, settings: Mapping[str, str]
) -> None:
    limited = {**settings, "HEADRACE_QUERY_RATE_LIMIT": "7"}
    machines = [dedicated_service(settings=limited).start() for _ in range(2)]
    website, key = machines[0].website(), machines[0].key()
    statuses = [
        machines[number % 2].send_query(website, COUNT, key=key).status_code for number in range(10)
    ]
    assert statuses == [200] * 7 + [429] * 3


def test_ingestion_continues_without_valkey_and_queries_wait_for_it(
    machines: Machines, valkey_server: ValkeyServer
) -> None:
    first, second = machines
    website = first.website()
    send(first, website, "a", "b")
    assert stored(first, website) == 2
    valkey_server.server.kill()
    assert send(second, website, "b", "c").status_code == 200
    assert error_envelope(send(second, website, "d", headers=ACCEPTED_ONCE)) == UNAVAILABLE
    assert second.send_query(website, COUNT).status_code == 503
    assert second.get("/ready").json()["parts"]["shared"] == "unavailable"
    valkey_server.server.start()
    second.wait_ready()
    assert send(second, website, "d", headers=ACCEPTED_ONCE).status_code == 200
    assert stored(second, website) == 2


def test_claims_of_a_crashed_machine_are_reused_after_its_restart(
    machines: Machines,
) -> None:
    first, second = machines
    website = first.website()
    names = [str(number) for number in range(200)]
    for _ in range(3):
        assert send(first, website, *names).status_code == 200
        first.kill()
        first.restart()
        first.wait_ready()
    assert send(second, website, *names, "new").status_code == 200
    assert (stored(first, website), stored(second, website)) == (200, 1)


def test_known_keys_work_without_the_directory_and_unknown_ones_wait_for_it(
    machines: Machines, postgresql: PostgreSQL
) -> None:
    first, _ = machines
    website = first.website()
    assert send(first, website, "a").status_code == 200
    known = bearer(first.master)
    assert first.send_query(website, COUNT).status_code == 200
    postgresql.server.kill()
    assert send(first, website, "b", headers=known).status_code == 200
    assert stored(first, website) == 2
    unknown = {"Authorization": "Bearer hr_unknown"}
    assert error_envelope(send(first, website, "c", headers=unknown)) == UNAVAILABLE
    assert error_envelope(send(first, "web_unknown", "d")) == UNAVAILABLE
    postgresql.server.start()
    wait_until(
        lambda: send(first, website, "c", headers=unknown).status_code == 401,
        "the directory is read again",
    )
    assert send(first, website, "e").status_code == 200


def test_requests_fail_when_the_directory_is_down_for_too_long(
    dedicated_service: ServiceMaker, settings: Mapping[str, str], postgresql: PostgreSQL
) -> None:
    machine = dedicated_service(
        settings={**settings, "HEADRACE_DIRECTORY_MAX_STALENESS_S": "5"}
    ).start()
    website = machine.website()
    assert send(machine, website, "a").status_code == 200
    postgresql.server.kill()
    wait_until(lambda: send(machine, website).status_code == 503, "the snapshot is too old")
    assert error_envelope(send(machine, website, "b")) == UNAVAILABLE
    assert machine.get("/ready").json()["parts"]["directory"] == "unavailable"
    assert machine.get("/health").status_code == 200
    postgresql.server.start()
    machine.wait_ready()
    assert stored(machine, website) == 1


@pytest.mark.parametrize("headers", [{}, ACCEPTED_ONCE], ids=["event-id", "idempotency-key"])
def test_acknowledgement_may_wait_for_the_store(
    dedicated_service: ServiceMaker, settings: Mapping[str, str], headers: Mapping[str, str]
) -> None:
    rate_headers = {**settings, "HEADRACE_ACK_MODE": "stored", "HEADRACE_ACK_TIMEOUT_S": "1"}
    machine = dedicated_service(settings=rate_headers).start()
    website = machine.website()
    wait_until(
        lambda: send(machine, website, "a").status_code == 200, "an event is stored within 1 s"
    )
    (engine,) = machine.child_pids("engine")
    kill(engine, signal.SIGSTOP)
    try:
        late = send(machine, website, "b", headers=headers)
        successor = send(machine, website, "c")
    finally:
        kill(engine, signal.SIGCONT)
    assert (late.status_code, late.json()["code"]) == (500, "INTERNAL")
    assert error_envelope(successor) == UNAVAILABLE
    wait_until(
        lambda: send(machine, website, "b", headers=headers).status_code == 200,
        "acknowledgements go on",
    )
    assert stored(machine, website) == 2


def test_data_directory_of_a_machine_verifies_without_shared_services(machines: Machines) -> None:
    first, _ = machines
    website = first.website()
    send(first, website, "a", headers=ACCEPTED_ONCE)
    assert stored(first, website) == 1
    first.stop()
    names = {path.name for path in first.data.iterdir()}
    assert names.isdisjoint({"directory.sqlite", "repeats.sqlite"})
    assert first.command("verify")["problems"] == []
