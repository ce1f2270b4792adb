"""Quarantined entries are listed, corrected and retried, with and without a running service."""

import json
from pathlib import Path

import pytest

from headrace.adapters.data_dir.lock import DataDirLocked, lock_data_dir
from headrace.base.clock import SystemClock
from headrace.base.settings import load_settings
from headrace.model.log_records import Event, EventRecord, Visitor, encode_record
from headrace.wiring.commands.quarantine import locked_requeuer
from testing.event_logs import append
from testing.service import HEADRACE, Json, Service, bearer, run_to_end, wait_until
from tests.e2e.conftest import ServiceMaker

pytestmark = pytest.mark.slow

UNDECODABLE = "elsewhere-00000000000000000001-0000000030.json"
RECEIVED_MS = 1_750_000_000_000


def unstorable(website: str) -> bytes:
    """Return a record of three items whose second item exceeds the range of a column."""
    good = [Event(website, RECEIVED_MS, name) for name in ("first", "third")]
    bad = Event(
        website,
        2**63,
        "second",
        event_id="one",
        properties=b'{"plan":"pro","n":12345678901234567890}',
        promoted={"load_time": 1.5},
    )
    visitor = Visitor(country="CZ", browser_name="Firefox")
    return encode_record(EventRecord(RECEIVED_MS, visitor, [good[0], bad, good[1]]))


def listed(service: Service) -> list[Json]:
    found: list[Json] = service.command("quarantine", "list")
    return found


def wait_listed(service: Service, count: int) -> list[Json]:
    directory = service.data / "quarantine"
    wait_until(lambda: len(list(directory.glob("*.json"))) == count, f"{count} are set aside")
    return listed(service)


def correct(service: Service, entry_id: str) -> None:
    file = service.data / "quarantine" / entry_id
    content = json.loads(file.read_text())
    content["item"]["time_ms"] = RECEIVED_MS
    file.write_text(json.dumps(content))


