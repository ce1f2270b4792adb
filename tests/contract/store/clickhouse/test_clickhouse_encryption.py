"""Encrypted connections to ClickHouse, through a TLS listener in front of a real server."""

import contextlib
import socket
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
from testing.servers.encryption import EncryptedPort

pytestmark = pytest.mark.clickhouse


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
