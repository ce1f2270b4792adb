"""Rows migrate to ClickHouse and back during ingestion; none is lost or duplicated."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.base.clock import MILLISECONDS_PER_DAY, SystemClock
from testing.servers.clickhouse import ClickHouseServer, ClickHouseServers, address_of, new_database
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.ports import free_port
from testing.service import (
    HEADRACE,
    PATIENT_QUERIES,
    Json,
    Service,
    clean_environment,
    wait_until,
)
from tests.e2e.erasure.test_erase_command import erase
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]

SHARDS: Mapping[str, Any] = {"cluster": CLUSTER, "replicated": 0}
REPLICAS: Mapping[str, Any] = {"cluster": CLUSTER}
DAYS = range(-25, 5)
LAYOUTS: Mapping[str, tuple[str, int, Mapping[str, Any]]] = {
    "server": ("clickhouse_servers", 1, {}),
    "shards": ("clickhouse_servers", 2, SHARDS),
    "replicas": ("replicated_servers", 4, REPLICAS),
}
"""The fixture of the servers, how many of them are used, and the options of the URL."""

TIMEOUT_S = 600
FETCH_TIMEOUT_S = 60
COUNT: Mapping[str, Any] = {
    "table": "events",
    "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
}


MachineMaker = Callable[[str], "Machine"]


class Machine:
    """A data directory and a port; the service starts with either store."""

    def __init__(
        self, directory: Path, servers: Sequence[ClickHouseServer], options: Mapping[str, Any]
    ) -> None:
        self.database = new_database()
        self.url = address_of(servers, self.database, **options)
        self.embedded = Service(directory / "data", workers=2, settings=PATIENT_QUERIES)
        moved = {**PATIENT_QUERIES, "HEADRACE_CLICKHOUSE_URL": self.url}
        self.clickhouse = Service(directory / "data", workers=2, settings=moved)
        self.clickhouse.port, self.clickhouse.url = self.embedded.port, self.embedded.url
        self.data = directory / "data"

    def begin(self, to: str, *options: str) -> subprocess.Popen[str]:
        """Start the migration command."""
        return subprocess.Popen(
            [HEADRACE, "migrate-store", "--to", to, "--json", "--data", str(self.data), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment({"HEADRACE_CLICKHOUSE_URL": self.url}),
        )

    def move(self, to: str) -> Json:
        """Run the migration command and return its output."""
        printed, complaints = self.begin(to).communicate(timeout=TIMEOUT_S)
        assert printed, complaints
        return json.loads(printed)

    def refused(self, to: str) -> str:
        """Return the error of a rejected migration."""
        process = self.begin(to)
        _, complaints = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1
        return complaints.strip()

    def kill_a_move(self, to: str) -> None:
        """Start the migration command and kill it while it sends a chunk."""
        process = self.begin(to, "--rows-at-once", "100")
        wait_until((self.data / "moving" / "piece").exists, "a chunk is being sent")
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MachineMaker]:
    """Creates a machine, not yet started, with its own database in the given layout."""
    made: list[Machine] = []

    def one(layout: str) -> Machine:
        fixture, count, options = LAYOUTS[layout]
        servers: ClickHouseServers = request.getfixturevalue(fixture)
        made.append(Machine(tmp_path, servers.servers[:count], options))
        return made[-1]

    yield one
    for machine in made:
        machine.embedded.kill()
        machine.clickhouse.kill()


def send_all_days(service: Service, website: str, ledger: Ledger, name: str) -> None:
    """Send events of past and future days, each twice, and a vital and an error for each day."""
    now_ms = SystemClock().now_ms()
    for day in DAYS:
        timestamp = now_ms + day * MILLISECONDS_PER_DAY
        ids = [f"{name}-{day}-{number}" for number in range(20)]
        events = [
            {"name": "load", "anonymousId": one, "eventId": one, "timestamp": timestamp + number,
             "properties": {"n": number / 3, "text": "Grüße 🙂"}}
            for number, one in enumerate(ids)
        ]  # fmt: skip
        for _ in range(2):
            response = service.post(f"/track?website_id={website}", events)
            assert response.status_code == 200, response.text
        ledger.enter(ids, 200)


def stored(service: Service, website: str) -> dict[str, int]:
    return service.counts(website, "events", "anonymous_id")


def compare_when_fetched(ledger: Ledger, service: Service, website: str) -> None:
    """Compare once every replica may be read: without a quorum one may be a second behind.

    While all are further behind, the reply is 503, as `stored` reports.
    """
    deadline = time.monotonic() + FETCH_TIMEOUT_S
    found: dict[str, int] = {}
    while ledger.missing(found) and time.monotonic() < deadline:
        time.sleep(0.2)
        with suppress(AssertionError):
            found = stored(service, website)
    ledger.compare(found)


def test_store_migration_survives_ingestion_and_kills_and_can_be_reversed(
    make: MachineMaker,
) -> None:
    machine = make("replicas")
    service, ledger = machine.embedded.start(), Ledger()
    website = service.website()
    send_all_days(service, website, ledger, "first")

    with load(service, website, ledger, name="up"):
        machine.kill_a_move("clickhouse")
        send_all_days(service, website, ledger, "second")
        machine.kill_a_move("clickhouse")
        first = machine.move("clickhouse")
        assert (first["done"], first["differences"]) == (False, [])
        send_all_days(service, website, ledger, "third")
        assert service.stop() == 0
        moved = machine.clickhouse
        moved.launch()
        send_until_acknowledged(ledger, 200)
        assert moved.send_query(website, COUNT).status_code == 503
        last = machine.move("clickhouse")
        assert (last["done"], last["differences"]) == (True, [])
        moved.wait_ready()
        send_until_acknowledged(ledger, 200)
    compare_when_fetched(ledger, moved, website)
    assert 0 < last["copied"] < first["copied"] + len(ledger.acknowledged)
    assert machine.move("clickhouse") == {"copied": 0, "done": True, "differences": []}

    with load(moved, website, ledger, name="down"):
        machine.kill_a_move("embedded")
        assert machine.move("embedded")["done"] is False
        send_until_acknowledged(ledger, 200)
    assert moved.stop() == 0
    assert machine.move("embedded")["done"] is True
    machine.embedded.start()
    ledger.compare(stored(machine.embedded, website))


def test_service_does_not_start_on_the_migrated_source_store(make: MachineMaker) -> None:
    machine = make("shards")
    website = machine.embedded.start().website()
    send_all_days(machine.embedded, website, Ledger(), "only")
    assert machine.embedded.stop() == 0
    everything = len(DAYS) * 20
    assert machine.move("clickhouse") == {"copied": everything, "done": True, "differences": []}
    machine.embedded.launch()
    wait_until(lambda: machine.embedded.exit_code() is not None, "it has given up")
    assert "the rows have moved to ClickHouse" in machine.embedded.log_text()
    machine.clickhouse.start()
    assert machine.clickhouse.count(website, "events") == everything


def test_what_was_erased_after_it_was_copied_is_erased_in_the_target(make: MachineMaker) -> None:
    machine = make("server")
    service = machine.embedded.start()
    website = service.website()
    events = [{"name": "visit", "anonymousId": name} for name in ("ann", "bob", "eve")]
    assert service.post(f"/track?website_id={website}", events).status_code == 200
    assert service.count(website, "events") == len(events)  # they are loaded now
    assert machine.move("clickhouse") == {"copied": 3, "done": False, "differences": []}
    erase(service, website, "--anonymous-id", "ann", "--no-wait")
    assert service.stop() == 0
    assert machine.move("clickhouse") == {"copied": 0, "done": True, "differences": []}
    moved = machine.clickhouse.start()
    assert stored(moved, website) == {"bob": 1, "eve": 1}
    erase(moved, website, "--anonymous-id", "bob", "--no-wait")
    assert moved.stop() == 0
    assert machine.move("embedded") == {"copied": 0, "done": True, "differences": []}
    assert stored(machine.embedded.start(), website) == {"eve": 1}


def test_foreign_rows_in_the_target_are_rejected_and_reported(
    make: MachineMaker, clickhouse_servers: ClickHouseServers
) -> None:
    machine = make("server")
    website = machine.clickhouse.start().website()
    events = [{"name": "one"}, {"name": "two"}]
    assert machine.clickhouse.post(f"/track?website_id={website}", events).status_code == 200
    assert machine.clickhouse.count(website, "events") == 2
    assert machine.refused("clickhouse") == (
        "headrace: the running service stores its events in ClickHouse already: stop it to migrate "
        "the rows in its data directory"
    )
    assert machine.clickhouse.stop() == 0
    assert machine.refused("clickhouse") == (
        f"headrace: cannot copy to the ClickHouse ({machine.database}): it has 2 rows already that "
        "this machine did not move there; name an empty store"
    )
    assert machine.move("embedded") == {"copied": 2, "done": True, "differences": []}
    (server, *_) = clickhouse_servers.servers
    assert machine.move("clickhouse")["done"] is True
    server.execute(f"INSERT INTO `{machine.database}`.events (website_id) VALUES ('nobody')")
    machine.embedded.data.joinpath("moving", "move.json").write_text(
        machine.embedded.data.joinpath("moving", "move.json").read_text().replace("true", "false")
    )
    output = machine.move("clickhouse")
    assert output == {
        "copied": 0,
        "done": False,
        "differences": [
            {
                "table": "events",
                "website_id": "nobody",
                "day": "1970-01-01",
                "rows_in_source": 0,
                "rows_in_target": 1,
            }
        ],
    }


def test_operator_errors_are_one_sentence(make: MachineMaker) -> None:
    machine = make("server")
    machine.embedded.website()
    (host,) = parse_address(machine.url).hosts
    rejections = {
        f"clickhouse://127.0.0.1:{free_port()}/{machine.database}": "no ClickHouse server responds",
        f"clickhouse://nobody:secret@{host}/{machine.database}": (
            'ClickHouse: authentication failed for user "nobody"'
        ),
        "postgresql://here": "the URL of the ClickHouse store is not valid: it must begin with",
    }
    for url, sentence in rejections.items():
        output = machine.refused(url)
        assert output.startswith("headrace: ")
        assert sentence in output
        assert "secret" not in output
        assert len(output.splitlines()) == 1
