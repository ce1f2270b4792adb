"""A backup contains every event acknowledged before it began; a restore stores none twice."""

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from headrace import __version__
from headrace.adapters.erasures.file_erasures import FileErasures
from testing.service import (
    HEADRACE,
    Service,
    clean_environment,
    run_to_end,
    running_service,
    with_file_limit,
)
from tests.e2e.conftest import ServiceMaker
from tests.e2e.durability.disks.system_calls import traced_calls
from tests.e2e.envelopes import outcome, success
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = pytest.mark.slow

RestoredMaker = Callable[[Path], Service]


@pytest.fixture
def restored(tmp_path: Path) -> Iterator[RestoredMaker]:
    """Restores backups into new directories and returns services for them, not yet started."""
    made: list[Service] = []

    def make(file: Path) -> Service:
        service = Service(tmp_path / f"restored{len(made)}")
        made.append(service)
        assert service.command("restore", str(file))["data"] == str(service.data)
        assert service.command("verify")["problems"] == []
        return service

    yield make
    for one in made:
        one.kill()


def run(*arguments: str) -> tuple[int, str, str]:
    return outputs([HEADRACE, *arguments])


def outputs(command: Sequence[str]) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code and what it printed."""
    done = run_to_end(command)
    return done.returncode, done.stdout, done.stderr


def stored(service: Service, website: str) -> dict[str, int]:
    return service.counts(website, "events", "anonymous_id")


@pytest.mark.parametrize("interval_s", ["0.05", "60"], ids=["loaded", "in the log"])
def test_backup_under_load_has_everything_acknowledged_before_it_once(
    dedicated_service: ServiceMaker, restored: RestoredMaker, tmp_path: Path, interval_s: str
) -> None:
    service = dedicated_service(
        workers=2, settings={"HEADRACE_LOAD_INTERVAL_S": interval_s}
    ).start()
    website, ledger, file = service.website(), Ledger(), tmp_path / "backup.tar.zst"

    with load(service, website, ledger, name="load"):
        send_until_acknowledged(ledger, 1000)
        before = list(ledger.acknowledged)
        service.command("backup", str(file))
        send_until_acknowledged(ledger, 200)
    copy = restored(file).start()

    found = stored(copy, website)
    assert set(before) <= found.keys()
    assert set(found.values()) == {1}
    assert found.keys() <= {*ledger.acknowledged, *ledger.unanswered}
    again = [{"name": "load", "anonymousId": one, "eventId": one} for one in before[:50]]
    response = copy.post(f"/track?website_id={website}", again)
    assert outcome(response) == (200, success("/track", len(again)))
    assert stored(copy, website) == found
    assert list((service.data / "snapshots").iterdir()) == []
    ledger.compare(stored(service, website))


def test_backup_of_a_killed_service_has_everything_once(
    dedicated_service: ServiceMaker, restored: RestoredMaker, tmp_path: Path
) -> None:
    service = dedicated_service(workers=2).start()
    website, ledger, file = service.website(), Ledger(), tmp_path / "backup.tar.zst"

    with load(service, website, ledger, name="load"):
        send_until_acknowledged(ledger, 1000)
        service.kill()
    service.command("backup", str(file))

    ledger.compare(stored(restored(file).start(), website))


def test_backup_of_a_restored_directory_has_the_same_again(
    dedicated_service: ServiceMaker, restored: RestoredMaker, tmp_path: Path
) -> None:
    service, files = dedicated_service().start(), [tmp_path / "first.zst", tmp_path / "second.zst"]
    website = service.website()
    service.post(f"/track?website_id={website}", [{"name": "a", "eventId": "1"}, {"name": "b"}])
    service.command("backup", str(files[0]))
    first = restored(files[0]).start()
    first.post(f"/track?website_id={website}", [{"name": "c", "eventId": "1"}, {"name": "d"}])
    first.command("backup", str(files[1]))

    second = restored(files[1]).start()
    assert second.counts(website, "events", "event_name") == {"a": 1, "b": 1, "d": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a stopped service that accepted two events."""
    with running_service(tmp_path_factory.mktemp("backed") / "data") as service:
        yield fill(service)


def fill(service: Service) -> Path:
    website = service.website()
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": "once"}
    assert service.post(path, [{"name": "a"}] * 2, headers=headers).status_code == 200
    assert service.count(website, "events") == 2  # else they might be in the log alone
    (service.data / "quarantine").mkdir()
    (service.data / "quarantine" / "one.json").write_text("{}")
    (service.data / "damaged").mkdir()
    (service.data / "damaged" / "one.bin").write_bytes(b"\xff")
    assert service.stop() == 0
    return service.data


