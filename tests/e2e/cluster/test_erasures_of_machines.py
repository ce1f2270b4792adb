"""An erasure on one machine reaches the logs, quarantine, kept replies and rows of the others."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.directory.sql_directory import open_directory
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.clock import FixedClock, SystemClock
from headrace.erasure.receipt import describe_gone_machine
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from testing.servers.clickhouse import ClickHouseServers, address_of, new_database
from testing.servers.shared_state import PostgreSQL
from testing.service import PATIENT_QUERIES, Service, bearer, wait_until
from tests.e2e.erasure.test_erase_command import error, event, files_with, send, visitors, vital

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]

TABLES = ("events", "errors", "performance")
DONE_TIMEOUT_S = 300
LONG_S = 3600


@pytest.fixture
def database_url(postgresql: PostgreSQL) -> str:
    """The directory of both machines."""
    return postgresql.new_database()


@pytest.fixture
def machines(
    tmp_path: Path, clickhouse_servers: ClickHouseServers, database_url: str
) -> Iterator[tuple[Service, Service]]:
    """Two machines over one ClickHouse, whose replaced parts go soon. The second loads late."""
    (server, *_) = clickhouse_servers.servers
    database = new_database()
    settings = {
        **PATIENT_QUERIES,
        "HEADRACE_CLICKHOUSE_URL": address_of([server], database),
        "HEADRACE_DATABASE_URL": database_url,
    }
    late = {**settings, "HEADRACE_LOAD_INTERVAL_S": str(LONG_S)}
    pair = (
        Service(tmp_path / "first", settings=settings),
        Service(tmp_path / "second", settings=late),
    )
    try:
        for one in pair:
            one.start()
        for table in TABLES:
            server.execute(
                f"ALTER TABLE `{database}`.{table} MODIFY SETTING old_parts_lifetime = 1, "
                "cleanup_delay_period = 1, max_cleanup_delay_period = 2"
            )
        yield pair
    finally:
        for one in pair:
            one.kill()


def erase(service: Service, website: str, **selector: Any) -> dict[str, Any]:
    response = service.post(
        f"/v1/erasures?website_id={website}", selector, headers=bearer(service.key("manage:data"))
    )
    assert response.status_code == 202, response.text
    receipt: dict[str, Any] = response.json()["data"]
    return receipt


def receipts(service: Service) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = service.command("erasures", "list")
    return listed


def until_done(*services: Service) -> list[dict[str, Any]]:
    """Wait until all erasures are done on all machines; return the receipts of the first."""
    deadline = time.monotonic() + DONE_TIMEOUT_S
    while any(one["state"] != "done" for service in services for one in receipts(service)):
        assert time.monotonic() < deadline, [receipts(service) for service in services]
        time.sleep(0.5)
    return receipts(services[0])


def send_examples(service: Service, website: str) -> None:
    for name in ("ann-secret", "bob-public"):
        send(service, website, "/track", [event(name), event("eve")])
        send(service, website, "/vitals", [vital(name)])
        send(service, website, "/errors", [error(name)])


def quarantine(service: Service, website: str, anonymous_id: str) -> None:
    path = service.data / "quarantine"
    item = {"website_id": website, "name": "x", "anonymous_id": anonymous_id}
    FileQuarantine(path).put(
        QuarantineEntry("worker-0", LogOffset(1, 30), "too old", "events", 0, item)
    )


def test_a_visitor_is_erased_on_all_machines_and_what_comes_later_stays(
    machines: tuple[Service, Service],
) -> None:
    first, second = machines
    website = first.website()
    for machine in machines:
        send_examples(machine, website)
    quarantine(second, website, "ann-secret")
    receipt = erase(first, website, anonymousId="ann-secret")
    assert receipt["answersClean"] is not None
    others = {"bob-public": 2, "eve": 4}
    assert visitors(first, website, ["events"]) == {"events": others}
    send(second, website, "/track", [event("ann-secret")])
    assert visitors(second, website, ["events"]) == {"events": {**others, "ann-secret": 1}}

    (done,) = until_done(first, second)
    assert done["rows"] == {"errors": 2, "events": 2, "performance": 2, "quarantine": 1}
    assert receipts(second)[0]["rows"] == done["rows"]
    assert files_with(first, "ann-secret") == []
    assert files_with(second, "ann-secret", below="quarantine") == []
    others = {"bob-public": 2}
    for table in ("errors", "performance"):
        assert visitors(second, website, [table]) == {table: others}


def test_kept_replies_of_another_machine_lose_an_erased_event_id(
    machines: tuple[Service, Service],
) -> None:
    first, second = machines
    website = first.website()
    sent = [{"type": "track", "eventId": "ev-secret", "name": "a"}]
    headers = {**bearer(second.master), "Idempotency-Key": "once"}
    response = second.post(f"/batch?website_id={website}", sent, headers=headers)
    assert response.status_code == 200, response.text
    assert files_with(second, "ev-secret")
    erase(first, website, eventId="ev-secret")
    until_done(first, second)
    assert files_with(second, "ev-secret") == []


def test_a_machine_that_was_away_erases_when_it_is_back(
    machines: tuple[Service, Service],
) -> None:
    first, second = machines
    website = first.website()
    send_examples(second, website)
    second.kill()
    assert files_with(second, "ann-secret")
    receipt = erase(first, website, anonymousId="ann-secret")
    assert receipt["rows"]["events"] == 0
    wait_until(
        lambda: "has not erased yet" in (receipts(first)[0]["lastError"] or ""),
        "the receipt names the machine that is away",
    )
    assert files_with(first, "ann-secret") == []
    second.restart()
    (done,) = until_done(first, second)
    assert (done["rows"]["events"], done["lastError"]) == (1, None)
    assert files_with(second, "ann-secret") == []
    assert visitors(first, website, ["events"]) == {"events": {"bob-public": 1, "eve": 2}}


def test_machines_erase_without_one_that_is_gone_with_its_clock_ahead_once_it_is_forgotten(
    machines: tuple[Service, Service], database_url: str
) -> None:
    first, second = machines
    website, caller = first.website(), bearer(first.key("manage:data"))
    send_examples(first, website)
    hour_ahead = FixedClock(SystemClock().now_ms() + LONG_S * 1000)
    directory = open_directory(database_url, hour_ahead)
    directory.shared_erasures.note_seen("gone")
    directory.close()

    def request_erasure() -> int:
        body, url = {"anonymousId": "ann-secret"}, f"/v1/erasures?website_id={website}"
        return first.post(url, body, headers=caller).status_code

    wait_until(
        lambda: all("erasures_not_followed" in machine.log_text() for machine in machines),
        "both machines notice it",
    )
    assert request_erasure() == 503
    second.command("erasures", "forget-machine", "gone")
    wait_until(lambda: request_erasure() == 202, "the machines erase again")
    done = until_done(first, second)[0]
    assert done["byHand"][-1] == describe_gone_machine("gone", None)
    assert visitors(first, website, ["events"]) == {"events": {"bob-public": 1, "eve": 2}}


def test_an_erasure_is_answered_while_clickhouse_neither_deletes_nor_fails(
    machines: tuple[Service, Service], clickhouse_servers: ClickHouseServers
) -> None:
    first, second = machines
    second.kill()
    website = first.website()
    send_examples(first, website)
    (server, *_) = clickhouse_servers.servers
    server.execute("SYSTEM STOP MERGES")  # a full disk looks the same
    try:
        receipt = erase(first, website, anonymousId="ann-secret")
    finally:
        server.execute("SYSTEM START MERGES")
    reason = "the deletion waits in the store, as on a full disk; it goes on by itself"
    assert (receipt["answersClean"], receipt["lastError"]) == (None, reason)
    wait_until(
        lambda: receipts(first)[0]["answersClean"] is not None, "the store goes on by itself"
    )