def test_quarantined_entries_are_listed_with_the_reason(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    assert listed(service) == []

    append(service.data / "log", b"no record", unstorable(website), name="elsewhere")
    found = wait_listed(service, 2)

    assert [(each["stream"], each["website"]) for each in found] == [
        (None, None),
        ("events", website),
    ]
    assert found[0]["id"] == UNDECODABLE
    assert found[0]["reason"].startswith("It cannot be decoded: ")
    assert found[1]["reason"].startswith("OverflowError: ")
    shown = service.command("quarantine", "show", found[1]["id"])
    assert {name: shown[name] for name in found[1]} == found[1]
    assert shown["content"]["item"]["properties"]["plan"] == "pro"


def test_corrected_entry_is_stored_once_while_the_service_runs(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    append(service.data / "log", unstorable(website), name="elsewhere")
    (entry,) = wait_listed(service, 1)
    correct(service, entry["id"])
    assert service.counts(website, "events", "event_name") == {"first": 1, "third": 1}

    done = service.command("quarantine", "retry", entry["id"])

    assert done == {"retried": [entry["id"]]}
    assert listed(service) == []
    (line,) = service.command("audit", "--limit", "1")
    assert (line["action"], line["object"]) == ("quarantine.retry", entry["id"])
    assert (line["before"], line["after"]) == (None, {"website": website})
    row = service.row(
        website,
        "events",
        ["event_name", "country", "browser_name", "time", "received_at", "load_time"],
        filters=[{"field": "event_name", "operator": "eq", "value": "second"}],
    )
    assert row == {
        "event_name": "second",
        "country": "CZ",
        "browser_name": "Firefox",
        "time": "2025-06-15T15:06:40.000Z",
        "received_at": "2025-06-15T15:06:40.000Z",
        "load_time": 1.5,
    }
    service.kill()
    service.restart()
    assert service.count(website, "events") == 3


def test_an_entry_is_listed_shown_and_retried_over_http_as_by_command(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website, administrator = service.website(), bearer(service.key("manage:config"))
    append(service.data / "log", unstorable(website), name="elsewhere")
    (entry,) = wait_listed(service, 1)

    def call(method: str, path: str) -> Json:
        url = f"{service.url}/v1/admin/quarantine{path}"
        response = service.session().request(method, url, headers=administrator, timeout=30)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    assert call("GET", "") == [entry]
    assert call("GET", f"/{entry['id']}") == service.command("quarantine", "show", entry["id"])
    correct(service, entry["id"])
    retried = call("POST", f"/{entry['id']}/retry")
    assert retried == {**entry, "set_aside": retried["set_aside"], "retried": True}
    assert (call("GET", ""), listed(service)) == ([], [])
    (line,) = service.command("audit", "--limit", "1")
    assert (line["action"], line["object"]) == ("quarantine.retry", entry["id"])
    assert line["by"].startswith("key_")
    assert service.count(website, "events") == 3


def test_entries_are_retried_while_the_service_is_stopped(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    append(service.data / "log", b"no record", unstorable(website), name="elsewhere")
    found = wait_listed(service, 2)
    service.stop()
    correct(service, found[1]["id"])

    assert service.command("quarantine", "retry", "--all") == {
        "retried": [each["id"] for each in found]
    }
    assert listed(service) == []
    service.restart()

    assert service.count(website, "events") == 3
    (again,) = wait_listed(service, 1)  # a record that cannot be decoded returns to quarantine
    assert again["id"].startswith("retry-")
    assert again["reason"] == found[0]["reason"]


def test_retry_after_a_crash_stores_nothing_twice(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    append(service.data / "log", unstorable(website), name="elsewhere")
    (entry,) = wait_listed(service, 1)
    correct(service, entry["id"])
    file = service.data / "quarantine" / entry["id"]
    content = file.read_bytes()
    service.command("quarantine", "retry", "--all")

    file.write_bytes(content)  # as if the process died before it removed the file
    started = {"id": entry["id"], "end": {"segment": 0, "offset": 0}}
    (service.data / "quarantine" / "retry.begun").write_text(json.dumps(started))
    again = service.command("quarantine", "retry", "--all")

    assert again == {"retried": []}
    assert listed(service) == []
    assert service.count(website, "events") == 3


def rejected(data: Path, *arguments: str) -> tuple[int, str]:
    done = run_to_end([HEADRACE, "quarantine", *arguments, "--data", str(data)])
    return done.returncode, done.stderr


REJECTED = {
    "unknown id": (("show", "x.json"), "no entry of the quarantine has the id 'x.json'"),
    "path outside": (
        ("retry", "../lock"),
        "no entry of the quarantine has the id '../lock'",
    ),
    "neither ids nor all": (("retry",), "give either the ids to retry or --all"),
    "ids and all": (("retry", "a", "--all"), "give either the ids to retry or --all"),
}


@pytest.mark.parametrize(("arguments", "sentence"), REJECTED.values(), ids=list(REJECTED))
def test_entry_that_cannot_be_retried_is_one_error(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "quarantine").mkdir()
    assert rejected(tmp_path, *arguments) == (1, f"headrace: {sentence}\n")


def test_wrongly_corrected_entry_stays(tmp_path: Path) -> None:
    quarantine_directory = tmp_path / "data" / "quarantine"
    quarantine_directory.mkdir(parents=True)
    entry = {"log": "gone", "position": {"segment": 1, "offset": 2}, "reason": "It is odd."}
    item = {"website_id": "web_a", "time_ms": "noon", "name": "a", "received_ms": RECEIVED_MS}
    file = quarantine_directory / "gone.json"
    file.write_text(json.dumps({**entry, "stream": "events", "index": 0, "item": item}))

    code, output = rejected(tmp_path / "data", "retry", "--all")

    assert (code, output) == (
        1,
        "headrace: cannot requeue gone.json: Expected `int`, got `str` - at `$[1]`\n",
    )
    assert file.exists()


@pytest.mark.parametrize("command", ["headrace restore", "headrace backup", "headrace verify"])
def test_retry_fails_while_another_command_locks_the_directory(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "quarantine").mkdir()
    with lock_data_dir(tmp_path, command):
        output = rejected(tmp_path, "retry", "--all")
    assert output == (1, f"headrace: the data directory {tmp_path} is in use by `{command}`\n")
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "quarantine"}
    assert rejected(tmp_path, "retry", "--all") == (0, "")


def test_directory_is_locked_while_entries_are_retried(tmp_path: Path) -> None:
    (tmp_path / "quarantine").mkdir()
    settings = load_settings({"data_dir": str(tmp_path)}, {})
    with (
        locked_requeuer(settings, SystemClock()) as requeuer,
        pytest.raises(DataDirLocked, match="is in use by `headrace quarantine retry`"),
        lock_data_dir(tmp_path, "headrace restore"),
    ):
        raise AssertionError(requeuer)
