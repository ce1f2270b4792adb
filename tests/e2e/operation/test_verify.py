"""`headrace verify` detects damage by a disk, a crash or an incorrect copy."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.adapters.store.chdb.table_identity import IDENTITY_FILE
from testing.service import (
    HEADRACE,
    Service,
    clean_environment,
    log_until_a_process_dies,
    run_to_end,
    running_service,
    with_file_limit,
)
from tests.e2e.conftest import ServiceMaker
from tests.fixtures.make_data_directory import CONTENT, fill

pytestmark = pytest.mark.slow

Problem = tuple[str, str]

TABLES = ("events", "errors", "performance")
EVENTS = 4
SEGMENT = "00000000000000000001.segment"


class Verdict(NamedTuple):
    """The exit code and output of `verify`."""

    code: int
    out: str
    err: str

    @property
    def problems(self) -> list[Problem]:
        """The problems in the JSON output."""
        assert self.err == "", self
        value = json.loads(self.out)
        assert (value["ok"], self.code) == ((True, 0) if not value["problems"] else (False, 1))
        return [(each["part"], each["problem"]) for each in value["problems"]]


def verify(data: Path, *options: str) -> Verdict:
    done = run_to_end([HEADRACE, "verify", "--data", str(data), *options])
    return Verdict(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with rows in the store and records that are only in the log."""
    service = Service(tmp_path_factory.mktemp("verified") / "data")
    try:
        fill(service)
        yield service.data
    finally:
        service.kill()


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    """A copy of the directory, for a test to damage."""
    return Path(shutil.copytree(original, tmp_path / "data", symlinks=True))


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


def change(file: Path, sql: str, *values: Any) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(sql, values)
    connection.close()


def end_of(segment: Path) -> int:
    """Return where the last record ends; its writer was killed and had zeros after it."""
    return len(segment.read_bytes().rstrip(b"\0"))


def part_of(data: Path, table: str) -> Path:
    """Return the directory of the only part of a table."""
    (part,) = (data / "store" / "data" / "headrace" / table).resolve().glob("all_*")
    return part


def test_intact_directory_passes(data: Path) -> None:
    value = json.loads(verify(data, "--json").out)
    checked = {"logs": 1, "records": 6, "parts": len(TABLES), "rows": EVENTS}
    assert value == {"ok": True, "problems": [], "notes": [], "checked": checked}
    assert verify(data) == Verdict(
        0, "No problems found: 4 rows in 3 parts, 6 records in 1 log.\n", ""
    )


