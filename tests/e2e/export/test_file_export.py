"""`headrace export`: to files and streams, beside a service and without one, and interrupted."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from headrace.adapters.data_dir.lock import DataDirLocked, lock_data_dir
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.store_client import EngineExportStore
from headrace.adapters.export.partial_file import PARTIAL_SUFFIX, PartialFile
from headrace.model.export import Chunk, ExportFormat, ExportPlan, ExportRequest, Watermark
from headrace.model.tenancy import WebsiteId
from testing.service import HEADRACE, Service, bearer, clean_environment
from tests.e2e.conftest import ServiceMaker
from tests.e2e.export.exports import FORMATS, NOON_MS, decode, events, send

pytestmark = pytest.mark.slow

TIMEOUT_S = 120


def command(service: Service, website: str, *arguments: str) -> list[str]:
    return [HEADRACE, "export", "--website", website, "--data", str(service.data), *arguments]


def run_export(
    service: Service, website: str, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(service, website, *arguments),
        capture_output=True,
        env=clean_environment(),
        timeout=TIMEOUT_S,
        check=False,
    )


def numbers_in(content: bytes) -> list[int]:
    rows = decode(content, "ndjson")
    return sorted(row["properties"]["number"] for row in rows)


@pytest.mark.parametrize("format_name", FORMATS)
def test_file_beside_a_running_service_has_all_rows(
    service: Service, website: str, tmp_path: Path, format_name: str
) -> None:
    send(service, website, events(50))
    output = tmp_path / f"events.{format_name}"
    done = run_export(service, website, "--format", format_name, str(output), "--json")
    assert done.returncode == 0, done.stderr
    content = output.read_bytes()
    assert json.loads(done.stdout) == {
        "file": str(output),
        "bytes": len(content),
        "resumed_at": 0,
    }
    assert len(decode(content, format_name)) == 50
    assert list(tmp_path.iterdir()) == [output]


def test_standard_output_has_the_rows_and_nothing_else(service: Service, website: str) -> None:
    send(service, website, events(20))
    done = run_export(service, website, "--format", "ndjson", "-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert numbers_in(done.stdout) == list(range(20))


def test_stopped_service_exports_everything_that_it_acknowledged(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website = service.website()
    send(service, website, events(30))
    service.kill()  # the events may be in the log alone
    done = run_export(service, website, "--format", "ndjson", str(tmp_path / "events.ndjson"))
    assert done.returncode == 0, done.stderr
    assert numbers_in((tmp_path / "events.ndjson").read_bytes()) == list(range(30))


def test_output_that_exists_is_refused(service: Service, website: str, tmp_path: Path) -> None:
    output = tmp_path / "events.csv"
    output.write_text("mine")
    done = run_export(service, website, "--format", "csv", str(output))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"headrace: cannot export to {output}: it exists\n"
    assert output.read_text() == "mine"


def test_output_on_a_file_system_without_new_files_is_refused(
    service: Service, website: str
) -> None:
    done = run_export(service, website, "--format", "csv", "/proc/events.csv")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "headrace: cannot create /proc/events.csv.partial: no such file or directory\n"
    )


def test_unknown_website_is_refused(service: Service, tmp_path: Path) -> None:
    done = run_export(service, "web_nobody", "--format", "csv", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"headrace: there is no website web_nobody\n"


def test_interrupted_export_goes_on_at_its_watermark(
    service: Service, website: str, tmp_path: Path
) -> None:
    """The first run is killed; what is stored afterwards is in no later chunk."""
    send(service, website, events(40))
    first = tmp_path / "whole.ndjson"
    assert run_export(service, website, "--format", "ndjson", str(first)).returncode == 0
    output = tmp_path / "events.ndjson"
    plan = _interrupt(service, website, output)
    send(service, website, events(40, first=10))  # also among the times of the later chunks
    done = run_export(service, website, "--format", "ndjson", str(output), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resumed_at"] > 0
    assert sorted(output.read_bytes().splitlines()) == sorted(first.read_bytes().splitlines())
    assert len(plan.chunks) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.ndjson", "whole.ndjson"]


def test_interrupted_export_is_refused_after_an_erasure_of_its_website(
    service: Service, website: str, tmp_path: Path
) -> None:
    """What is written may have rows that were erased since; an erasure of another does not."""
    erase(service, website, "nobody")  # before the export begins
    send(service, website, events(40, anonymousId="ann"))
    output = tmp_path / "events.ndjson"
    _interrupt(service, website, output)
    erase(service, service.website(), "ann")
    erase(service, website, "ann")
    done = run_export(service, website, "--format", "ndjson", str(output))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "headrace: cannot continue the export: rows of the website were erased after it had "
        f"begun; remove the directory {output}{PARTIAL_SUFFIX} to begin again\n"
    )
    assert not output.exists()

    continued = tmp_path / "continued.ndjson"
    send(service, website, events(40))
    _interrupt(service, website, continued)
    erase(service, service.website(), "ann")
    assert run_export(service, website, "--format", "ndjson", str(continued)).returncode == 0
    assert numbers_in(continued.read_bytes()) == list(range(40))


def erase(service: Service, website: str, anonymous_id: str) -> None:
    response = service.post(
        f"/v1/erasures?website_id={website}",
        {"anonymousId": anonymous_id},
        headers=bearer(service.key("manage:data")),
    )
    assert response.status_code == 202, response.text


def _interrupt(service: Service, website: str, output: Path) -> ExportPlan:
    """Leave behind what an export leaves that was killed after the first of two chunks."""
    lines = run_export(service, website, "--format", "ndjson", "-").stdout.splitlines(keepends=True)
    by_time = sorted(lines, key=lambda line: json.loads(line)["time"])
    request = ExportRequest(
        website_id=WebsiteId(website), table="events", format=ExportFormat.NDJSON
    )
    watermark = _current_watermark(service, website)
    half_ms = NOON_MS + 20
    plan = ExportPlan(watermark, (Chunk(NOON_MS, half_ms, 20), Chunk(half_ms, NOON_MS + 1000, 20)))
    with PartialFile(output, request) as file:
        file.begin(plan)
        file.write(b"", b"", 0)
        file.write(b"".join(by_time[:20]), b"", 1)
        file.write(by_time[20][:30], b"", None)  # within the second chunk
    assert output.with_name(output.name + PARTIAL_SUFFIX).is_dir()
    return plan


def _current_watermark(service: Service, website: str) -> Watermark:
    with pytest.raises(DataDirLocked) as locked, lock_data_dir(service.data, "a test"):
        pass
    socket = Path(locked.value.owner.runtime) / ENGINE_SOCKET

    async def fetch() -> Watermark:
        async with EngineExportStore(EngineConnections(socket)).open(website) as watermark:
            return watermark

    return asyncio.run(fetch())


def test_partial_export_of_something_else_is_refused(
    service: Service, website: str, tmp_path: Path
) -> None:
    output = tmp_path / "events.csv"
    request = ExportRequest(website_id=WebsiteId(website), table="errors", format=ExportFormat.CSV)
    with PartialFile(output, request) as file:
        file.begin(ExportPlan(Watermark("x", 1), (Chunk(0, 1, 0),)))
    done = run_export(service, website, "--format", "csv", str(output))
    assert done.returncode == 1
    assert done.stderr.decode() == (
        f"headrace: cannot continue the export in {output}{PARTIAL_SUFFIX}: it is of another "
        "website, table, range or format; remove the directory to begin again\n"
    )


def test_partial_export_of_a_version_with_other_columns_is_refused(
    service: Service, website: str, tmp_path: Path
) -> None:
    output = tmp_path / "events.ndjson"
    send(service, website, events(40))
    _interrupt(service, website, output)
    begun = output.with_name(output.name + PARTIAL_SUFFIX) / "export"
    begun.write_text(json.dumps({**json.loads(begun.read_bytes()), "layout": 1}))
    done = run_export(service, website, "--format", "ndjson", str(output))
    assert done.returncode == 1
    assert done.stderr.decode() == (
        f"headrace: cannot continue the export in {output}{PARTIAL_SUFFIX}: it is not of an export "
        "that this version can continue; remove the directory to begin again\n"
    )


def test_partial_export_of_another_data_directory_is_refused(
    service: Service, website: str, tmp_path: Path
) -> None:
    output = tmp_path / "events.csv"
    request = ExportRequest(website_id=WebsiteId(website), table="events", format=ExportFormat.CSV)
    with PartialFile(output, request) as file:
        file.begin(ExportPlan(Watermark("elsewhere", 1), (Chunk(0, 1, 0),)))
    done = run_export(service, website, "--format", "csv", str(output))
    assert done.returncode == 1
    assert done.stderr.startswith(b"headrace: cannot continue the export: the data directory")


def test_export_stopped_by_a_signal_leaves_no_output(
    service: Service, website: str, tmp_path: Path
) -> None:
    send(service, website, events(10))
    output = tmp_path / "events.csv"
    running = subprocess.Popen(
        command(service, website, "--format", "csv", str(output)),
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    running.send_signal(signal.SIGKILL)
    assert running.wait(TIMEOUT_S) == -signal.SIGKILL
    assert not output.exists()
    done = run_export(service, website, "--format", "csv", str(output))
    assert done.returncode == 0, done.stderr
    assert len(decode(output.read_bytes(), "csv")) == 10
