"""Start, stop and failed starts of the service; and data that it never writes to disk or log."""

import contextlib
import gzip
import json
import os
import secrets
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from testing.files import files_with
from testing.servers.ports import free_port
from testing.service import (
    HEADRACE,
    STOP_TIMEOUT_S,
    Json,
    Service,
    bearer,
    clean_environment,
    run_to_end,
    wait_until,
)
from tests.e2e.conftest import ServiceMaker
from tests.e2e.connections import accepts_connections, connect, read_all, send_partial_body
from tests.e2e.envelopes import TIMESTAMP_MS


def failed_start(
    data: Path, *options: str, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `serve`, which must exit by itself."""
    return run_to_end(
        [HEADRACE, "serve", "--data", str(data), *options],
        settings,
    )


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the single sentence on stderr of a failed start."""
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, f"one sentence was expected:\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.mark.slow
def test_port_in_use_is_one_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        sentence = output_of(failed_start(tmp_path / "data", "--port", str(port)))

    assert sentence == (
        f"headrace: cannot listen on 127.0.0.1 port {port}: address already in use; "
        "choose others with --host and --port, or HEADRACE_HOST and HEADRACE_PORT"
    )


@pytest.mark.slow
def test_data_directory_of_another_service_is_one_error(service: Service) -> None:
    sentence = output_of(failed_start(service.data, "--port", str(free_port())))

    assert str(service.data) in sentence
    assert "in use" in sentence


WRONG_SETTINGS = {
    "port that is no number": ("HEADRACE_PORT", "http"),
    "port out of range": ("HEADRACE_PORT", "70000"),
    "negative workers": ("HEADRACE_WORKERS", "-1"),
    "limit of zero": ("HEADRACE_MAX_ITEMS", "0"),
    "unknown log level": ("HEADRACE_LOG_LEVEL", "loud"),
    "timeout that is no number": ("HEADRACE_BODY_TIMEOUT_S", "soon"),
    "address that cannot be listened on": ("HEADRACE_HOST", "203.0.113.7"),
    "proxy that is no network": ("HEADRACE_TRUSTED_PROXIES", "127.0.0.1, proxy"),
    "geo database that is not there": ("HEADRACE_GEO_DATABASE", "/nowhere/geo.mmdb"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "value"), WRONG_SETTINGS.values(), ids=WRONG_SETTINGS)
def test_invalid_setting_is_one_error(tmp_path: Path, variable: str, value: str) -> None:
    options = [] if variable == "HEADRACE_PORT" else ["--port", str(free_port())]

    sentence = output_of(failed_start(tmp_path / "data", *options, settings={variable: value}))

    assert value.rpartition(" ")[2] in sentence


@pytest.mark.slow
def test_invalid_option_is_one_error(tmp_path: Path) -> None:
    sentence = output_of(failed_start(tmp_path / "data", "--port", "70000"))

    assert "--port" in sentence
    assert "70000" in sentence


@pytest.mark.slow
def test_data_directory_that_cannot_be_created_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    sentence = output_of(failed_start(tmp_path / "file" / "data", "--port", str(free_port())))

    assert str(tmp_path / "file" / "data") in sentence


@pytest.mark.slow
def test_data_directory_that_is_a_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")

    sentence = output_of(failed_start(tmp_path / "data", "--port", str(free_port())))

    assert str(tmp_path / "data") in sentence


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_data_directory_without_write_permission_is_one_error(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o500)

    sentence = output_of(failed_start(data, "--port", str(free_port())))

    assert str(data) in sentence


@pytest.mark.slow
@pytest.mark.parametrize("state", ["missing", "empty"])
def test_data_directory_that_lost_its_websites_and_keys_is_one_error(
    dedicated_service: ServiceMaker, state: str
) -> None:
    service = dedicated_service().start()
    service.post(f"/track?website_id={service.website()}", {"name": "a"})
    service.kill()
    file = service.data / "directory.sqlite"
    if state == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    lost = (
        f"headrace: {file} is {state}, but there are events of its websites: restore a backup, or "
        "set HEADRACE_DATABASE_URL if the websites and keys are in PostgreSQL"
    )

    assert output_of(failed_start(service.data, "--port", str(free_port()))) == lost
    for command in (["init"], ["website", "list"], ["website", "create", "--name", "a"]):
        done = run_to_end([HEADRACE, *command, "--data", str(service.data)])
        assert (output_of(done), done.stdout) == (lost, "")
    assert (file.exists() and file.stat().st_size > 0) is False


@pytest.mark.slow
def test_read_only_filesystem_is_one_error() -> None:
    sentence = output_of(failed_start(Path("/proc/headrace"), "--port", str(free_port())))

    assert "/proc/headrace" in sentence


@pytest.mark.slow
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to it", "to all its processes"])
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
    ids=["SIGTERM", "SIGINT", "SIGHUP"],
)
def test_signal_ends_the_service_within_ten_seconds(
    dedicated_service: ServiceMaker,
    number: signal.Signals,
    send: Callable[[int, signal.Signals], None],
) -> None:
    service = dedicated_service(workers=2).start()

    send(service.pid, number)

    wait_until(lambda: service.exit_code() is not None, "the service has ended", timeout_s=10)
    assert service.exit_code() == 0


