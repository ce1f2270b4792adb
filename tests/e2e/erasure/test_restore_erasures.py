"""Backups from before an erasure are restored without the rows that were erased."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testing.service import HEADRACE, Service, run_to_end
from tests.e2e.conftest import ServiceMaker
from tests.e2e.erasure.test_erase_command import erase, event, files_with, send

pytestmark = pytest.mark.slow


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([HEADRACE, *arguments])


def test_a_restore_applies_the_erasures_that_were_made_after_the_backup(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website = service.website()
    properties = {"mail": "carl@example.com"}
    send(service, website, "/track", [event("ann-secret"), event("eve")])
    send(service, website, "/track", [event("carl", properties=properties)])
    send(service, website, "/track", [event("dan", eventId="dans-event")])
    backup, known = tmp_path / "backup.tar.zst", tmp_path / "erasures.json"
    assert run("backup", str(backup), "--data", str(service.data)).returncode == 0
    erase(service, website, "--anonymous-id", "ann-secret", "--no-wait")
    erase(service, website, "--property", "mail=carl@example.com", "--no-wait")
    erase(service, website, "--event-id", "dans-event", "--no-wait")
    send(service, website, "/track", [event("ann-secret")])
    assert service.command("erasures", "export", str(known))["erasures"] == 3
    assert "ann-secret" not in known.read_text()
    assert service.stop() == 0

    unaware = tmp_path / "unaware"
    done = run("restore", str(backup), "--data", str(unaware), "--json")
    assert (done.returncode, json.loads(done.stdout)["erasures"]) == (0, 0)
    assert "erasures that were made after the backup are not known" in done.stderr

    foreign = tmp_path / "foreign"
    done = run("restore", str(backup), "--data", str(foreign), "--erasures", str(tmp_path))
    assert (done.returncode, "it has no file key" in done.stderr) == (1, True)

    lost = tmp_path / "lost"
    lost.mkdir()
    shutil.copytree(service.data / "erasures", lost / "erasures")
    done = run("restore", str(backup), "--data", str(lost), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["erasures"] == 3
    restored = Service(lost)
    assert files_with(restored, "ann-secret") == []
    assert files_with(restored, "carl@example.com") == []
    assert [one["state"] for one in restored.command("erasures", "list")] == ["done"] * 3
    try:
        restored.start()
        assert restored.counts(website, "events", "anonymous_id") == {"eve": 1}
    finally:
        restored.kill()


def test_erasures_that_are_given_are_applied_beside_those_of_the_directory(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website = service.website()
    send(service, website, "/track", [event("ann-secret"), event("bob-secret"), event("eve")])
    backup, older = tmp_path / "backup.tar.zst", tmp_path / "erasures.json"
    assert run("backup", str(backup), "--data", str(service.data)).returncode == 0
    erase(service, website, "--anonymous-id", "ann-secret", "--no-wait")
    assert service.command("erasures", "export", str(older))["erasures"] == 1
    erase(service, website, "--anonymous-id", "bob-secret", "--no-wait")
    assert service.stop() == 0
    lost = tmp_path / "lost"
    lost.mkdir()
    shutil.copytree(service.data / "erasures", lost / "erasures")

    done = run("restore", str(backup), "--data", str(lost), "--erasures", str(older), "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["erasures"] == 2
    restored = Service(lost)
    assert [files_with(restored, each) for each in ("ann-secret", "bob-secret")] == [[], []]


KILLED_AT_STORE = """
import os, signal, sys
from headrace.cli.main import main

def kill(event, arguments):
    if event == "os.mkdir" and os.path.basename(arguments[0]) == "store":
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
main()
"""


def test_a_killed_restore_keeps_the_erasures_of_the_directory(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website, backup = service.website(), tmp_path / "backup.tar.zst"
    send(service, website, "/track", [event("ann-secret"), event("eve")])
    assert run("backup", str(backup), "--data", str(service.data)).returncode == 0
    erase(service, website, "--anonymous-id", "ann-secret", "--no-wait")
    assert service.stop() == 0
    lost = tmp_path / "lost"
    lost.mkdir()
    shutil.copytree(service.data / "erasures", lost / "erasures")
    command = ["restore", str(backup), "--data", str(lost)]

    killed = run_to_end([sys.executable, "-c", KILLED_AT_STORE, *command])

    assert killed.returncode == -signal.SIGKILL
    unusable = run("verify", "--data", str(lost))
    assert unusable.returncode == 1
    assert unusable.stderr == (
        f"headrace: a restore into {lost} was interrupted: empty the directory but for "
        "restore-unfinished, which has its erasures, and restore again\n"
    )
    for path in lost.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "restore-unfinished":
            path.unlink()
    done = run(*command, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["erasures"] == 1
    assert files_with(Service(lost), "ann-secret") == []
    assert not (lost / "restore-unfinished").exists()
