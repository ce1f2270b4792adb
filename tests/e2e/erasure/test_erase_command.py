"""`headrace erase`: what goes from every file of a data directory, and what stays."""

import getpass
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock, SystemClock
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import WebsiteChange, WebsiteId
from testing import files
from testing.service import (
    HEADRACE,
    Service,
    bearer,
    clean_environment,
    run_to_end,
    wait_until,
)
from tests.e2e.conftest import ServiceMaker

pytestmark = pytest.mark.slow


def erase(service: Service, website: str, *arguments: str) -> dict[str, Any]:
    command = [HEADRACE, "erase", "--website", website, "--data", str(service.data), "--json"]
    done = run_to_end([*command, *arguments])
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def subject_rows(service: Service, website: str, *arguments: str) -> list[dict[str, Any]]:
    """Return what `headrace subject-access` writes to standard output."""
    command = [HEADRACE, "subject-access", "--website", website, "--data", str(service.data)]
    done = run_to_end([*command, *arguments])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def files_with(service: Service, text: str, *, below: str = "") -> list[str]:
    """Return the files of the data directory that contain a text."""
    found = files.files_with(service.data / below, text.encode())
    return [str(file.relative_to(service.data)) for file in found]


def send(service: Service, website: str, path: str, items: object, **headers: str) -> None:
    response = service.post(
        f"{path}?website_id={website}", items, headers={**bearer(service.master), **headers}
    )
    assert response.status_code == 200, response.text


def event(anonymous_id: str, **fields: Any) -> dict[str, Any]:
    return {"name": "bought", "anonymousId": anonymous_id, **fields}


def send_examples(service: Service, website: str) -> None:
    """Send items of two visitors, in the same requests, to all tables."""
    for ann in ("ann-secret", "bob-public"):
        properties = {"email": f"{ann}@example.com", "plan": "free"}
        send(service, website, "/track", [event(ann, properties=properties), event("eve")])
        send(service, website, "/vitals", [vital(ann), vital("eve")])
        send(service, website, "/errors", [error(ann), error("eve")])


def vital(anonymous_id: str) -> dict[str, Any]:
    return {
        "timestamp": 1_767_607_200_000,
        "path": f"/{anonymous_id}",
        "metricName": "LCP",
        "metricValue": 1,
        "anonymousId": anonymous_id,
    }


def error(anonymous_id: str) -> dict[str, Any]:
    return {
        "timestamp": 1_767_607_200_000,
        "path": "/",
        "message": f"failed for {anonymous_id}",
        "anonymousId": anonymous_id,
    }


def states(service: Service) -> list[str]:
    return [erasure["state"] for erasure in service.command("erasures", "list")]


def visitors(service: Service, website: str, tables: Iterable[str]) -> dict[str, dict[str, int]]:
    return {table: service.counts(website, table, "anonymous_id") for table in tables}


TABLES = ("events", "errors", "performance")


@pytest.fixture(name="running")
def running_service(dedicated_service: ServiceMaker) -> Service:
    return dedicated_service(workers=2).start()


def test_a_visitor_is_erased_beside_a_service_and_without_one(running: Service) -> None:
    website, other = running.website(), running.website()
    send_examples(running, website)
    send(running, other, "/track", [event("ann-secret")])
    expected = {"errors": 1, "events": 1, "performance": 1, "quarantine": 0}
    wanted = ("--anonymous-id", "ann-secret")
    assert erase(running, website, *wanted, "--dry-run") == {"dryRun": True, "rows": expected}
    everybody = {"ann-secret": 1, "bob-public": 1, "eve": 2}
    assert visitors(running, website, TABLES) == dict.fromkeys(TABLES, everybody)

    receipt = erase(running, website, *wanted, "--no-wait")
    assert (receipt["state"], receipt["rows"]) == ("pending", expected)
    assert "ann-secret" not in json.dumps(receipt)
    others = {"bob-public": 1, "eve": 2}
    assert visitors(running, website, TABLES) == dict.fromkeys(TABLES, others)
    assert running.count(website, "profiles") == len(others)
    assert running.counts(other, "events", "anonymous_id") == {"ann-secret": 1}

    erase(running, other, "--property", "plan=free", "--no-wait")
    erase(running, other, *wanted, "--no-wait")
    send_examples(running, third := running.website())
    running.stop()
    deleted = running.command("website", "delete", third, "--erase")
    assert deleted["rows"] == {"errors": 4, "events": 4, "performance": 4, "quarantine": 0}
    assert deleted["state"] == "done"
    done = erase(running, website, "--property", "email=bob-public@example.com")
    assert (done["state"], done["rows"]["events"]) == ("done", 1)
    assert states(running) == ["done"] * 5  # also those that were pending when the service ended
    assert files_with(running, "ann-secret") == []
    assert files_with(running, "bob-public@example.com") == []
    assert files_with(running, "bob-public")
    running.command("verify")  # fails if it finds rows missing

    running.restart()
    left = {"events": {"eve": 2}, "errors": others, "performance": others}
    assert visitors(running, website, TABLES) == left


