"""`headrace serve` with real ClickHouse servers: one server, and a cluster of two shards."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests

from testing.servers.clickhouse import (
    ClickHouseServer,
    ClickHouseServers,
    address_of,
    new_database,
    reading_address_of,
)
from testing.servers.clickhouse_configuration import CLUSTER
from testing.service import HEADRACE, PATIENT_QUERIES, Service, bearer, run_to_end, wait_until

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]

SHARDS: Mapping[str, Any] = {"cluster": CLUSTER, "replicated": 0}
COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}


class Machines:
    """Creates machines with one database; each has its own data directory."""

    def __init__(self, directory: Path) -> None:
        self.database = new_database()
        self.made: list[Service] = []
        self.settings: Mapping[str, str] = {}
        self._directory = directory

    def __call__(self, servers: Sequence[ClickHouseServer], options: Mapping[str, Any]) -> Service:
        secret = self._directory / f"store-{len(self.made)}"
        secret.write_text(address_of(servers, self.database, **options) + "\n")
        self.settings = {
            **PATIENT_QUERIES,
            "HEADRACE_CLICKHOUSE_URL_FILE": str(secret),
            "HEADRACE_CLICKHOUSE_READER_URL": reading_address_of(servers, self.database, **options),
        }
        self.made.append(
            Service(self._directory / f"data-{len(self.made)}", settings=self.settings)
        )
        return self.made[-1]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Machines]:
    """Creates machines, and kills them at the end of the test."""
    machines = Machines(tmp_path)
    yield machines
    for one in machines.made:
        one.kill()


def track(service: Service, website: str, number: int, count: int = 10) -> int:
    """Send a batch of numbered events and return the status."""
    events = [
        {"name": "numbered", "sessionId": f"s{n % 3}", "properties": {"n": number * 1000 + n}}
        for n in range(count)
    ]
    path = f"/track?website_id={website}"
    return service.post(path, events, headers=bearer(service.master)).status_code


@pytest.mark.parametrize("shards", [1, 2])
def test_service_queries_accepted_events_from_clickhouse(
    shards: int, clickhouse_servers: ClickHouseServers, make: Machines
) -> None:
    service = make(clickhouse_servers.servers[:shards], SHARDS if shards > 1 else {}).start()
    website = service.website()
    for number in range(5):
        assert track(service, website, number) == 200
        assert service.answer(website, COUNT) == [{"n": 10 * (number + 1)}]
    assert service.count(website, "sessions") == 3
    assert not (service.data / "store").exists()
    assert service.stop() == 0


def test_machines_that_start_concurrently_create_the_tables_and_share_the_rows(
    clickhouse_servers: ClickHouseServers, make: Machines
) -> None:
    machines = [make(clickhouse_servers.servers, SHARDS) for _ in range(3)]
    for machine in machines:
        machine.launch()
    for machine in machines:
        machine.wait_ready()
        assert track(machine, machine.website(), 1) == 200
    database = make.database
    everything = f"SELECT count() FROM `{database}`.events"

    def all_is_stored() -> bool:
        counts = {server.execute(everything) for server in clickhouse_servers.servers}
        return counts == {"30\n"}

    wait_until(all_is_stored, "every server answers for the rows of all machines")


class Sender(threading.Thread):
    """Sends numbered batches until it is stopped, and records the acknowledged ones."""

    def __init__(self, service: Service, website: str) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.others: list[int] = []
        self.stopping = threading.Event()
        self._url = f"{service.url}/track?website_id={website}"
        self._headers = bearer(service.master) | {"Content-Type": "application/json"}

    def run(self) -> None:
        with Service.session() as session:
            number = 0
            while not self.stopping.is_set():
                events = [
                    {"name": "numbered", "properties": {"n": number * 10 + n}} for n in range(10)
                ]
                response = session.post(
                    self._url, data=json.dumps(events), headers=self._headers, timeout=60
                )
                taken = self.acknowledged if response.status_code == 200 else self.others
                taken.append(number)
                number += 1
                time.sleep(0.01)


@pytest.mark.parametrize("shards", [1, 2])
def test_nothing_is_lost_or_doubled_when_a_server_is_killed(
    shards: int, dedicated_shards: ClickHouseServers, make: Machines
) -> None:
    servers = dedicated_shards.servers[:shards]
    service = make(servers, SHARDS if shards > 1 else {}).start()
    website = service.website()
    sender = Sender(service, website)
    sender.start()
    statuses: set[int] = set()
    try:
        for _ in range(3):
            goal = len(sender.acknowledged) + 20
            wait_until(lambda: len(sender.acknowledged) >= goal, "events are sent")  # noqa: B023 - called immediately
            servers[-1].kill()
            wait_until(
                lambda: service.send_query(website, COUNT).status_code == 503,
                "queries are turned away",
            )
            statuses.add(service.get("/ready").status_code)
            servers[-1].start()
            wait_until(
                lambda: service.send_query(website, COUNT).status_code == 200,
                "queries are answered",
            )
    finally:
        sender.stopping.set()
        sender.join()
    assert statuses == {503}
    assert sender.others == []
    numbers = service.counts(website, "events", "properties.n")
    assert numbers == {batch * 10 + n: 1 for batch in sender.acknowledged for n in range(10)}


def test_machine_starts_and_accepts_while_clickhouse_is_unavailable(
    dedicated_shards: ClickHouseServers, make: Machines
) -> None:
    (server, _) = dedicated_shards.servers
    server.kill()
    service = make([server], {})
    service.launch()
    website = service.website()

    def is_accepted() -> bool:
        try:
            return track(service, website, 1) == 200
        except requests.RequestException:
            return False

    wait_until(is_accepted, "events are accepted")
    assert service.send_query(website, COUNT).status_code == 503
    assert service.get("/ready").json()["parts"]["engine"] == "unavailable"
    server.start()
    service.wait_ready()
    assert service.answer(website, COUNT) == [{"n": 10}]


def test_backup_of_a_machine_is_restored_next_to_the_rows_in_clickhouse(
    clickhouse_servers: ClickHouseServers, make: Machines, tmp_path: Path
) -> None:
    servers = clickhouse_servers.servers
    service = make(servers, SHARDS).start()
    website = service.website()
    assert track(service, website, 1) == 200
    service.command("backup", str(tmp_path / "backup.tar.zst"))
    assert track(service, website, 2) == 200
    assert service.answer(website, COUNT) == [{"n": 20}]
    assert service.stop() == 0
    assert service.command("verify")["problems"] == []
    successor = make(servers, SHARDS)
    successor.command("restore", str(tmp_path / "backup.tar.zst"))
    successor.start()
    assert track(successor, website, 3) == 200
    assert successor.answer(website, COUNT) == [{"n": 30}]


def test_rows_that_clickhouse_has_lost_are_found_by_verify(
    clickhouse_servers: ClickHouseServers, make: Machines
) -> None:
    (server, _) = clickhouse_servers.servers
    service = make([server], {}).start()
    website = service.website()
    assert track(service, website, 1) == 200
    assert service.answer(website, COUNT) == [{"n": 10}]
    assert service.stop() == 0
    server.execute(f"TRUNCATE TABLE `{make.database}`.events")
    done = run_to_end([HEADRACE, "verify", "--json", "--data", str(service.data)], make.settings)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"] == [
        {
            "part": "store",
            "problem": "the table events lacks 10 of 10 rows that the ledger has noted as stored "
            "and that are still in the log worker-0",
        }
    ]


def test_wrong_password_is_reported_without_revealing_it(
    clickhouse_servers: ClickHouseServers, tmp_path: Path
) -> None:
    url = f"clickhouse://nobody:top-secret@127.0.0.1:{clickhouse_servers.servers[0].port}/x"
    service = Service(tmp_path / "data", settings={"HEADRACE_CLICKHOUSE_URL": url})
    try:
        service.launch()
        wait_until(lambda: service.exit_code() is not None, "the service has given up")
        assert service.exit_code() == 1
        rejection = 'ClickHouse: authentication failed for user "nobody"'
        assert f"headrace: {rejection}\n" in service.log_text()
        assert "top-secret" not in service.log_text()
    finally:
        service.kill()


def test_log_names_what_startup_waits_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"clickhouse://127.0.0.1:{silent.getsockname()[1]}/headrace"
        service = Service(tmp_path / "data", settings={"HEADRACE_CLICKHOUSE_URL": url})
        service.launch()
        try:
            for event_name in ("store_preparing", "store_not_prepared"):
                wait_until(lambda: event_name in service.log_text(), event_name)  # noqa: B023 - called immediately
        finally:
            service.kill()


def test_export_from_shards_has_every_acknowledged_event(
    clickhouse_servers: ClickHouseServers, make: Machines, tmp_path: Path
) -> None:
    service = make(clickhouse_servers.servers, SHARDS).start()
    website = service.website()
    assert [track(service, website, number) for number in range(3)] == [200, 200, 200]
    parameters = {"website_id": website, "table": "events", "format": "ndjson"}
    exported = service.get(
        "/v1/export", params=parameters, headers=bearer(service.key("manage:data"))
    )
    numbers = [json.loads(line)["properties"]["n"] for line in exported.text.splitlines()]
    expected = [number * 1000 + n for number in range(3) for n in range(10)]
    assert sorted(numbers) == expected
    output = tmp_path / "events.ndjson"
    service.command("export", "--website", website, "--format", "ndjson", str(output))
    assert sorted(output.read_text().splitlines()) == sorted(exported.text.splitlines())
