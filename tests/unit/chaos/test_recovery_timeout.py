"""A service that does not come back says why in the report of the crash test."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from chaos.service import RecoveryTimeout, Service
from testing.servers.ports import free_port

READINESS = b'{"parts": {"disk": "unavailable"}}'


class FullDisk(BaseHTTPRequestHandler):
    """What /ready responds while the disk is full."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(READINESS)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), FullDisk)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def service_on(port: int, tmp_path: Path) -> Service:
    return Service(tmp_path / "data", log=tmp_path / "service.log", port=port, recovery_timeout_s=0)


def test_the_parts_that_are_unavailable_are_named(port: int, tmp_path: Path) -> None:
    with pytest.raises(RecoveryTimeout) as raised:
        service_on(port, tmp_path).wait_for_recovery()

    assert str(raised.value) == (
        f"the service was not back after 0 s, /ready replied {READINESS.decode()}"
    )


def test_a_service_that_does_not_listen_is_distinguished(tmp_path: Path) -> None:
    with pytest.raises(RecoveryTimeout, match="/ready replied nothing: ConnectionRefusedError"):
        service_on(free_port(), tmp_path).wait_for_recovery()
