"""Encrypted connections to the shared server, through a TLS listener in front of a real one."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.adapters.valkey.client import AsyncValkeyClient, ValkeyClient
from headrace.base.errors import SharedStateUnavailable
from testing.servers.encryption import EncryptedPort
from testing.servers.shared_state import ValkeyServer


@pytest.fixture
def port(valkey_server: ValkeyServer, certificate: tuple[Path, Path]) -> Iterator[int]:
    encrypted = EncryptedPort(valkey_server.port, *certificate)
    yield encrypted.port
    encrypted.close()


def ping(url: str) -> tuple[str, bool]:
    """Return what a thread's client gets, and whether an event loop's client gets a reply."""

    async def is_ready() -> bool:
        server = AsyncValkeyClient(url, timeout_s=60)
        try:
            return await server.is_ready()
        finally:
            await server.close()

    with contextlib.closing(ValkeyClient(url)) as server:
        try:
            reply = str(server.execute("PING"))
        except SharedStateUnavailable as error:
            reply = str(error)
    return reply, asyncio.run(is_ready())


def test_a_certificate_counts_for_its_host_alone(port: int, certificate: tuple[Path, Path]) -> None:
    options = f"ssl_ca_certs={certificate[0]}"
    assert ping(f"rediss://localhost:{port}?{options}") == ("True", True)
    reply, is_ready = ping(f"rediss://127.0.0.1:{port}?{options}")
    assert "certificate is not valid for '127.0.0.1'" in reply
    assert not is_ready


def test_an_unknown_certificate_is_refused(port: int) -> None:
    reply, is_ready = ping(f"valkeys://localhost:{port}")
    assert "certificate verify failed" in reply
    assert not is_ready


@pytest.mark.parametrize("option", ["ssl_check_hostname=0", "ssl_cert_reqs=none"])
def test_the_url_may_waive_the_check(
    option: str, port: int, certificate: tuple[Path, Path]
) -> None:
    url = f"valkeys://127.0.0.1:{port}/1?{option}&ssl_ca_certs={certificate[0]}"
    assert ping(url) == ("True", True)
