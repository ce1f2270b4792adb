"""Kills each of two machines, two shards, PostgreSQL and Redis under a load with retries."""

import random
import signal
import threading
import time
from collections.abc import Callable
from os import kill
from pathlib import Path

import pytest
import requests

from testing.servers.clickhouse import (
    ClickHouseServers,
    address_of,
    new_database,
    reading_address_of,
)
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.shared_state import PostgreSQL, ValkeyServer
from testing.service import PATIENT_QUERIES, Service, bearer, wait_until

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]

IDS_OF_A_BATCH = 5
DOWN_S = 1.5
"""How long each component is away."""

EVENTS_BETWEEN_FAULTS = 200


class Cluster:
    """All processes that the test kills, and the functions that restart them."""

    def __init__(
        self,
        directory_path: Path,
        shards: ClickHouseServers,
        postgresql: PostgreSQL,
        shared: ValkeyServer,
        ack: str,
    ) -> None:
        shared.empty()
        database, options = new_database(), {"cluster": CLUSTER, "replicated": 0}
        settings = {
            **PATIENT_QUERIES,
            "HEADRACE_CLICKHOUSE_URL": address_of(shards.servers, database, **options),
            "HEADRACE_CLICKHOUSE_READER_URL": reading_address_of(
                shards.servers, database, **options
            ),
            "HEADRACE_DATABASE_URL": postgresql.new_database(),
            "HEADRACE_VALKEY_URL": shared.url,
            "HEADRACE_LOAD_INTERVAL_S": "0.1",
            "HEADRACE_ACK_MODE": ack,
            "HEADRACE_ACK_TIMEOUT_S": "3",
        }
        self.machines = [
            Service(directory_path / f"data-{name}", settings=settings) for name in "ab"
        ]
        self._shards, self._postgresql, self._shared = shards, postgresql, shared

    def start(self) -> None:
        for machine in self.machines:
            machine.launch()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait for the machines; first restart a ClickHouse server that crashed by itself."""
        self._shards.restart_dead()
        try:
            for machine in self.machines:
                machine.wait_ready()
        except AssertionError as error:
            error.add_note(self._shards.last_log_lines())
            raise

    def faults(self) -> list[tuple[Callable[[], None], Callable[[], None]]]:
        """Return a kill function and a restart function for each component."""
        servers = (self._shards.servers[1], self._postgresql.server, self._shared.server)
        machines = [(machine.kill, machine.launch) for machine in self.machines]
        engines = [(_engine_killer(machine), _nothing) for machine in self.machines]
        return [*machines, *engines, *((server.kill, server.start) for server in servers)]

    def end(self) -> None:
        for machine in self.machines:
            machine.kill()
        for server in (self._postgresql.server, self._shared.server):
            server.kill()
            server.start()


def _engine_killer(machine: Service) -> Callable[[], None]:
    def kill_engine() -> None:
        for pid in machine.child_pids("engine"):
            kill(pid, signal.SIGKILL)

    return kill_engine


def _nothing() -> None:
    return


class Sender(threading.Thread):
    """Sends each batch until a machine acknowledges it, and half of the batches a second time."""

    def __init__(
        self, machines: list[Service], path: str, headers: dict[str, str], seed: int
    ) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.stopping = threading.Event()
        self._urls = [machine.url + path for machine in machines]
        self._headers = headers
        self._random = random.Random(seed)  # noqa: S311 - not a secret
        self._seed = seed

    def run(self) -> None:
        with Service.session() as session:
            batch = 0
            while not self.stopping.is_set():
                first = (self._seed * 100_000 + batch) * IDS_OF_A_BATCH
                numbers = range(first, first + IDS_OF_A_BATCH)
                self._send(session, numbers)
                if self._random.random() < 0.5:
                    self._send(session, numbers)
                batch += 1
                time.sleep(0.005)

    def _send(self, session: requests.Session, numbers: range) -> None:
        events = [{"name": "n", "eventId": f"e{n}", "properties": {"n": n}} for n in numbers]
        while not self.stopping.is_set():
            try:
                url = self._random.choice(self._urls)
                response = session.post(url, json=events, headers=self._headers, timeout=30)
            except requests.RequestException:
                continue
            if response.status_code == 200:
                self.acknowledged += numbers
                return
            assert response.status_code in {500, 503}, response.text
            time.sleep(0.05)


def wait_for_acknowledged(senders: list[Sender], events: int) -> None:
    """Wait until the given number of further events is acknowledged."""

    def count() -> int:
        return sum(len(sender.acknowledged) for sender in senders)

    goal = count() + events
    wait_until(lambda: count() >= goal, f"{events} more events are acknowledged")


@pytest.mark.parametrize("ack", ["log", "stored"])
def test_every_acknowledged_event_is_stored_once_whatever_fails(
    ack: str,
    tmp_path: Path,
    dedicated_shards: ClickHouseServers,
    postgresql: PostgreSQL,
    valkey_server: ValkeyServer,
) -> None:
    cluster = Cluster(tmp_path, dedicated_shards, postgresql, valkey_server, ack)
    try:
        cluster.start()
        first, second = cluster.machines
        website = first.website()
        path = f"/track?website_id={website}"
        senders = [
            Sender(cluster.machines, path, bearer(first.master), seed) for seed in range(1, 5)
        ]
        for sender in senders:
            sender.start()
        for inject, recover in cluster.faults():
            wait_for_acknowledged(senders, EVENTS_BETWEEN_FAULTS)
            inject()
            time.sleep(DOWN_S)
            recover()
        cluster.wait_ready()
        wait_for_acknowledged(senders, EVENTS_BETWEEN_FAULTS)
        for sender in senders:
            sender.stopping.set()
        for sender in senders:
            sender.join()
        acknowledged = {number for sender in senders for number in sender.acknowledged}
        assert acknowledged
        for machine in (first, second):
            wait_until(lambda: machine.count(website, "events") > 0, "all logs are stored")  # noqa: B023 - called immediately
        stored = first.counts(website, "events", "properties.n")
        assert {number: times for number, times in stored.items() if times != 1} == {}
        assert acknowledged - stored.keys() == set()
    finally:
        cluster.end()
