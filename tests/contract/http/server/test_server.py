"""The server on a real socket: stalled bodies, early errors, disconnects and shutdown."""

import asyncio
import itertools
import signal
import socket
import struct
from contextlib import suppress

import pytest

from headrace.base.settings import Settings
from headrace.http.server.final_response import BAD_REQUEST
from headrace.model.plan import OutputKind
from headrace.query.result_values import QueryResult
from tests.contract.http.fakes import FakeQueryService, Harness, ingestion_error, query_error
from tests.contract.http.server.live_server import (
    HEAD,
    QUERY,
    SHORT_TIMEOUTS,
    Connection,
    Server,
    SlowAcceptor,
    read_response,
    run,
)

SMALL_BODIES = Settings(max_body_bytes=100)


def test_keep_alive_connection_serves_requests_in_sequence() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for _ in range(3):
            writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}")
            status, headers, body = await read_response(reader)
            assert (status, body) == (
                200,
                {"status": "success", "type": "custom_event", "count": 1},
            )
            assert set(headers) == {"content-type", "content-length", "x-request-id"}
        writer.close()

    run(Harness(), scenario)


@pytest.mark.parametrize("sent", [b"", b'{"name":'], ids=["nothing", "a chunk"])
def test_body_that_stalls_is_408_and_the_connection_ends(sent: bytes) -> None:
    harness = Harness(SHORT_TIMEOUTS)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 50\r\n\r\n" + sent)
        status, headers, body = await read_response(reader)
        assert (status, body) == (408, ingestion_error("Request timeout", "REQUEST_TIMEOUT"))
        assert headers["connection"] == "close"
        assert await reader.read() == b""
        writer.close()

    run(harness, scenario)
    assert harness.acceptor.requests == []


@pytest.mark.parametrize("sent", [b"POST /tra", HEAD], ids=["request line", "headers"])
def test_head_that_stalls_is_408_and_the_connection_ends(sent: bytes) -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(sent)
        status, headers, body = await read_response(reader)
        assert (status, headers["connection"]) == (408, "close")
        assert isinstance(body, dict)
        assert {**body, "requestId": ""} == {
            "status": "error",
            "message": "Request timeout",
            "code": "REQUEST_TIMEOUT",
            "requestId": "",
        }
        assert await reader.read() == b""
        writer.close()

    run(Harness(SHORT_TIMEOUTS), scenario)


def test_head_without_end_is_413_and_the_connection_ends() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"X-Endless: ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 8_000_000:
                writer.write(b"x" * 10_000)
                await writer.drain()
                sent += 10_000
        assert sent < 8_000_000
        with suppress(ConnectionError):
            assert (await read_response(reader))[0] == 413
        writer.close()

    run(Harness(), scenario)


def test_head_in_many_chunks_is_accepted() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for chunk in (b"POST /tr", b"ack HTTP/1.1\r\nHo", b"st: x\r\nX-Long: ", b"y" * 30_000):
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(b"\r\nContent-Length: 2\r\n\r\n{}")
        assert (await read_response(reader))[0] == 200
        writer.close()

    run(Harness(), scenario)


@pytest.mark.slow
def test_slow_steady_body_is_accepted() -> None:
    harness = Harness(Settings(body_timeout_s=2))

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 10\r\n\r\n")
        for byte in b'{"a":true}':
            await asyncio.sleep(0.25)  # ten of them take longer than the timeout of one
            writer.write(bytes([byte]))
        assert (await read_response(reader))[0] == 200
        writer.close()

    run(harness, scenario)


@pytest.mark.parametrize(
    ("min_bytes_per_s", "statuses"),
    [
        pytest.param(1_000, [408], id="below the minimum"),
        pytest.param(1, [200], id="above the minimum"),
        pytest.param(0, [200], id="no minimum"),
    ],
)
def test_body_below_the_minimum_throughput_is_408(
    min_bytes_per_s: int, statuses: list[int]
) -> None:
    harness = Harness(Settings(slow_body_after_s=0.2, slow_body_bytes_per_s=min_bytes_per_s))

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 10\r\n\r\n")
        response = asyncio.create_task(read_response(reader))
        for byte in b'{"a":true}':
            await asyncio.wait({response}, timeout=0.05)
            if response.done():
                break
            writer.write(bytes([byte]))
        assert [(await response)[0]] == statuses
        writer.close()

    run(harness, scenario)
    assert len(harness.acceptor.requests) == statuses.count(200)


