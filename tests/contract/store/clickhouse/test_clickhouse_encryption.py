"""Encrypted connections to ClickHouse, through a TLS listener in front of a real server."""

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.model.catalog import EVENTS
from testing.chdb import LIMITS, arrow_stream
from testing.servers.clickhouse import ClickHouseServers, ClickHouseTables

pytestmark = pytest.mark.clickhouse


class EncryptedPort:
    """Terminates TLS with a certificate for localhost and forwards the bytes to another port."""

    def __init__(self, target: int, certificate: Path, key: Path) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(raw,)))
                self._threads[-1].start()

    def _serve(self, raw: socket.socket) -> None:
        with raw, contextlib.suppress(OSError):
            client = self._context.wrap_socket(raw, server_side=True)
            with client, socket.create_connection(("127.0.0.1", self._target)) as server:
                listening = threading.Thread(target=_pass_on, args=(server, client))
                listening.start()
                _pass_on(client, server)
                listening.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    directory = tmp_path_factory.mktemp("certificate")
    made = (directory / "ca.pem", directory / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-out", str(made[0]), "-keyout", str(made[1])),
        ],
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture
def encrypted(
    clickhouse_servers: ClickHouseServers, certificate: tuple[Path, Path]
) -> Iterator[tuple[ClickHouseTables, str]]:
    """Empty tables, and their URL through an encrypted port."""
    made = ClickHouseTables(clickhouse_servers.servers[:1])
    port = EncryptedPort(made.servers[0].port, *certificate)
    plain = f"clickhouse://{made.url.split('//')[1]}"
    url = plain.replace("clickhouse://", "clickhouses://").replace(
        f"127.0.0.1:{made.servers[0].port}", f"localhost:{port.port}"
    )
    yield made, url
    made.close()
    port.close()


def test_rows_are_written_and_read_over_an_encrypted_connection(
    encrypted: tuple[ClickHouseTables, str], certificate: tuple[Path, Path]
) -> None:
    made, url = encrypted
    address = parse_address(f"{url}ca={certificate[0]}")
    writer = ClickHouseWriter(address)
    writer.insert(EVENTS, arrow_stream(EVENTS, [{"website_id": "web_1"}]), token="t")
    writer.close()
    reader = ClickHouseReader(address, connections=2, log=get_logger())
    counting = reader.select(
        "SELECT count() FROM events", EncodedParameters({}), LIMITS, made.database
    )
    assert decode_rows(made.run(counting)) == [[1]]
    made.run(reader.close())


def test_no_data_is_sent_to_a_server_with_an_untrusted_certificate(
    encrypted: tuple[ClickHouseTables, str],
) -> None:
    with pytest.raises(StoreUnavailable):
        ClickHouseWriter(parse_address(encrypted[1])).prepare()


def test_no_data_is_sent_to_a_server_without_tls() -> None:
    """Uses a fake server: the test server sometimes aborts when its port receives TLS."""
    received: list[bytes] = []

    def result(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client:
                    received.append(client.recv(65_536))
                    client.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listening = threading.Thread(target=result, args=(listener,))
        listening.start()
        url = f"clickhouses://user:top-secret@127.0.0.1:{listener.getsockname()[1]}/test"
        with pytest.raises(StoreUnavailable):
            ClickHouseWriter(parse_address(url)).prepare()
        listener.shutdown(socket.SHUT_RDWR)
        listening.join()
    assert received
    assert not any(b"top-secret" in one for one in received)
