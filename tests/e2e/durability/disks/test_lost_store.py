"""Files of the embedded store disappear, and the ledger still says that all events are stored.

A power cut on a file system without a journal can do that. Metadata is restored from its copy,
which most tests here remove, too.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.store.chdb.files.metadata_copy import copy_path
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventRecord, encode_record
from testing.event_logs import append
from testing.service import HEADRACE, Service, run_to_end, wait_until
from tests.e2e.conftest import ServiceMaker

pytestmark = pytest.mark.slow

ERROR = {"timestamp": 1_780_000_000_000, "path": "/x", "message": "boom"}
VITAL = {"timestamp": 1_780_000_000_000, "path": "/x", "metricName": "LCP", "metricValue": 1.5}
RECEIVED_MS = 1_750_000_000_000
COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}


def remove_copy(store: Path) -> None:
    copy_path(store).unlink()


def remove_store(store: Path) -> None:
    shutil.rmtree(store)


def remove_metadata(store: Path) -> None:
    """Do what the check of the file system did, which found the inode under another name too."""
    shutil.rmtree(store / "metadata")


def remove_database(store: Path) -> None:
    remove_copy(store)
    (store / "metadata" / "headrace.sql").unlink()
    (store / "metadata" / "headrace").unlink()


def remove_database_file(store: Path) -> None:
    remove_copy(store)
    (store / "metadata" / "headrace.sql").unlink()


def remove_events_table(store: Path) -> None:
    remove_copy(store)
    (store / "metadata" / "headrace" / "events.sql").unlink()


def remove_all_tables(store: Path) -> None:
    remove_copy(store)
    for file in (store / "metadata" / "headrace").glob("*.sql"):
        file.unlink()


def remove_events_directory(store: Path) -> None:
    shutil.rmtree((store / "data" / "headrace" / "events").resolve())


LOSSES = {
    "store": remove_store,
    "database": remove_database,
    "database file": remove_database_file,
    "all tables": remove_all_tables,
    "a table": remove_events_table,
    "a table's directory": remove_events_directory,
}


def send(service: Service, website: str, number: int) -> None:
    """Send an event with an id, twice, an event without one, an error and a vital."""
    events = [{"name": f"known {number}", "eventId": f"e{number}"}, {"name": f"plain {number}"}]
    for path, body in (("track", events), ("errors", [ERROR]), ("vitals", [VITAL])):
        assert service.post(f"/{path}?website_id={website}", body).status_code == 200
    assert service.post(f"/track?website_id={website}", events[0]).status_code == 200


def counts(service: Service, website: str) -> dict[str, int]:
    return {table: service.count(website, table) for table in ("events", "errors", "performance")}


def verify(data: Path, *options: str) -> list[str]:
    """Return the problems of the store that `headrace verify` reports."""
    done = run_to_end([HEADRACE, "verify", "--data", str(data), "--json", *options])
    problems: list[dict[str, Any]] = json.loads(done.stdout)["problems"]
    return [each["problem"] for each in problems if each["part"] == "store"]


@pytest.mark.parametrize("remove", LOSSES.values(), ids=list(LOSSES))
def test_lost_tables_are_loaded_again_from_the_log(
    remove: Callable[[Path], None], dedicated_service: ServiceMaker
) -> None:
    service = dedicated_service().start()
    website = service.website()
    for number in range(3):
        send(service, website, number)
    before = counts(service, website)
    assert before == {"events": 6, "errors": 3, "performance": 3}
    assert service.stop() == 0
    remove(service.data / "store")

    service.start()

    assert counts(service, website) == before
    send(service, website, 0)  # its eventId is known again
    assert counts(service, website) == {"events": 7, "errors": 4, "performance": 4}
    assert '"store_created_again"' in service.log_text()
    assert service.stop() == 0
    assert verify(service.data) == []


def test_item_that_was_corrected_and_retried_is_loaded_again_once(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    events = [Event(website, 2**63, "rejected"), Event(website, RECEIVED_MS, "accepted")]
    record = encode_record(EventRecord(RECEIVED_MS, UNKNOWN_VISITOR, events))
    append(service.data / "log", record, name="elsewhere")
    quarantine = service.data / "quarantine"
    wait_until(lambda: len(list(quarantine.glob("*.json"))) == 1, "an item is quarantined")
    (file,) = quarantine.glob("*.json")
    entry = json.loads(file.read_text())
    entry["item"] |= {"time_ms": RECEIVED_MS, "name": "corrected"}
    file.write_text(json.dumps(entry))
    assert service.command("quarantine", "retry", file.name) == {"retried": [file.name]}
    before = service.counts(website, "events", "event_name")
    assert before == {"accepted": 1, "corrected": 1}
    assert service.stop() == 0
    remove_store(service.data / "store")

    service.start()

    assert service.counts(website, "events", "event_name") == before
    assert service.command("quarantine", "list") == []
    assert '"store_created_again"' in service.log_text()


@pytest.mark.parametrize("remove", [remove_store, remove_events_table])
def test_events_that_the_log_no_longer_has_are_reported_until_an_operator_accepts_the_loss(
    remove: Callable[[Path], None], dedicated_service: ServiceMaker
) -> None:
    service = dedicated_service(settings={"HEADRACE_LOG_SEGMENT_BYTES": "4096"}).start()
    website = service.website()
    first = service.data / "log" / "worker-0" / f"{1:020}.segment"
    send(service, website, 0)
    number = 0
    while first.exists():
        number += 1
        send(service, website, number)
        counts(service, website)
    assert service.stop() == 0
    remove(service.data / "store")

    service.launch()
    parts = {"log": "ready", "disk": "ready", "backlog": "ready", "engine": "incomplete"}
    wait_until(lambda: readiness(service) == parts, "/ready names the incomplete store")

    assert service.send_query(website, COUNT).status_code == 503
    assert service.post(f"/track?website_id={website}", {"name": "later"}).status_code == 200
    assert service.stop() == 0
    (problem, *_) = [each for each in verify(service.data) if "the table events was" in each]
    assert problem.endswith("or accept the loss with `headrace verify --accept-loss`")
    service.launch()
    wait_until(lambda: readiness(service) == parts, "it is still incomplete after a restart")
    assert service.stop() == 0
    assert verify(service.data, "--accept-loss") == []
    service.start()
    assert service.counts(website, "events", "event_name")["later"] == 1


def test_tables_whose_metadata_is_lost_keep_the_events_that_the_log_no_longer_has(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_LOG_SEGMENT_BYTES": "4096"}).start()
    website = service.website()
    first = service.data / "log" / "worker-0" / f"{1:020}.segment"
    send(service, website, 0)
    number = 0
    while first.exists():
        number += 1
        send(service, website, number)
        counts(service, website)
    before = counts(service, website)
    service.kill()
    remove_metadata(service.data / "store")

    service.start()

    assert counts(service, website) == before
    assert '"store_created_again"' not in service.log_text()
    assert (
        '"event_name":"store_metadata_restored",'
        '"paths":["metadata/headrace.sql","metadata/headrace"]' in service.log_text()
    )
    send(service, website, 0)  # its eventId is known
    assert service.stop() == 0
    assert verify(service.data) == []


def readiness(service: Service) -> Any:
    try:
        return service.get("/ready").json()["parts"]
    except OSError:
        return None