def test_body_that_is_too_long_is_rejected_while_it_is_sent() -> None:
    harness = Harness(SMALL_BODIES)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n")
        status, _, body = await read_response(reader)
        assert (status, body) == (413, ingestion_error("Payload too large", "PAYLOAD_TOO_LARGE"))
        writer.write(b"0\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert (await read_response(reader))[0] == 200
        writer.close()

    run(harness, scenario)


def test_error_comes_before_a_body_that_expects_100_continue() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
        assert (await read_response(reader))[0] == 413
        writer.close()

    run(Harness(SMALL_BODIES), scenario)


def test_closing_the_connection_cancels_its_query() -> None:
    harness = Harness()
    harness.queries = FakeQueryService(FakeQueryService.never)

    async def scenario(server: Server) -> None:
        _, writer = await server.connect()
        writer.write(QUERY)
        await harness.queries.began.wait()
        writer.close()
        await harness.queries.was_cancelled.wait()

    run(harness, scenario)


PIPELINED: dict[str, bytes] = {
    "a request": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a hundred requests": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 100,
    "another query": QUERY,
    "a simple request": HEAD + b"Content-Length: 2\r\n\r\n{}",
    "part of a body": HEAD + b"Content-Length: 50000\r\n\r\n" + b"x" * 40_000,
    "part of a head": HEAD,
    "no HTTP": b"nonsense\r\n\r\n",
}


@pytest.mark.parametrize("in_one_write", [True, False], ids=["in one chunk", "in two chunks"])
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize("pipelined", PIPELINED.values(), ids=list(PIPELINED))
def test_closing_the_connection_cancels_its_query_even_with_pipelined_requests(
    pipelined: bytes, is_reset: bool, in_one_write: bool
) -> None:
    harness = Harness()
    harness.queries = FakeQueryService(FakeQueryService.never)

    async def scenario(server: Server) -> None:
        _, writer = await server.connect()
        writer.write(QUERY + pipelined if in_one_write else QUERY)
        await harness.queries.began.wait()
        if not in_one_write:
            writer.write(pipelined)
            await asyncio.sleep(0.05)
        if is_reset:
            writer.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        writer.close()
        await harness.queries.was_cancelled.wait()

    run(harness, scenario)
    assert len(harness.queries.requests) == 1
    assert harness.acceptor.requests == []


def test_thousands_of_pipelined_requests_are_answered_in_order() -> None:
    count = 5_000

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write((HEAD + b"Content-Length: 2\r\n\r\n{}") * count)
        for _ in range(count):
            assert (await read_response(reader))[0] == 200
        writer.close()

    run(Harness(), scenario)


def test_accepted_requests_are_answered_after_the_stop_and_new_ones_are_not() -> None:
    harness = Harness()
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        idle, idle_writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}")
        await slow.reached.wait()
        server.stop.set()
        assert await idle.read() == b""  # shutdown has begun
        with pytest.raises(ConnectionError):
            await server.connect()
        slow.allowed.set()
        status, headers, _ = await read_response(reader)
        assert (status, headers["connection"]) == (200, "close")
        await server.task
        for each in (writer, idle_writer):
            each.close()

    run(harness, scenario)


def test_request_that_outlasts_the_shutdown_timeout_gets_the_error_envelope() -> None:
    harness = Harness(SHORT_TIMEOUTS)
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}")
        await slow.reached.wait()
        server.stop.set()
        status, _, body = await read_response(reader)
        assert (status, body) == (500, ingestion_error("Internal server error", "INTERNAL"))
        await server.task
        writer.close()

    run(harness, scenario)


