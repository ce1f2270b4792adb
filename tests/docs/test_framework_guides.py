"""The guides for Django, FastAPI and Flask, each in an application that its own server runs."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from testing.servers.ports import free_port
from testing.service import Row, Service, wait_until
from tests.docs.guides import blocks
from tests.docs.test_guides import TIMEOUT_S, run, variables

pytestmark = pytest.mark.slow

VISITOR = {
    "Cookie": "visitor=anon_9",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0",
}


def write_blocks(guide: str, folder: Path) -> None:
    """Write each block to the file that its first line names, behind what is there."""
    for block in blocks(guide, "python"):
        name, _, code = block.partition("\n")
        file = folder / name.removeprefix("# ")
        text = file.read_text() if file.name == "settings.py" else ""
        file.write_text(text + code)


@contextmanager
def running(
    command: list[str], folder: Path, environment: dict[str, str], port: int
) -> Generator[str]:
    """Run a server and yield its URL; it ends as servers do, on SIGTERM."""
    server = subprocess.Popen([sys.executable, "-m", *command], cwd=folder, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: status(url, "GET", "/none") == 404, "the server answers")
        yield url
    finally:
        server.terminate()
        server.wait(TIMEOUT_S)


def status(url: str, method: str, path: str) -> int:
    try:
        with Service.session() as session:
            return session.request(method, url + path, headers=VISITOR, timeout=20).status_code
    except requests.ConnectionError:
        return 0


def order_and_fail(url: str, method: str) -> None:
    assert status(url, method, "/order") == 200
    assert status(url, "GET", "/stock") == 500


def stored(service: Service, website: str) -> list[tuple[object, ...]]:
    """Return the events but those of the requests that only ask whether the server is up."""
    columns = ["event_name", "path", "anonymous_id", "browser_name"]
    rows: list[Row] = service.rows(website, "events", columns)
    return sorted(tuple(row.values()) for row in rows if row["path"] != "/none")


def wait_for_error(service: Service, website: str) -> Row:
    wait_until(lambda: service.count(website, "errors") == 1, "the error is stored")
    return service.row(website, "errors", ["message", "error_type", "path", "anonymous_id"])


def test_django_guide_reports_events_and_errors_of_its_views(
    service: Service, tmp_path: Path
) -> None:
    website = service.website()
    environment = variables(service, website)
    port = free_port()
    run([sys.executable, "-m", "django", "startproject", "shop", "."], "", environment, tmp_path)
    write_blocks("django.md", tmp_path)

    command = ["django", "runserver", "--noreload", str(port)]
    environment |= {
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "PYTHONPATH": ":".join([str(tmp_path), environment["PYTHONPATH"]]),
    }
    with running(command, tmp_path, environment, port) as url:
        order_and_fail(url, "GET")
        error = wait_for_error(service, website)
        wait_until(lambda: service.count(website, "events") == 1, "the event is stored")

    assert stored(service, website) == [("order_placed", "/order", "anon_9", "Firefox")]
    assert error == {
        "message": "Internal Server Error: /stock",
        "error_type": "ValueError",
        "path": "/stock",
        "anonymous_id": "anon_9",
    }


def test_fastapi_guide_reports_requests_events_and_errors(service: Service, tmp_path: Path) -> None:
    website = service.website()
    port = free_port()
    write_blocks("fastapi.md", tmp_path)

    command = ["uvicorn", "main:app", "--port", str(port)]
    with running(command, tmp_path, variables(service, website), port) as url:
        order_and_fail(url, "POST")
        error = wait_for_error(service, website)
        wait_until(lambda: len(stored(service, website)) == 3, "the events are stored")

    assert stored(service, website) == [
        ("http_request", "/order", "anon_9", "Firefox"),
        ("http_request", "/stock", "anon_9", "Firefox"),
        ("order_placed", "/order", "anon_9", "Firefox"),
    ]
    assert error == {
        "message": "no stock",
        "error_type": "ValueError",
        "path": "/stock",
        "anonymous_id": "anon_9",
    }


def test_flask_guide_reports_views_events_and_errors(service: Service, tmp_path: Path) -> None:
    website = service.website()
    port = free_port()
    write_blocks("flask.md", tmp_path)

    command = ["flask", "run", "--port", str(port)]
    with running(command, tmp_path, variables(service, website), port) as url:
        order_and_fail(url, "GET")
        error = wait_for_error(service, website)
        wait_until(lambda: service.count(website, "events") == 2, "the events are stored")

    assert stored(service, website) == [
        ("order_placed", "/order", "anon_9", "Firefox"),
        ("screen_view", "/order", "anon_9", "Firefox"),
    ]
    assert error == {
        "message": "Exception on /stock [GET]",
        "error_type": "ValueError",
        "path": "/stock",
        "anonymous_id": "anon_9",
    }
