"""A response that comes before the whole body reaches a client that goes on sending."""

import asyncio
import socket

import pytest

from headrace.base.settings import Settings
from headrace.http.server.lingering_close import LINGER_S, MAX_LINGER_BYTES, LingeringTransport
from tests.contract.http.fakes import Harness
from tests.contract.http.server.live_server import HEAD, Server, run

CHUNK = b"x" * 65_536
CHUNKS = 8
MALFORMED = b"nonsense\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(
            HEAD + b"Connection: close\r\nContent-Length: 50000000\r\n\r\n",
            413,
            id="asked to close",
        ),
        pytest.param(HEAD + b"X: " + b"y" * 100_000, 413, id="head over the limit"),
        pytest.param(MALFORMED, 400, id="malformed"),
    ],
)
def test_client_that_reads_after_sending_more_gets_the_whole_response(
    head: bytes, status: int
) -> None:
    async def scenario(server: Server) -> None:
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setblocking(False)
            await loop.sock_sendall(client, head)
            peeked = await peek(client)  # the response is there, and is left unread
            assert peeked
            for _ in range(CHUNKS):
                await loop.sock_sendall(client, CHUNK)
            response = await read_all(client)
            assert response.startswith(b"HTTP/1.1 %d " % status)
            assert b"connection: close\r\n" in response

    run(Harness(Settings(max_body_bytes=100)), scenario)


async def send_without_end(client: socket.socket) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, CHUNK)


async def peek(client: socket.socket) -> bytes:
    """Wait for the first bytes, and leave them in the buffer of the socket."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(client, readable.set)
    await readable.wait()
    loop.remove_reader(client)
    return client.recv(1, socket.MSG_PEEK)


async def read_all(client: socket.socket) -> bytes:
    loop, received = asyncio.get_running_loop(), b""
    while data := await loop.sock_recv(client, 65_536):
        received += data
    return received


def test_client_that_sends_without_end_is_cut_off() -> None:
    async def scenario(server: Server) -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(client, MALFORMED)
            await peek(client)
            with pytest.raises(ConnectionError):
                await send_without_end(client)

    run(Harness(), scenario)


class FakeTransport(asyncio.Transport):
    """Records what was done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def is_closing(self) -> bool:
        return "close" in self.calls

    def write_eof(self) -> None:
        self.calls.append("write_eof")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(
    ("size", "calls"),
    [(MAX_LINGER_BYTES, ["write_eof"]), (MAX_LINGER_BYTES + 1, ["write_eof", "close"])],
)
async def test_bytes_over_the_limit_end_a_lingering_close(size: int, calls: list[str]) -> None:
    transport = FakeTransport()
    closing = LingeringTransport(transport, asyncio.get_running_loop(), lambda: True)
    closing.close()
    closing.drop(size)
    assert transport.calls == calls
    closing.close_now()


async def test_transport_closes_at_once_where_nothing_is_expected() -> None:
    transport = FakeTransport()
    LingeringTransport(transport, asyncio.get_running_loop(), lambda: False).close()
    assert transport.calls == ["close"]


def test_shutdown_does_not_wait_for_a_client_that_still_sends() -> None:
    async def scenario(server: Server) -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(client, MALFORMED)
            await read_all(client)
            server.stop.set()
            async with asyncio.timeout(LINGER_S * 0.8):  # it would be `LINGER_S` or longer
                await server.task

    run(Harness(), scenario)