def test_query_that_outlasts_the_shutdown_timeout_is_503_with_retry_after() -> None:
    harness = Harness(SHORT_TIMEOUTS)
    harness.queries = FakeQueryService(FakeQueryService.never)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(QUERY)
        await harness.queries.began.wait()
        server.stop.set()
        status, headers, body = await read_response(reader)
        assert (status, headers.get("retry-after")) == (503, "5")
        assert body == query_error("Service unavailable", "UNAVAILABLE")
        await server.task
        writer.close()

    run(harness, scenario)


CONNECTION_LIMITED = Settings(max_connections=3)


def test_new_connection_evicts_an_idle_one() -> None:
    async def scenario(server: Server) -> None:
        idle = [await server.connect() for _ in range(3)]
        for _ in range(5):
            reader, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
            status, _, _ = await read_response(reader)
            assert status == 200
            assert await reader.read() == b""  # it closes by itself and frees its slot
            writer.close()
        kept = [each for each in idle if not await is_closed(each)]
        assert len(kept) == 2
        for _, writer in idle:
            writer.close()

    run(Harness(CONNECTION_LIMITED), scenario)


async def is_closed(connection: Connection) -> bool:
    """Return whether the server has closed a connection that sent no request."""
    try:
        async with asyncio.timeout(0.2):
            return await connection[0].read() == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_active_connections_are_never_evicted() -> None:
    harness = Harness(CONNECTION_LIMITED)
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        busy = [await server.connect() for _ in range(3)]
        for _, writer in busy:
            writer.write(HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
        while slow.in_progress < len(busy):  # noqa: ASYNC110 - it sends no event for each
            await asyncio.sleep(0.01)
        late = await server.connect()
        with suppress(ConnectionError):
            assert await late[0].read() == b""
        slow.allowed.set()
        for reader, writer in busy:
            status, _, _ = await read_response(reader)
            assert status == 200
            writer.close()
        late[1].close()

    run(harness, scenario)


@pytest.mark.parametrize(
    ("reads_on", "timeout_s", "gets_all"),
    [
        pytest.param(False, 0.2, False, id="stops reading"),
        # A busy machine may pause this client for longer than the other one's timeout.
        pytest.param(True, 10, True, id="reads on"),
    ],
)
def test_client_that_reads_no_responses_is_disconnected(
    reads_on: bool, timeout_s: float, gets_all: bool
) -> None:
    async def scenario(server: Server) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", server.port))
            sent_requests = 100
            await loop.sock_sendall(
                client,
                b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * (sent_requests - 1)
                + b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            )
            received = bytearray()
            if not reads_on:
                for _ in range(20):  # the server's steps and its timer run between these pauses,
                    await asyncio.sleep(0.05)  # also where a busy machine delays both
            with suppress(ConnectionError):
                while chunk := await loop.sock_recv(client, 1_048_576):
                    received += chunk
            assert (received.count(b"HTTP/1.1 200") == sent_requests) is gets_all

    run(Harness(Settings(body_timeout_s=timeout_s)), scenario)


LARGE = 20_000_000


async def read_slowly(port: int, pause_s: float, until: asyncio.Event) -> int:
    """Send a query, read its response slowly until `until` is set, and return the bytes read."""
    loop = asyncio.get_running_loop()
    received = 0
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, QUERY)
        with suppress(ConnectionError):
            while received < LARGE and (chunk := await loop.sock_recv(client, 65_536)):
                received += len(chunk)
                if not until.is_set():
                    await asyncio.sleep(pause_s)
    return received


@pytest.mark.slow
def test_slowest_readers_are_dropped_over_the_unsent_limit() -> None:
    harness = Harness(Settings(body_timeout_s=2, max_inflight_bytes=2 * LARGE))
    result = QueryResult(("x",), (OutputKind.TEXT,), [["x" * LARGE]], 1, False, 0.0)
    harness.queries = FakeQueryService(result)

    async def scenario(server: Server) -> None:
        until = asyncio.Event()
        slow = [asyncio.create_task(read_slowly(server.port, 0.02, until)) for _ in range(4)]
        await asyncio.sleep(0.2)
        assert await read_slowly(server.port, 0, until) >= LARGE
        for ended in itertools.islice(asyncio.as_completed(slow), 2):
            await ended
        until.set()
        assert [await each >= LARGE for each in slow].count(True) == 2

    run(harness, scenario)