def test_directory_without_events_has_no_rows(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    assert service.stop() == 0
    assert verify(service.data) == Verdict(
        0, "No problems found: 0 rows in 0 parts, 0 records in 1 log.\n", ""
    )


def test_verification_changes_nothing(data: Path) -> None:
    assert verify(data, "--json").problems == []
    with running_service(data) as service:
        (website,) = service.directory.websites()
        found = service.counts(website.id, "events", "event_name")
        assert found == CONTENT["events"]
        assert service.stop() == 0
    assert verify(data, "--json").problems == []


@pytest.mark.parametrize(
    "content", [b"", b"\xffHEA", bytes(30), bytes(4096)], ids=["empty", "cut", "zeros", "page"]
)
def test_newest_segment_whose_first_write_was_interrupted_is_no_damage(
    data: Path, content: bytes
) -> None:
    (log,) = (data / "log").iterdir()
    (log / SEGMENT.replace("1.", "2.")).write_bytes(content)
    assert verify(data, "--json").problems == []


FIRST_STARTS = {
    "nothing logged": ("store", "ledger.sqlite", "directory.sqlite", "repeats.sqlite", "log/*/*"),
    "nothing loaded": ("store", "ledger.sqlite", "log/*/loaded"),
    "tables and nothing logged": (
        *(f"store/data/headrace/{table}/all_*" for table in TABLES),
        *("ledger.sqlite", "directory.sqlite", "repeats.sqlite", "log/*/*"),
    ),
    "store without tables": ("store/*", "ledger.sqlite", "log/*/loaded"),
}


@pytest.mark.parametrize("missing", FIRST_STARTS.values(), ids=FIRST_STARTS.keys())
def test_interrupted_first_start_is_no_damage(data: Path, missing: tuple[str, ...]) -> None:
    for path in [path for pattern in missing for path in data.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for leftover in data.glob("ledger.sqlite-*"):
        leftover.unlink()
    assert verify(data, "--json").problems == []


@pytest.mark.parametrize(
    "command", [("storage",), ("prune",), ("backup", "OUTPUT")], ids=lambda command: command[0]
)
def test_directory_without_a_first_start_is_no_damage(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    data, output = tmp_path / "data", str(tmp_path / "output")
    used = [output if argument == "OUTPUT" else argument for argument in command]
    for arguments in (["init"], used):
        whole = [HEADRACE, *arguments, "--data", str(data)]
        subprocess.run(whole, check=True, env=clean_environment(), timeout=120)
    assert verify(data, "--json").problems == []


def test_issues_are_printed_as_sentences(data: Path) -> None:
    (data / "repeats.sqlite").unlink()
    assert verify(data) == Verdict(
        1, "repeats: repeats.sqlite is missing: idempotency keys of the last day are lost\n", ""
    )


def test_running_service_is_not_verified(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    assert verify(service.data) == Verdict(
        1,
        "",
        f"headrace: cannot verify {service.data}: the service runs; stop it, or verify a restored "
        "backup\n",
    )


def test_flipped_byte_in_a_part_is_found(data: Path) -> None:
    part = part_of(data, "events")
    flip(part / "data.bin", 100)
    reason = "Checksum mismatch for file data.bin"
    assert verify(data, "--json").problems == [
        ("store", f"the part {part.name} of the table events is damaged: {reason}")
    ]


def test_broken_rollup_is_a_note_until_it_is_repaired(data: Path) -> None:
    part = part_of(data, "events")
    flip(part / "visits.proj" / "data.bin", 100)
    note = (
        "the projection visits of the table events, which sessions and profiles read, is missing "
        "or broken in some parts (1): the service rebuilds it from the events by itself, or "
        "`headrace verify --repair` now"
    )
    for options, notes in (([], [note]), (["--repair"], []), ([], [])):
        verdict = verify(data, "--json", *options)
        assert verdict.problems == []
        assert [each["problem"] for each in json.loads(verdict.out)["notes"]] == notes


def test_part_that_does_not_load_is_found(data: Path) -> None:
    (part_of(data, "errors") / "columns.txt").write_text("")
    ((part, problem),) = verify(data, "--json").problems
    assert part == "store"
    assert "of the table errors is broken and set aside, with its rows" in problem


def test_missing_segment_is_found(data: Path) -> None:
    (data / "log" / "worker-0" / SEGMENT).unlink()
    assert verify(data, "--json").problems == [
        (
            "log",
            "the log worker-0: its segment 1 is missing, with the acknowledged events in it",
        )
    ]


def test_missing_log_is_found(data: Path) -> None:
    shutil.rmtree(data / "log" / "worker-0")
    assert verify(data, "--json").problems == [
        ("log", "the log worker-0 is missing, and the ledger has an offset of it")
    ]


def test_flipped_byte_in_unloaded_log_data_is_found(data: Path) -> None:
    segment = data / "log" / "worker-0" / SEGMENT
    flip(segment, end_of(segment) - 5)
    ((part, problem),) = verify(data, "--json").problems
    assert part == "log"
    assert problem.startswith("the log worker-0: the bytes ")
    assert problem.endswith(" of its segment 1 are damaged, and the events in them are lost")


def test_flipped_byte_in_loaded_log_data_is_found(data: Path) -> None:
    flip(data / "log" / "worker-0" / SEGMENT, 60)
    ((part, problem),) = verify(data, "--json").problems
    assert part == "log"
    assert problem.endswith(" of its segment 1 are damaged; the events in them are in the store")


def test_truncated_log_is_found(data: Path) -> None:
    segment = data / "log" / "worker-0" / SEGMENT
    size = end_of(segment)
    segment.write_bytes(segment.read_bytes()[: size - 1])
    expected = (
        f"the log worker-0: its segment 1 ends at byte {size - 1}, and events were acknowledged up "
        f"to byte {size}"
    )
    assert ("log", expected) in verify(data, "--json").problems


def test_torn_tail_of_a_crash_is_not_an_issue(data: Path) -> None:
    path = data / "log" / "worker-0" / SEGMENT
    with path.open("r+b") as segment:
        segment.seek(end_of(path))
        segment.write(b"\xc1\xffHR half a record")
    assert verify(data, "--json").problems == []


def test_ledger_ahead_of_its_log_is_found(data: Path) -> None:
    size = end_of(data / "log" / "worker-0" / SEGMENT)
    change(data / "ledger.sqlite", "UPDATE positions SET place = ?", size + 1)
    expected = (
        f"it has noted the log worker-0 as stored up to byte {size + 1} of segment 1, and the "
        f"log ends at byte {size} of segment 1: ledger and log are of different times"
    )
    assert verify(data, "--json").problems[0] == ("ledger", expected)


def test_ledger_behind_its_store_is_found(data: Path) -> None:
    change(data / "ledger.sqlite", "UPDATE positions SET place = 30")
    change(data / "ledger.sqlite", "UPDATE ledger SET intent = NULL")
    rest = (
        "has rows that the ledger does not know of, from the log worker-0: store and ledger are "
        "not of the same moment"
    )
    assert verify(data, "--json").problems == [
        ("store", f"the table {table} {rest}") for table in TABLES
    ]


def test_store_behind_its_ledger_is_found(data: Path) -> None:
    size = end_of(data / "log" / "worker-0" / SEGMENT)
    change(data / "ledger.sqlite", "UPDATE positions SET place = ?", size)
    rest = (
        "lacks 1 of 1 rows that the ledger has noted as stored and that are still in the log "
        "worker-0"
    )
    problems = [("store", f"the table {table} {rest}") for table in TABLES]
    assert sorted(verify(data, "--json").problems) == sorted(problems)


@pytest.mark.parametrize(
    ("file", "part", "loss"),
    [
        ("directory.sqlite", "directory", "websites and keys are lost"),
        ("ledger.sqlite", "ledger", "which records of the logs are stored is unknown"),
    ],
    ids=["directory", "ledger"],
)
def test_missing_file_is_found(data: Path, file: str, part: str, loss: str) -> None:
    (data / file).unlink()
    for _ in range(2):
        assert verify(data, "--json").problems == [(part, f"{file} is missing: {loss}")]


@pytest.mark.parametrize(
    ("file", "part", "loss"),
    [
        ("directory.sqlite", "directory", "websites and keys are lost"),
        ("ledger.sqlite", "ledger", "which records of the logs are stored is unknown"),
        ("repeats.sqlite", "repeats", "idempotency keys of the last day are lost"),
    ],
    ids=["directory", "ledger", "repeats"],
)
def test_emptied_file_is_found(data: Path, file: str, part: str, loss: str) -> None:
    for one in data.glob(f"{file}*"):
        one.write_bytes(b"")
    for _ in range(2):
        assert verify(data, "--json").problems == [(part, f"{file} is empty: {loss}")]


@pytest.fixture
def erased(data: Path) -> Path:
    """The file of an erasure that matched nothing."""
    website = json.loads(command(data, "website", "list", "--json").stdout)[0]["id"]
    command(data, "erase", "--website", website, "--anonymous-id", "nobody")
    (file,) = (data / "erasures").glob("era_*.json")
    return file


def command(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([HEADRACE, *arguments, "--data", str(data)], {"HEADRACE_PORT": "0"})


def test_damaged_erasure_is_found_and_named_by_all_commands(data: Path, erased: Path) -> None:
    erased.write_text("{")
    problem = f"the erasure {erased} is damaged: Input data was truncated"
    assert verify(data, "--json").problems == [("erasures", problem)]
    listed = command(data, "erasures", "list")
    assert (listed.returncode, listed.stderr) == (1, f"headrace: {problem}\n")
    served = command(data, "serve")
    assert served.returncode == 1
    assert f"headrace: {problem}; restore it from a backup\n" in served.stderr
    assert "Traceback" not in served.stderr


@pytest.mark.usefixtures("erased")
def test_damaged_or_missing_key_of_erasures_is_found(data: Path) -> None:
    key = data / "erasures" / "key"
    key.write_text(key.read_text()[:-2])
    damaged = ("erasures", f"the key of the erasures {key} is damaged")
    assert verify(data, "--json").problems == [damaged]
    key.unlink()
    missing = ("erasures", "key is missing: what was erased is not known in an import")
    assert verify(data, "--json").problems == [missing]


def test_damaged_directory_is_found(data: Path) -> None:
    content = (data / "directory.sqlite").read_bytes()
    (data / "directory.sqlite").write_bytes(content[:8192] + bytes(8192) + content[16384:])
    problems = verify(data, "--json").problems
    assert problems
    assert {part for part, _ in problems} == {"directory"}
    assert all(problem.startswith("directory.sqlite is damaged: ") for _, problem in problems)


def test_files_that_a_full_disk_keeps_from_being_checked_are_not_called_damaged(data: Path) -> None:
    done = run_to_end(with_file_limit([HEADRACE, "verify", "--data", str(data)], blocks=4))
    assert done.stdout == (
        "ledger: ledger.sqlite cannot be checked: disk I/O error\n"
        "repeats: repeats.sqlite cannot be checked: disk I/O error\n"
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_missing_store_is_found(data: Path) -> None:
    shutil.rmtree(data / "store")
    assert verify(data, "--json").problems == [
        ("store", "it is missing, but the ledger lists batches that it contains")
    ]


@pytest.mark.parametrize("content", [b"", b"\xc3\xa9" * 16, bytes(33)], ids=["empty", "text", "0"])
def test_damaged_identity_of_a_table_is_found_and_ends_the_start_with_one_sentence(
    data: Path, content: bytes
) -> None:
    file = part_of(data, "errors").parent / IDENTITY_FILE
    file.write_bytes(content)
    problem = f"{file} is damaged: restore a backup"
    assert verify(data, "--json").problems == [("store", problem)]
    assert [
        (line["event_name"], line["reason"])
        for line in log_until_a_process_dies(data)
        if line["level"] == "error"
    ] == [("process_failed", f"cannot prepare the store {data / 'store'}: {problem}")]


def test_directory_without_data_is_not_verified(tmp_path: Path) -> None:
    assert verify(tmp_path) == Verdict(
        1, "", f"headrace: {tmp_path} is not a data directory: it contains no data\n"
    )