@pytest.mark.parametrize("end", [Service.stop, Service.kill], ids=["stopped", "killed"])
def test_an_erasure_whose_service_ends_says_so_and_goes_on_later(
    end: Callable[[Service], object], running: Service
) -> None:
    website = running.website()
    send(running, website, "/track", [event("ann")])
    command = [HEADRACE, "erase", "--website", website, "--anonymous-id", "ann"]
    waiting = subprocess.Popen(
        [*command, "--data", str(running.data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )

    def clean() -> list[str]:
        receipts = running.command("erasures", "list")
        return [receipt["id"] for receipt in receipts if receipt["answersClean"]]

    wait_until(lambda: len(clean()) == 1, "the command waits for files")
    end(running)
    printed, message = waiting.communicate(timeout=60)
    expected = (
        f"headrace: the service has stopped; the erasure {clean()[0]} goes on when it starts again,"
        " and `headrace erasures list` shows its state\n"
    )
    assert (waiting.returncode, printed, message) == (1, "", expected)


def test_a_machine_that_is_gone_is_forgotten_by_command(tmp_path: Path) -> None:
    one = Service(tmp_path / "data")
    one.command("website", "create", "--name", "Shop")
    hour_ahead = FixedClock(SystemClock().now_ms() + 3_600_000)
    directory = open_directory(one.data / "directory.sqlite", hour_ahead)
    directory.shared_erasures.note_seen("gone")
    directory.close()

    def forget(name: str) -> tuple[int, str, str]:
        command = [HEADRACE, "erasures", "forget-machine", name, "--data", str(one.data)]
        done = run_to_end(command)
        return done.returncode, done.stdout, done.stderr

    unknown = "headrace: no machine has the name 'lost'; known are: gone\n"
    assert forget("lost") == (1, "", unknown)
    shown = "The machine gone is forgotten. Erasures do not wait for it.\n"
    assert forget("gone") == (0, shown, "")
    assert one.command("erasures", "forget-machine", "gone") == {"forgotten": "gone"}
    line, created = one.command("audit", "--limit", "2")
    assert (line["by"], line["action"], line["object"], line["before"]["id"], line["after"]) == (
        f"cli {getpass.getuser()}",
        "machine.forget",
        "gone",
        "gone",
        None,
    )
    assert created["action"] == "website.create"


def test_subject_access_shows_all_rows_with_all_columns(
    service: Service, website: str, tmp_path: Path
) -> None:
    send_examples(service, website)
    output = tmp_path / "subject.ndjson"
    arguments = (str(output), "--website", website, "--anonymous-id", "ann-secret")
    assert service.command("subject-access", *arguments) == {"file": str(output), "rows": 3}
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(line["table"] for line in lines) == ["errors", "events", "performance"]
    assert {line["anonymous_id"] for line in lines} == {"ann-secret"}
    response = service.post(
        f"/v1/subject-access?website_id={website}",
        {"anonymousId": "ann-secret"},
        headers=bearer(service.key("manage:data")),
    )
    assert (response.status_code, response.content) == (200, output.read_bytes())
    (event_line,) = (line for line in lines if line["table"] == "events")
    assert event_line["properties"] == {"email": "ann-secret@example.com", "plan": "free"}
    assert event_line["time"].endswith("Z")
    erased = erase(service, website, "--event-id", event_line["id"], "--no-wait")
    assert erased["rows"]["events"] == 1


def test_rows_are_found_by_the_event_id_that_was_sent_whoever_sent_it(
    service: Service, website: str
) -> None:
    send(service, website, "/track", [event("by key", eventId="e-1"), event("eve", eventId="e-2")])
    keyless = service.post(f"/track?website_id={website}", event("by anybody", eventId="e-1"))
    assert keyless.status_code == 200
    send(service, website, "/errors", [{**error("by key"), "eventId": "e-1"}, error("eve")])
    everybody = {"by key": 1, "by anybody": 1, "eve": 1}
    assert service.counts(website, "events", "anonymous_id") == everybody
    shown = service.post(
        f"/v1/subject-access?website_id={website}",
        {"eventId": "e-1"},
        headers=bearer(service.key("manage:data")),
    )
    lines = [json.loads(line) for line in shown.text.splitlines()]
    assert sorted((line["table"], line["anonymous_id"]) for line in lines) == [
        ("errors", "by key"),
        ("events", "by anybody"),
        ("events", "by key"),
    ]
    assert all("event_key" not in line for line in lines)

    erased = erase(service, website, "--event-id", "e-1", "--no-wait")

    assert erased["rows"] == {"errors": 1, "events": 2, "performance": 0, "quarantine": 0}
    assert service.counts(website, "events", "anonymous_id") == {"eve": 1}
    assert service.counts(website, "errors", "anonymous_id") == {"eve": 1}


def test_a_profile_is_erased_alone_or_with_all_rows_of_its_visitors(
    service: Service, website: str
) -> None:
    named = [event("phone", profileId="ann"), event("laptop", profileId="ann")]
    others = [event("phone"), event("laptop", profileId="ann-2"), event("eve", profileId="eve")]
    send(service, website, "/track", [*named, *others])
    send(service, website, "/vitals", [vital("phone"), vital("eve")])

    profile = ("--profile-id", "ann")
    rows = {"errors": 0, "events": 2, "performance": 0, "quarantine": 0}
    assert erase(service, website, *profile, "--dry-run")["rows"] == rows
    assert len(subject_rows(service, website, *profile)) == 2
    with_visitors = (*profile, "--with-visitors")
    lines = subject_rows(service, website, *with_visitors)
    found = [(line["table"], line["anonymous_id"], line.get("profile_id")) for line in lines]
    assert sorted(found) == [
        ("events", "laptop", "ann"),
        ("events", "laptop", "ann-2"),
        ("events", "phone", ""),
        ("events", "phone", "ann"),
        ("performance", "phone", None),
    ]
    rows = {"errors": 0, "events": 4, "performance": 1, "quarantine": 0}
    assert erase(service, website, *with_visitors, "--no-wait")["rows"] == rows
    assert visitors(service, website, TABLES) == {
        "events": {"eve": 1},
        "errors": {},
        "performance": {"eve": 1},
    }


def test_rows_of_a_website_that_was_deleted_without_them_are_erased(service: Service) -> None:
    website, other = service.website(), service.website()
    send_examples(service, website)
    send(service, other, "/track", [event("eve")])
    service.command("website", "delete", website)
    erased = erase(service, website, "--all", "--no-wait")
    assert erased["rows"] == {"errors": 4, "events": 4, "performance": 4, "quarantine": 0}
    stored = {(row["website"], row["table"]): row["rows"] for row in service.command("storage")}
    assert [count for (name, _), count in stored.items() if name == website] == []
    assert stored[other, "events"] == 1


def test_subject_access_shows_rows_that_retention_hides(service: Service, website: str) -> None:
    ten_days_ago = SystemClock().now_ms() - 10 * MILLISECONDS_PER_DAY
    send(service, website, "/track", [event("ann", timestamp=ten_days_ago), event("ann")])
    service.directory.update_website(
        WebsiteId(website), WebsiteChange(retention=RetentionChange(days=5))
    )
    assert service.counts(website, "events", "anonymous_id") == {"ann": 1}
    shown = service.post(
        f"/v1/subject-access?website_id={website}",
        {"anonymousId": "ann"},
        headers=bearer(service.key("manage:data")),
    )
    assert len(shown.content.splitlines()) == 2


def test_events_of_an_erased_visitor_that_come_later_are_stored(
    service: Service, website: str
) -> None:
    send(service, website, "/track", [event("late", eventId="e1")])
    assert erase(service, website, "--anonymous-id", "late", "--no-wait")["rows"]["events"] == 1
    send(service, website, "/track", [event("late", eventId="e1"), event("late", eventId="e2")])
    assert service.counts(website, "events", "anonymous_id") == {"late": 1}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give exactly one of --anonymous-id"),
        (("--anonymous-id", "a", "--session-id", "b"), "give exactly one of --anonymous-id"),
        (("--anonymous-id", "a", "--with-visitors"), "--with-visitors needs --profile-id"),
        (("--property", "email"), "'email' is not KEY=VALUE"),
        (("--property", "k" * 257 + "=1"), "the key of property must have 1 to 256 characters"),
    ],
)
@pytest.mark.parametrize("command", ["erase", "subject-access"])
def test_wrong_selectors_are_a_usage_error_with_the_reason(
    command: str, arguments: tuple[str, ...], reason: str
) -> None:
    done = run_to_end([HEADRACE, command, "--website", "web_any", *arguments])
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.startswith("Error: "), reason in last) == (2, True, True)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("erase", "--anonymous-id, --session-id, --profile-id, --event-id, --property and --all"),
        ("subject-access", "--anonymous-id, --session-id, --profile-id, --event-id and --property"),
    ],
)
def test_missing_selector_names_the_options_of_the_command(command: str, options: str) -> None:
    done = run_to_end([HEADRACE, command, "--website", "web_any"])
    assert done.stderr.splitlines()[-1] == f"Error: give exactly one of {options}"


def test_website_that_is_not_deleted_is_not_erased_as_a_whole(
    service: Service, website: str
) -> None:
    done = run(service, website, "--all")
    assert (done.returncode, done.stdout) == (1, "")
    assert "delete it with its rows by `headrace website delete" in done.stderr


def test_an_unknown_website_is_refused(service: Service) -> None:
    done = run(service, "web_unknown", "--anonymous-id", "a")
    assert done.stderr == "headrace: there is no website web_unknown\n"


def test_a_directory_without_data_is_refused(tmp_path: Path) -> None:
    done = run_to_end(
        [HEADRACE, "erase", "--website", "w", "--session-id", "s", "--data", str(tmp_path)]
    )
    assert "is not a data directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


def run(service: Service, website: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_to_end(
        [HEADRACE, "erase", "--website", website, "--data", str(service.data), *arguments]
    )
