"""`headrace import`: beside a service and without one, again and again."""

import fcntl
import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard

from testing.service import (
    HEADRACE,
    Service,
    bearer,
    clean_environment,
    temporary_files,
    wait_until,
)
from tests.e2e.conftest import ServiceMaker
from tests.e2e.export.exports import NOON_MS, decode, events, request_export, send

pytestmark = pytest.mark.slow

TIMEOUT_S = 120
VITAL = {"timestamp": NOON_MS, "path": "/a", "metricName": "LCP", "metricValue": 1.5}
ERROR = {"timestamp": NOON_MS, "path": "/a", "message": "oops", "lineno": 3, "level": "fatal"}


def run(
    service: Service, *arguments: object, standard_input: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [HEADRACE, *map(str, arguments), "--data", str(service.data)],
        input=standard_input,
        capture_output=True,
        env=clean_environment(),
        timeout=TIMEOUT_S,
        check=False,
    )


def run_import(service: Service, website: str, *arguments: object) -> tuple[int, dict[str, Any]]:
    done = run(service, "import", *arguments, "--website", website, "--json")
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


def export(service: Service, website: str, table: str = "events") -> list[dict[str, Any]]:
    response = request_export(service, website, table=table)
    assert response.status_code == 200, response.text
    return sorted(decode(response.content, "ndjson"), key=lambda row: str(row["id"]))