@pytest.mark.slow
def test_service_that_ignores_the_end_of_its_terminal_survives_it(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service()
    command = [HEADRACE, "serve", "--data", str(service.data), "--port", str(service.port)]
    with subprocess.Popen(
        ["nohup", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        start_new_session=True,
    ) as process:
        try:
            wait_until(service.is_ready, "the service is ready")
            os.killpg(process.pid, signal.SIGHUP)
            website = service.website()
            accepted = service.post(f"/track?website_id={website}", {"name": "a"})
            assert (accepted.status_code, service.count(website, "events")) == (200, 1)
            process.terminate()
            assert process.wait(STOP_TIMEOUT_S) == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_sigterm_answers_accepted_requests(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    results: list[bytes] = []
    connection = connect(service)
    send_partial_body(connection, website, part=b'{"name":', size=17)
    reader = threading.Thread(target=lambda: results.append(read_all(connection)))
    reader.start()

    os.kill(service.pid, signal.SIGTERM)
    wait_until(lambda: not accepts_connections(service), "connections are refused")
    connection.sendall(b'"signup"}')

    wait_until(lambda: service.exit_code() is not None, "the service has ended")
    reader.join()
    connection.close()
    assert service.exit_code() == 0
    assert results[0].startswith(b"HTTP/1.1 200 ")
    service.restart()
    assert service.counts(website, "events", "event_name") == {"signup": 1}


@pytest.mark.slow
def test_log_that_nobody_reads_stops_nothing(dedicated_service: ServiceMaker) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, bytes(4096))
    os.set_blocking(write_end, True)
    service = dedicated_service()
    website = service.website()
    with subprocess.Popen(
        [HEADRACE, "serve", "--data", str(service.data), "--port", str(service.port)],
        stdout=write_end,
        stderr=write_end,
        env=clean_environment(),
    ) as process:
        try:
            wait_until(service.is_ready, "the service is ready")
            for _ in range(5):
                accepted = service.post(f"/track?website_id={website}", {"name": "a"})
                refused = service.post("/track?website_id=nowhere", {"name": "a"})
                assert (accepted.status_code, refused.status_code) == (200, 404)
            process.terminate()
            assert process.wait(STOP_TIMEOUT_S) == 0
        finally:
            process.kill()
            os.close(read_end)
            os.close(write_end)


@pytest.mark.slow
def test_log_on_a_full_disk_stops_nothing(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service()
    service.log.symlink_to("/dev/full")
    service.launch()
    wait_until(service.is_ready, "the service is ready")
    for kind in ("worker", "engine"):
        (killed,) = service.child_pids(kind)
        os.kill(killed, signal.SIGKILL)
        wait_until(
            lambda: service.child_pids(kind) not in ([], [killed]),  # noqa: B023 - called at once
            f"the {kind} is started again",
        )
    wait_until(service.is_ready, "the service is ready again")
    assert service.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["CET-1CEST,M3.5.0,M10.5.0/3", "Asia/Kathmandu", "No/Where"])
def test_time_zone_of_the_machine_changes_nothing(
    dedicated_service: ServiceMaker, zone: str
) -> None:
    service = dedicated_service(settings={"TZ": zone}).start()
    website = service.website()
    event = {"name": "signup", "websiteId": website, "timestamp": "2026-11-21T23:59:59Z"}
    assert service.post("/track", event, headers=bearer(service.master)).status_code == 200
    by_day = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
    assert service.answer(website, by_day, granularity="daily") == [{"date": "2026-11-21", "n": 1}]


@pytest.mark.slow
def test_engine_has_no_threads_for_linear_algebra(service: Service) -> None:
    (engine,) = service.child_pids("engine")
    variables = Path(f"/proc/{engine}/environ").read_bytes().split(b"\0")
    assert b"OPENBLAS_NUM_THREADS=1" in variables


@pytest.mark.slow
def test_idle_connections_do_not_delay_shutdown(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(5)]
    idle[0].sendall(b"POST /track HTTP/1.1\r\nHost: localhost\r\n")

    os.kill(service.pid, signal.SIGTERM)

    wait_until(lambda: service.exit_code() is not None, "the service has ended", timeout_s=10)
    for connection in idle:
        connection.close()
    assert service.exit_code() == 0


ADDRESS = "198.51.100.203"
ADDRESS_6 = "2001:db8:85a3:8d3:1319:8a2e:370:7348"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_personal_data_reaches_the_disk_or_the_log(
    dedicated_service: ServiceMaker, level: str
) -> None:
    settings = {"HEADRACE_TRUSTED_PROXIES": "127.0.0.1", "HEADRACE_LOG_LEVEL": level}
    service = dedicated_service(settings=settings).start()
    website, key = service.website(), service.key()
    agent, payload = secrets.token_hex(16), secrets.token_hex(16)
    visitor = {"User-Agent": f"Mozilla/5.0 ({agent}) Chrome/124.0", "X-Forwarded-For": ADDRESS}
    with_key: Json = {"ip": ADDRESS_6, "userAgent": visitor["User-Agent"]}
    send_everywhere(service, website, {}, visitor, payload)
    send_everywhere(service, website, with_key, {**visitor, **bearer(key)}, payload)
    send_refused(service, website, key.secret, visitor, payload)
    assert service.count(website, "events") == 4
    unloaded = files_containing(service.data, payload, agent, key.secret, ADDRESS, ADDRESS_6)

    assert service.stop() == 0

    assert unloaded == [payload]  # what is sent is found, so secrets would be
    assert files_containing(service.data, agent, key.secret, ADDRESS, ADDRESS_6) == []
    assert files_with(service.data, IPv6Address(ADDRESS_6).packed) == []
    log = service.log_text()
    for secret in (agent, key.secret, ADDRESS, ADDRESS_6, payload):
        assert secret not in log


def send_everywhere(
    service: Service, website: str, fields: Json, headers: dict[str, str], payload: str
) -> None:
    item = {**fields, "path": f"/{payload}", "sessionId": payload}
    vital = {**item, "timestamp": TIMESTAMP_MS, "metricName": "LCP", "metricValue": 1}
    error = {**item, "timestamp": TIMESTAMP_MS, "message": payload}
    event = {**item, "name": payload, "properties": {"p": payload}}
    for path, body in (
        ("/track", event),
        ("/batch", event),
        ("/vitals", vital),
        ("/errors", error),
    ):
        response = service.post(f"{path}?client_id={website}", body, headers=headers)
        assert response.status_code == 200


def send_refused(
    service: Service, website: str, secret: str, headers: dict[str, str], payload: str
) -> None:
    """Send rejected requests whose content an error could leak to the disk or the log."""
    path = f"/track?website_id={website}"
    broken = {**headers, "Authorization": f"Bearer {secret}x"}
    assert service.post(path, {"name": payload * 20}, headers=headers).status_code == 400
    assert service.post(path, {"name": payload}, headers=broken).status_code == 401
    assert service.post(f"/{payload}", {"name": payload}, headers=headers).status_code == 404
    cut = gzip.compress(json.dumps({"name": payload}).encode())[:-4]
    encoded = {**headers, "Content-Encoding": "gzip"}
    assert service.post(path, data=cut, headers=encoded).status_code == 400
    query = {"table": payload, "selects": [{"field": payload, "aggregate": "count"}]}
    assert service.send_query(website, query).status_code == 400


def files_containing(data: Path, *texts: str) -> list[str]:
    """Return those of the texts that are in a file below a directory."""
    return [text for text in texts if files_with(data, text.encode())]


@pytest.mark.slow
def test_data_directory_is_accessible_by_its_owner_only(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()

    assert service.data.stat().st_mode & 0o077 == 0