def test_signals_are_left_to_the_process() -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def scenario(server: Server) -> None:
        _, writer = await server.connect()
        assert signal.getsignal(signal.SIGTERM) == before
        writer.close()

    run(Harness(), scenario)


def test_invalid_request_head_is_400() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(b"nonsense\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()

    run(Harness(), scenario)


BROKEN: dict[str, bytes] = {
    "no HTTP": b"nonsense\r\n\r\n",
    "a bad header": HEAD + b"no colon\r\n\r\n",
    "a bad address": b"POST http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    "letters that are not ASCII": b"POST /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_invalid_http_is_400_after_the_response_of_the_previous_request(broken: bytes) -> None:
    harness = Harness()
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}" + broken)
        await slow.reached.wait()
        slow.allowed.set()
        assert (await read_response(reader))[0] == 200
        assert await reader.read() == BAD_REQUEST
        writer.close()

    run(harness, scenario)


def test_invalid_chunked_body_is_400_and_not_accepted() -> None:
    harness = Harness()

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(BROKEN["a bad chunk"])
        assert await reader.read() == BAD_REQUEST
        writer.close()

    run(harness, scenario)
    assert harness.acceptor.requests == []


def test_stalled_head_is_408_after_the_response_of_the_previous_request() -> None:
    harness = Harness(SHORT_TIMEOUTS)
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n{}" + HEAD)
        await asyncio.sleep(0.3)  # the second head has timed out by now
        slow.allowed.set()
        assert (await read_response(reader))[0] == 200
        status, headers, _ = await read_response(reader)
        assert (status, headers["connection"]) == (408, "close")
        assert await reader.read() == b""
        writer.close()

    run(harness, scenario)


UPGRADES: dict[str, bytes] = {
    "as Java's client does": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n",
    "a WebSocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
    "and nothing more": b"Upgrade: TLS/1.2\r\nConnection: upgrade\r\n",
}


@pytest.mark.parametrize("upgrade", UPGRADES.values(), ids=list(UPGRADES))
@pytest.mark.parametrize("cut", [0, 40, -25, -1], ids=["whole", "in the head", "after it", "last"])
def test_upgrade_request_is_answered_without_upgrading(upgrade: bytes, cut: int) -> None:
    harness = Harness()
    sent = HEAD + upgrade + b'Content-Length: 17\r\n\r\n{"name":"signup"}'

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for chunk in (sent[:cut], sent[cut:], sent, HEAD + b"Content-Length: 2\r\n\r\n{}"):
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(0.01)
        for _ in range(3):
            status, headers, _ = await read_response(reader)
            assert (status, headers.get("connection")) == (200, None)
        writer.close()

    run(harness, scenario)
    assert [request.body for request in harness.acceptor.requests] == [
        b'{"name":"signup"}',
        b'{"name":"signup"}',
        b"{}",
    ]


def test_upgrade_request_may_close_its_connection() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(
            HEAD + b"Connection: close, Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"
        )
        assert (await read_response(reader))[0] == 200
        assert await reader.read() == b""
        writer.close()

    run(Harness(), scenario)


def test_thousands_of_upgrade_requests_may_be_pipelined() -> None:
    harness = Harness()

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        upgrading = HEAD + UPGRADES["a WebSocket"] + b"Content-Length: 2\r\n\r\n{}"
        writer.write(upgrading * 2_000)
        for _ in range(2_000):
            assert (await read_response(reader))[0] == 200
        writer.close()

    run(harness, scenario)
    assert len(harness.acceptor.requests) == 2_000


def test_connect_method_is_rejected() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n")
        assert (await reader.read()).partition(b" ")[2][:1] == b"4"
        writer.close()

    run(Harness(), scenario)
