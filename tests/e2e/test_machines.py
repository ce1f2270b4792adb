"""Two machines with the same settings, PostgreSQL and Valkey between them, each with its store."""

import signal
from collections.abc import Iterator, Mapping
from os import kill

import pytest
import requests

from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import UNAVAILABLE, refusal
from tests.e2e.service import Service, bearer, wait_until
from tests.servers import PostgreSQL, Shared

pytestmark = pytest.mark.slow

COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
ONCE = {"Idempotency-Key": "order-1"}

Machines = tuple[Service, Service]


@pytest.fixture
def settings(postgresql: PostgreSQL, shared_server: Shared) -> Iterator[Mapping[str, str]]:
    """What all machines are told; both servers run again afterwards, whatever a test does."""
    shared_server.empty()
    yield {
        "HEADRACE_DIRECTORY": postgresql.new_database(),
        "HEADRACE_SHARED": shared_server.url,
        "HEADRACE_LOAD_INTERVAL_S": "0.05",
    }
    for server in (postgresql.server, shared_server.server):
        server.kill()
        server.start()


@pytest.fixture
def machines(own_service: ServiceMaker, settings: Mapping[str, str]) -> Machines:
    """Two machines that began at once, as the first ones that ever did."""
    first, second = own_service(settings=settings), own_service(settings=settings)
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


def test_website_and_key_of_one_machine_work_on_the_other_and_end_there_too(
    machines: Machines,
) -> None:
    first, second = machines
    website, key = first.website(), first.key()
    assert send(second, website, "1").status_code == 200
    assert second.ask(website, COUNT, key=key).status_code == 200
    first.command("key", "revoke", key.id)
    wait_until(
        lambda: second.ask(website, COUNT, key=key).status_code == 401,
        "the other machine knows that the key is revoked",
        timeout_s=5,
    )


def test_repeat_that_goes_to_another_machine_is_stored_once(machines: Machines) -> None:
    first, second = machines
    website = first.website()
    for machine, names in ((first, "abc"), (second, "bcd"), (first, "cde"), (second, "xyz")):
        assert send(machine, website, *names).json()["count"] == 3
        assert stored(machine, website) > 0
    assert (stored(first, website), stored(second, website)) == (4, 4)


def test_requests_with_the_same_key_get_the_reply_of_the_first_on_any_machine(
    machines: Machines,
) -> None:
    first, second = machines
    website = first.website()
    replies = [
        send(machine, website, *names, headers=ONCE).json()["count"]
        for machine, names in ((first, "ab"), (second, "c"), (first, "def"))
    ]
    assert replies == [2, 2, 2]
    assert (stored(first, website), stored(second, website)) == (2, 0)


def test_machines_count_one_rate_limit(
    own_service: ServiceMaker, settings: Mapping[str, str]
) -> None:
    limited = {**settings, "HEADRACE_QUERY_RATE_LIMIT": "7"}
    machines = [own_service(settings=limited).start() for _ in range(2)]
    website, key = machines[0].website(), machines[0].key()
    statuses = [
        machines[number % 2].ask(website, COUNT, key=key).status_code for number in range(10)
    ]
    assert statuses == [200] * 7 + [429] * 3


def test_events_go_on_without_the_shared_server_and_queries_wait_for_it(
    machines: Machines, shared_server: Shared
) -> None:
    first, second = machines
    website = first.website()
    send(first, website, "a", "b")
    assert stored(first, website) == 2
    shared_server.server.kill()
    assert send(second, website, "b", "c").status_code == 200
    assert refusal(send(second, website, "d", headers=ONCE)) == UNAVAILABLE
    assert second.ask(website, COUNT).status_code == 503
    assert second.get("/ready").json()["parts"]["shared"] == "unavailable"
    shared_server.server.start()
    second.wait_ready()
    assert send(second, website, "d", headers=ONCE).status_code == 200
    assert stored(second, website) == 2


def test_claims_of_a_machine_that_died_in_the_middle_are_its_own_when_it_is_back(
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


def test_known_keys_go_on_without_the_directory_and_unknown_ones_wait_for_it(
    machines: Machines, postgresql: PostgreSQL
) -> None:
    first, _ = machines
    website = first.website()
    assert send(first, website, "a").status_code == 200
    known = bearer(first.master)
    assert first.ask(website, COUNT).status_code == 200
    postgresql.server.kill()
    assert send(first, website, "b", headers=known).status_code == 200
    assert stored(first, website) == 2
    unknown = {"Authorization": "Bearer hr_unknown"}
    assert refusal(send(first, website, "c", headers=unknown)) == UNAVAILABLE
    assert refusal(send(first, "web_unknown", "d")) == UNAVAILABLE
    postgresql.server.start()
    wait_until(
        lambda: send(first, website, "c", headers=unknown).status_code == 401,
        "the directory is read again",
    )
    assert send(first, website, "e").status_code == 200


def test_without_the_directory_for_too_long_everything_waits_for_it(
    own_service: ServiceMaker, settings: Mapping[str, str], postgresql: PostgreSQL
) -> None:
    machine = own_service(settings={**settings, "HEADRACE_DIRECTORY_STALE_S": "1"}).start()
    website = machine.website()
    assert send(machine, website, "a").status_code == 200
    postgresql.server.kill()
    wait_until(lambda: send(machine, website).status_code == 503, "the snapshot is too old")
    assert refusal(send(machine, website, "b")) == UNAVAILABLE
    assert machine.get("/ready").json()["parts"]["directory"] == "unavailable"
    assert machine.get("/health").status_code == 200
    postgresql.server.start()
    machine.wait_ready()
    assert stored(machine, website) == 1


@pytest.mark.parametrize("headers", [{}, ONCE], ids=["event-id", "idempotency-key"])
def test_acknowledgement_may_wait_for_the_store(
    own_service: ServiceMaker, settings: Mapping[str, str], headers: Mapping[str, str]
) -> None:
    told = {**settings, "HEADRACE_ACK": "stored", "HEADRACE_ACK_TIMEOUT_S": "1"}
    machine = own_service(settings=told).start()
    website = machine.website()
    assert send(machine, website, "a").status_code == 200
    (engine,) = machine.child_pids("engine")
    kill(engine, signal.SIGSTOP)
    try:
        late = send(machine, website, "b", headers=headers)
        next_one = send(machine, website, "c")
    finally:
        kill(engine, signal.SIGCONT)
    assert (late.status_code, late.json()["code"]) == (500, "INTERNAL")
    assert refusal(next_one) == UNAVAILABLE
    wait_until(
        lambda: send(machine, website, "b", headers=headers).status_code == 200,
        "acknowledgements go on",
    )
    assert stored(machine, website) == 2


def test_data_directory_of_a_machine_is_sound_without_what_it_shares(machines: Machines) -> None:
    first, _ = machines
    website = first.website()
    send(first, website, "a", headers=ONCE)
    assert stored(first, website) == 1
    first.stop()
    names = {path.name for path in first.data.iterdir()}
    assert names.isdisjoint({"directory.sqlite", "repeats.sqlite"})
    assert first.command("verify")["problems"] == []