@pytest.fixture(scope="module")
def made_once(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("made") / "backup.tar.zst"
    assert run("backup", str(file), "--data", str(data))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    return file


@pytest.fixture
def backup(made_once: Path, tmp_path: Path) -> Path:
    """A copy of a backup, for a test to damage."""
    return Path(shutil.copy(made_once, tmp_path))


def test_terminal_shows_progress(data: Path, tmp_path: Path) -> None:
    terminal, its_side = pty.openpty()
    command = [HEADRACE, "backup", str(tmp_path / "b"), "--data", str(data)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=its_side, check=False)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    os.close(its_side)
    assert done.returncode == 0
    assert [line[:12] for line in shown.split("\r")[1:3]] == ["Backing up: "] * 2
    assert "(100 %)" in shown
    assert shown.endswith("\r")


def rows(file: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_everything_but_the_visitor_salt_is_restored(
    data: Path, backup: Path, restored: RestoredMaker
) -> None:
    copy = restored(backup)
    assert (copy.data / "quarantine" / "one.json").read_text() == "{}"
    assert (copy.data / "damaged" / "one.bin").read_bytes() == b"\xff"
    for file, table in (
        ("repeats.sqlite", "claims"),
        ("ledger.sqlite", "positions"),
        ("directory.sqlite", "websites"),
    ):
        sql = f"SELECT * FROM {table}"
        assert rows(copy.data / file, sql) == rows(data / file, sql) != []
    salts = "SELECT * FROM visitor_salts"
    ((_, salt),) = rows(data / "directory.sqlite", salts)
    assert rows(copy.data / "directory.sqlite", salts) == []
    assert salt not in (copy.data / "directory.sqlite").read_bytes()
    made = {path.relative_to(copy.data) for path in copy.data.rglob("*") if path.is_symlink()}
    assert (
        made == {path.relative_to(data) for path in data.rglob("*") if path.is_symlink()} != set()
    )


def test_idempotency_key_is_remembered_by_the_restored_service(
    backup: Path, restored: RestoredMaker
) -> None:
    copy = restored(backup).start()
    (website,) = copy.directory.websites()
    path, headers = f"/track?website_id={website.id}", {"Idempotency-Key": "once"}
    assert outcome(copy.post(path, {"name": "b"}, headers=headers)) == (200, success("/track", 2))
    assert copy.counts(website.id, "events", "event_name") == {"a": 2}


def test_backup_is_never_overwritten(data: Path, backup: Path) -> None:
    before = backup.read_bytes()
    assert run("backup", str(backup), "--data", str(data)) == (
        1,
        "",
        f"headrace: cannot write the backup {backup}: it exists\n",
    )
    assert backup.read_bytes() == before


def test_directory_without_data_is_not_backed_up(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("backup", str(tmp_path / "b"), "--data", str(tmp_path / "empty")) == (
        1,
        "",
        f"headrace: {tmp_path}/empty is not a data directory: it contains no data\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_full_disk_leaves_no_partial_backup(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website, target = service.website(), tmp_path / "target" / "backup"
    target.parent.mkdir()
    service.post(f"/track?website_id={website}", {"name": "a"})
    command = [HEADRACE, "backup", str(target), "--data", str(service.data)]
    assert outputs(with_file_limit(command, blocks=4)) == (
        1,
        "",
        f"headrace: cannot write {target}: file too large\n",
    )
    assert list(target.parent.iterdir()) == []
    assert service.count(website, "events") == 1


def test_backup_is_not_restored_into_a_non_empty_directory(backup: Path, tmp_path: Path) -> None:
    into = tmp_path / "there"
    into.mkdir()
    refusal = f"headrace: cannot restore to {into}: the directory is not empty: it has"
    (into / "mine").touch()
    assert run("restore", str(backup), "--data", str(into)) == (1, "", f"{refusal} mine\n")
    (into / "another").mkdir()
    assert run("restore", str(backup), "--data", str(into)) == (
        1,
        "",
        f"{refusal} another and 1 more\n",
    )
    assert {path.name for path in into.iterdir()} == {"mine", "another", "lock"}


def test_backup_is_restored_to_a_disk_that_is_mounted_at_its_directory(
    backup: Path, tmp_path: Path
) -> None:
    into, broken = tmp_path / "there", tmp_path / "broken"
    (into / "lost+found").mkdir(parents=True)
    broken.write_bytes(backup.read_bytes()[:-100])
    failed, _, _ = run("restore", str(broken), "--data", str(into))
    assert (failed, {path.name for path in into.iterdir()}) == (1, {"lost+found", "lock"})

    code, _, err = run("restore", str(backup), "--data", str(into))
    assert (code, err.count("\n")) == (0, 1)  # the notice on erasures
    assert (into / "lost+found").is_dir()


def test_backup_is_restored_where_a_restore_was_killed_before_it_began(
    backup: Path, tmp_path: Path
) -> None:
    into = tmp_path / "there"
    into.mkdir()
    for name in ("lock.7.unfinished", "restore-unfinished.7.unfinished"):
        (into / name).touch()
    code, _, err = run("restore", str(backup), "--data", str(into))
    assert (code, err.count("\n")) == (0, 1)  # the notice on erasures
    assert list(into.glob("*unfinished*")) == []


def test_marker_of_a_restore_is_durable_before_anything_is_restored(
    backup: Path, tmp_path: Path
) -> None:
    """Without it, a power cut could leave files that look like a whole directory."""
    into, trace = tmp_path / "there", tmp_path / "restore.trace"
    into.mkdir()
    command = [HEADRACE, "restore", str(backup), "--data", str(into)]

    calls = traced_calls(command, trace, env=clean_environment())

    first_created = min(
        call.begun
        for call in calls
        if call.name == "openat"
        and "O_CREAT" in call.arguments
        and Path(call.file).is_relative_to(into)
        and not Path(call.file).name.startswith(("lock", "restore-unfinished"))
    )
    synced = [
        Path(call.file).name.partition(".")[0]
        for call in calls
        if call.name == "fsync" and call.result == 0 and call.ended < first_created
    ]
    assert synced == ["lock", "there", "restore-unfinished", "there"]


def test_restore_without_space_for_its_marker_leaves_the_directory_as_it_was(
    backup: Path, tmp_path: Path
) -> None:
    into = tmp_path / "new"
    FileErasures(into / "erasures").set_key(bytes(32))
    command = [HEADRACE, "restore", str(backup), "--data", str(into)]
    assert outputs(with_file_limit(command, blocks=0)) == (
        1,
        "",
        f"headrace: cannot restore to {into}: file too large\n",
    )
    assert {path.name for path in into.iterdir()} == {"lock", "erasures"}
    assert FileErasures(into / "erasures").key() == bytes(32)


LISTED_BEFORE_MARKER = """
import os, sys
from headrace.cli.main import main

def list_directory(event, arguments):
    if event == "os.remove" and os.path.basename(arguments[0]) == "restore-unfinished":
        print(*sorted(os.listdir(os.path.dirname(arguments[0]))))

sys.addaudithook(list_directory)
main()
"""


def test_marker_of_a_failed_restore_is_removed_last(backup: Path, tmp_path: Path) -> None:
    """Without it, a service would start on what a kill during the removal leaves."""
    backup.write_bytes(flip_checksum(backup.read_bytes()))
    into = tmp_path / "new"
    arguments = ["restore", str(backup), "--data", str(into)]
    done = run_to_end([sys.executable, "-c", LISTED_BEFORE_MARKER, *arguments])
    assert (done.returncode, done.stdout) == (1, "lock restore-unfinished\n")
    assert [path.name for path in into.iterdir()] == ["lock"]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """Invert eight bytes: one bit in 250 is none of those that decoding depends on."""
    middle = len(content) // 2
    inverted = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
    return content[:middle] + inverted + content[middle + 8 :]


def flip_checksum(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def cut_end(content: bytes) -> bytes:
    plain = zstandard.ZstdDecompressor().stream_reader(content).read()
    return zstandard.compress(plain[: plain.index(b"backup-complete")])


def foreign(_content: bytes) -> bytes:
    return b"a text"


def newer(content: bytes) -> bytes:
    plain = zstandard.ZstdDecompressor().stream_reader(content).read()
    return zstandard.compress(plain.replace(b'{"format":1', b'{"format":9', 1))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut, "cut off"),
        (flip, "damaged"),
        (flip_checksum, "is not a backup, or it is damaged or cut off"),
        (cut_end, "is cut off"),
        (foreign, "is not a backup, or it is damaged or cut off"),
        (newer, f"in format 9; this is Headrace {__version__}, which supports formats up to 1"),
    ],
    ids=["cut", "flipped", "checksum", "end", "foreign", "newer"],
)
def test_damaged_backup_is_rejected_and_the_directory_stays_empty(
    backup: Path, tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    (tmp_path / "new").mkdir()
    backup.write_bytes(damage(backup.read_bytes()))
    code, out, err = run("restore", str(backup), "--data", str(tmp_path / "new"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"headrace: {backup} ")
    assert reason in err
    assert {path.name for path in (tmp_path / "new").iterdir()} <= {"lock"}


@pytest.mark.parametrize("damage", [foreign, newer], ids=["foreign", "newer"])
def test_file_that_cannot_be_restored_creates_no_directory(
    backup: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    backup.write_bytes(damage(backup.read_bytes()))
    code, _, err = run("restore", str(backup), "--data", str(tmp_path / "new"))
    assert (code, err.startswith(f"headrace: {backup} ")) == (1, True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "{} has no erasures: it has no file key"),
        (b"{", "{} has no erasures that can be read: Input data was truncated"),
        (b'{"key":"\xff"}', "{} has no erasures that can be read: "),
    ],
    ids=["another directory", "cut", "not UTF-8"],
)
def test_erasures_that_cannot_be_read_create_no_directory(
    backup: Path, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    erasures = tmp_path / "erased"
    if content is None:
        erasures.mkdir()
    else:
        erasures.write_bytes(content)
    into = ("--data", str(tmp_path / "new"))
    code, out, err = run("restore", str(backup), *into, "--erasures", str(erasures))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"headrace: {reason.format(erasures)}")
    assert not (tmp_path / "new").exists()


def test_backup_is_restored_from_a_pipe(backup: Path, tmp_path: Path) -> None:
    into, pipe = tmp_path / "new", tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", backup, pipe]) as copying:
        code, _, err = run("restore", str(pipe), "--data", str(into))
    assert (copying.returncode, code, err.count("\n")) == (0, 0, 1)  # the notice on erasures


def test_backup_without_websites_and_keys_is_restored_without_them(
    data: Path, tmp_path: Path
) -> None:
    """Such is the backup of a machine whose websites and keys are in PostgreSQL."""
    lacking = Path(shutil.copytree(data, tmp_path / "lacking", symlinks=True))
    (lacking / "directory.sqlite").unlink()
    file, into = tmp_path / "backup", tmp_path / "new"
    assert run("backup", str(file), "--data", str(lacking))[0] == 0
    code, _, err = run("restore", str(file), "--data", str(into))
    assert (code, err.count("\n")) == (0, 1)  # the notice on erasures
    assert not (into / "directory.sqlite").exists()
    code, _, err = run("serve", "--data", str(into), "--port", "0")
    assert code == 1
    assert err.startswith(f"headrace: {into}/directory.sqlite is missing, but there are events")


def test_missing_backup_is_named_once(tmp_path: Path) -> None:
    missing = tmp_path / "missing.tar.zst"
    assert run("restore", str(missing), "--data", str(tmp_path / "new")) == (
        1,
        "",
        f"headrace: cannot restore {missing}: no such file or directory\n",
    )
    assert not (tmp_path / "new").exists()


def test_backup_result_is_printed_as_text_and_json(data: Path, tmp_path: Path) -> None:
    as_text, as_json = tmp_path / "a", tmp_path / "b"
    code, out, err = run("backup", str(as_text), "--data", str(data))
    assert (code, err) == (0, "")
    assert out.startswith("Backed up ")
    assert f" of data into {as_text}, a file of " in out
    output = json.loads(run("backup", str(as_json), "--data", str(data), "--json")[1])
    assert output.keys() == {"file", "bytes", "data_bytes", "made", "unreadable_logs"}
    assert (output["file"], output["bytes"]) == (str(as_json), as_json.stat().st_size)
    code, out, err = run("restore", str(as_json), "--data", str(tmp_path / "c"))
    assert (code, err.count("\n")) == (0, 1)
    assert "erasures that were made after the backup are not known" in err
    assert f" as of {output['made']} into {tmp_path}/c.\n" in out


def test_backup_result_has_the_name_of_a_file_that_is_not_utf_8(data: Path, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"\xff.tar.zst")
    code, out, err = run("backup", str(file), "--data", str(data), "--json")
    assert (code, err, json.loads(out)["file"]) == (0, "", str(file))
    code, out, _ = run("restore", str(file), "--data", str(tmp_path / "new"), "--json")
    assert (code, json.loads(out)["data"]) == (0, str(tmp_path / "new"))