def ndjson(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def result(lines: int, *, stored: int = 0, repeated: int = 0, **other: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"expired": 0, "erased": 0, "skipped": 0, "refused": []}
    return {"lines": lines, "stored": stored, "repeated": repeated, **empty, **other}


@pytest.mark.parametrize(
    ("case", "batch"),
    [
        (
            "ndjson events /batch",
            [
                *events(20, path="https://shop.example/a?utm_source=ads#x", sessionId="s"),
                {"name": "signup", "timestamp": NOON_MS, "profileId": "account-17"},
                {"name": "screen_view", "timestamp": NOON_MS, "title": "Ä", "value": 0},
                {"name": "no time", "properties": {"title": 5, "deep": {"a": [1.5, None, 2**70]}}},
            ],
        ),
        ("parquet events /batch", [*events(2000), {"name": "bare", "timestamp": NOON_MS}]),
        ("parquet performance /vitals", [VITAL, VITAL]),
        ("ndjson errors /errors", [ERROR, {**ERROR, "stack": "at x\n"}]),
    ],
)
def test_rows_of_an_export_come_back_in_all_columns(
    service: Service,
    tmp_path: Path,
    case: str,
    batch: list[dict[str, Any]],
) -> None:
    format_name, table, path = case.split()
    source, target = service.website(), service.website()
    send(service, source, batch, path)
    rows = export(service, source, table)
    file = tmp_path / "rows"
    exported = request_export(service, source, table=table, format_name=format_name)
    file.write_bytes(exported.content)
    arguments = (file, "--format", format_name, "--table", table)
    assert run_import(service, target, *arguments, "--dry-run") == (
        0,
        result(len(batch), stored=len(batch)),
    )
    assert export(service, target, table) == []
    assert run_import(service, target, *arguments) == (0, result(len(batch), stored=len(batch)))
    assert export(service, target, table) == [{**row, "website_id": target} for row in rows]
    for _ in range(2):
        repeated = result(len(batch), repeated=len(batch))
        assert run_import(service, target, *arguments) == (0, repeated)
    assert len(export(service, target, table)) == len(batch)


def test_an_old_export_brings_no_erased_rows_back(
    service: Service, website: str, tmp_path: Path
) -> None:
    sent = [
        {"name": "visit", "anonymousId": name, "properties": {"mail": f"{name}@example.com"}}
        for name in ("ann", "bob", "eve")
    ]
    send(service, website, sent)
    old = tmp_path / "old.parquet"
    old.write_bytes(request_export(service, website, format_name="parquet").content)
    for wanted in (("--anonymous-id", "ann"), ("--property", "mail=bob@example.com")):
        arguments = ("erase", "--website", website, *wanted, "--no-wait")
        assert run(service, *arguments).returncode == 0
    send(service, website, sent[:1])
    kept = export(service, website)
    assert sorted(row["anonymous_id"] for row in kept) == ["ann", "eve"]
    new = tmp_path / "new.ndjson"
    new.write_bytes(ndjson(kept))

    assert run_import(service, website, old, "--format", "parquet") == (
        0,
        result(3, repeated=1, erased=2),
    )
    assert run_import(service, website, new, "--format", "ndjson") == (0, result(2, repeated=2))
    assert export(service, website) == kept


def exported_rows(count: int, *, first: int = 0) -> bytes:
    """Return lines of an export: rows with ids of their own, received days ago."""
    filler = {"text": "x" * 2_000}
    return ndjson(
        [
            {
                "id": f"{NOON_MS:012x}{number:020x}",
                "event_name": "visit",
                "anonymous_id": f"visitor-{number}",
                "time": "2026-01-15T12:00:00.000Z",
                "received_at": "2026-01-15T12:00:00.000Z",
                "is_bot": False,
                "properties": filler,
            }
            for number in range(first, first + count)
        ]
    )


def an_import_waits() -> bool:
    """Return whether an import waits for what excludes it: it has the turn meanwhile."""
    return any(map(is_locked, Path(temporary_files().name).glob("*/*/import-*.turn")))


def is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_an_export_has_no_row_that_an_import_stores_meanwhile(
    service: Service, website: str, tmp_path: Path
) -> None:
    before, meanwhile = tmp_path / "before.ndjson", tmp_path / "meanwhile.ndjson"
    before.write_bytes(exported_rows(20_000))
    meanwhile.write_bytes(exported_rows(100, first=20_000))
    arguments = ("--format", "ndjson")
    assert run_import(service, website, before, *arguments) == (0, result(20_000, stored=20_000))
    parameters = {"website_id": website, "table": "events", "format": "ndjson"}
    response = service.get(
        "/v1/export", params=parameters, headers=bearer(service.key("manage:data")), stream=True
    )
    lines = response.iter_lines()
    exported = [json.loads(next(lines))]  # more than what socket buffers take is left
    command = [HEADRACE, "import", str(meanwhile), "--website", website, *arguments]
    importing = subprocess.Popen(
        [*command, "--data", str(service.data)], env=clean_environment(), stdout=subprocess.DEVNULL
    )

    def has_begun() -> bool:
        exported.append(json.loads(next(lines)))  # a client that reads nothing is cut off
        return an_import_waits() or importing.poll() is not None

    wait_until(has_begun, "the import waits for the export")
    with pytest.raises(subprocess.TimeoutExpired):
        importing.wait(1)
    exported += map(json.loads, lines)
    assert sorted(int(row["id"][12:], 16) for row in exported) == list(range(20_000))
    assert importing.wait(TIMEOUT_S) == 0
    assert service.count(website, "events") == 20_100


def test_import_into_a_stopped_service_passes_verify(
    service: Service, website: str, dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    send(service, website, events(30))
    file = tmp_path / "rows.ndjson"
    file.write_bytes(ndjson(export(service, website)))
    other = dedicated_service().start()
    target = other.website()
    other.stop()
    arguments = (file, "--format", "ndjson")
    assert run_import(other, target, *arguments) == (0, result(30, stored=30))
    verified = run(other, "verify", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["problems"]) == (0, [])
    other.start()
    assert run_import(other, target, *arguments) == (0, result(30, repeated=30))
    assert len(export(other, target)) == 30


def test_refused_lines_are_reported_and_the_others_stored(service: Service, tmp_path: Path) -> None:
    source, target = service.website(), service.website()
    send(service, source, events(3))
    first, second, third = export(service, source)
    file, report = tmp_path / "rows.ndjson", tmp_path / "report.ndjson"
    wrong = {**second, "id": "1", "time": "1999-12-31T23:59:59.999Z", "is_bot": "no", "title": 3}
    unborn = {**second, "id": "f" * 32}
    lines = [
        ndjson([first]),
        b"{\n",
        ndjson([wrong]),
        b"\n",
        ndjson([unborn]),
        ndjson([third])[:-1],
    ]
    file.write_bytes(b"".join(lines))
    code, found = run_import(service, target, file, "--format", "ndjson", "--report", report)
    reasons = [
        {"file": str(file), "line": 2, "reason": "it is no JSON object"},
        {
            "file": str(file),
            "line": 3,
            "reason": "id must be 32 hexadecimal digits; "
            "title must be text of at most 512 characters; time must not be before 2000-01-01; "
            "is_bot must be true or false",
        },
        {
            "file": str(file),
            "line": 5,
            "reason": "the time in id must not be more than 24 hours ahead",
        },
    ]
    assert (code, found) == (1, result(6, stored=2, skipped=1, refused=reasons))
    assert [json.loads(line) for line in report.read_bytes().splitlines()] == reasons


def test_compressed_files_are_read_and_their_damage_is_reported(
    service: Service, tmp_path: Path
) -> None:
    source, target = service.website(), service.website()
    send(service, source, events(40))
    rows = export(service, source)
    zipped, zstd, damaged = (tmp_path / name for name in ("a.ndjson.gz", "b.zst", "c.gz"))
    zipped.write_bytes(gzip.compress(ndjson(rows[:10])))
    zstd.write_bytes(zstandard.compress(ndjson(rows[5:20])))
    damaged.write_bytes(gzip.compress(ndjson(rows[20:]))[:-9])
    code, found = run_import(service, target, zipped, zstd, damaged, "--format", "ndjson")
    (refused,) = found["refused"]
    assert (code, found["stored"], found["repeated"]) == (1, 40, 5)
    assert (refused["file"], refused["line"]) == (str(damaged), 21)
    assert refused["reason"].startswith("the file is damaged: ")


def test_files_that_cannot_be_opened_are_exit_code_2(service: Service, website: str) -> None:
    done = run(service, "import", "missing.ndjson", "--format", "ndjson", "--website", website)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"headrace: cannot open missing.ndjson: no such file or directory\n"


def test_import_that_waits_for_space_on_the_disk_says_so_before_it_ends(
    service: Service, tmp_path: Path
) -> None:
    website = service.website()
    send(service, website, events(1))
    file = tmp_path / "rows.ndjson"
    file.write_bytes(ndjson(export(service, website)))
    options = ("--data", str(service.data), "--website", service.website(), "--format", "ndjson")
    process = subprocess.Popen(
        [HEADRACE, "import", str(file), *options],
        stderr=subprocess.PIPE,
        env={**clean_environment(), "HEADRACE_MIN_FREE_BYTES": str(2**62)},
    )
    with process:
        assert process.stderr is not None
        waits = next(line for line in process.stderr if line.startswith(b"headrace: "))
        is_running = process.poll() is None
        process.terminate()
    assert is_running
    assert waits.startswith(
        b"headrace: the import waits: the disk is nearly full (free on the disk: "
    )


def test_unknown_website_is_refused(service: Service, tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_bytes(b"")
    arguments = (tmp_path / "rows.ndjson", "--format", "ndjson", "--website", "web_none")
    done = run(service, "import", *arguments)
    assert (done.returncode, done.stderr) == (1, b"headrace: there is no website web_none\n")


def test_report_does_not_overwrite_a_file_to_import(service: Service, tmp_path: Path) -> None:
    file, same = tmp_path / "rows.ndjson", tmp_path / "link.ndjson"
    file.write_bytes(exported_rows(1))
    same.symlink_to(file)
    arguments = ("--website", service.website(), "--format", "ndjson", "--report", same)
    done = run(service, "import", file, *arguments)
    error = f"headrace: cannot write the report to {same}: it is a file to import\n"
    assert (done.returncode, done.stderr.decode()) == (1, error)
    assert file.read_bytes() == exported_rows(1)


def test_pipe_is_read_once(service: Service, website: str, tmp_path: Path) -> None:
    sessions = tmp_path / "session.csv"
    sessions.write_bytes(b"session_id,country\ns,DE\n")
    header = b"event_id,session_id,created_at,page_title\n"
    lines = [b"e%d,s,2026-01-15 12:00:00,a title that fills some pages\n" % n for n in range(5000)]
    done = run(
        service,
        *("import", "/dev/stdin", sessions, "--format", "umami", "--website", website, "--json"),
        standard_input=header + b"".join(lines),
    )
    assert json.loads(done.stdout) == result(5003, stored=5000, skipped=3), done.stderr
    assert {row["country"] for row in export(service, website)} == {"DE"}
