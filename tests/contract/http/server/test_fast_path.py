"""The fast path: the requests that take it, its responses, and its edge cases."""

import asyncio
from collections.abc import Sequence

import pytest
import uvicorn
import uvicorn.server

from headrace.base.errors import LogUnavailable
from headrace.base.settings import Settings
from headrace.http.server.connection import HeadraceProtocol
from headrace.http.server.final_response import BAD_REQUEST
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.preparation import AcceptResult
from tests.contract.http.fakes import REQUEST_ID, FakeNowaitAcceptor, Harness, ingestion_error
from tests.contract.http.server.live_server import (
    SHORT_TIMEOUTS,
    Server,
    SlowAcceptor,
    read_response,
    run,
)

BODY = b'{"name":"signup"}'
TYPE = b"Content-Type: application/json\r\n"
SECOND_REQUEST = b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" + BODY


def post(
    path: bytes = b"/track", more: bytes = TYPE, body: bytes = BODY, version: bytes = b"1.1"
) -> bytes:
    head = b"POST %b HTTP/%b\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    return head % (path, version, more, len(body)) + body


def chunked(body: bytes) -> bytes:
    head = b"POST /track HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def make_harness(
    direct: FakeNowaitAcceptor | None = None, settings: Settings | None = None
) -> Harness:
    harness = Harness(settings)
    harness.direct = direct or FakeNowaitAcceptor()
    return harness


async def exchange(server: Server, *chunks: bytes) -> bytes:
    """Send chunks one by one and return the bytes of one response."""
    reader, writer = await server.connect()
    for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
        await asyncio.sleep(0.002)
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length))
    writer.close()
    return head + body


def responses(harness: Harness, *requests: Sequence[bytes]) -> list[bytes]:
    """Send each request on its own connection and return the bytes of the responses."""
    got: list[bytes] = []

    async def scenario(server: Server) -> None:
        got.extend([await exchange(server, *chunks) for chunks in requests])

    run(harness, scenario)
    return got


SIMPLE: dict[str, bytes] = {
    "a key": post(more=TYPE + b"Authorization: Bearer hr_1\r\n"),
    "a website": post(b"/track?website_id=web_1"),
    "no content type": post(more=b""),
    "from a page": post(more=b"Origin: https://shop.example\r\nUser-Agent: Mozilla/5.0\r\n"),
    "an empty Origin": post(more=b"Origin: \r\n"),
    "web vitals": post(b"/vitals?client_id=web_1"),
    "errors": post(b"/errors?client_id=web_1"),
    "a batch of page views": post(b"/batch?website_id=web_1"),
    "a page view": post(b"/?website_id=web_1"),
}


@pytest.mark.parametrize("sent", SIMPLE.values(), ids=list(SIMPLE))
def test_simple_request_gets_the_same_response_as_on_the_slow_path(sent: bytes) -> None:
    fast_harness, slow_harness = make_harness(), Harness()
    assert responses(fast_harness, [sent], [sent]) == responses(slow_harness, [sent], [sent])
    assert fast_harness.direct is not None
    fast_requests = fast_harness.direct.requests
    assert fast_harness.acceptor.requests == []
    assert [request.endpoint for request in fast_requests] == [
        request.endpoint for request in slow_harness.acceptor.requests
    ]
    for fast_request, slow_request in zip(
        fast_requests, slow_harness.acceptor.requests, strict=True
    ):
        assert (fast_request.body, fast_request.credentials, fast_request.user_agent) == (
            slow_request.body,
            slow_request.credentials,
            slow_request.user_agent,
        )
        assert fast_request.address == (
            "" if fast_request.credentials.api_key else slow_request.address
        )


NOT_SIMPLE: dict[str, bytes] = {
    "chunked": chunked(BODY),
    "Idempotency-Key": post(more=b"Idempotency-Key: 1\r\n"),
    "Content-Encoding": post(more=b"Content-Encoding: identity\r\n"),
    "Expect": post(more=b"Expect: 100-continue\r\n"),
    "Connection: close": post(more=b"Connection: close\r\n"),
    "HTTP/1.0": post(version=b"1.0"),
    "no body": post(body=b""),
    "percent-encoded path": post(b"/tr%61ck"),
    "another type": post(more=b"Content-Type: text/html\r\n"),
    "body over the limit": post(body=b"[" + b" " * 200 + b"]"),
    "another path": post(b"/health"),
    "other method": post().replace(b"POST", b"PUT", 1),
    "preflight": b"OPTIONS /track HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n",
}


@pytest.mark.parametrize("sent", NOT_SIMPLE.values(), ids=list(NOT_SIMPLE))
def test_complex_request_falls_back_to_the_slow_path(sent: bytes) -> None:
    harness = make_harness(settings=Settings(max_body_bytes=100))

    async def scenario(server: Server) -> None:
        _, writer = await server.connect()
        reader, after = await server.connect()
        writer.write(sent)
        after.write(SECOND_REQUEST)  # completes after the server has read the other
        assert (await read_response(reader))[0] == 200
        for each in (writer, after):
            each.close()

    run(harness, scenario)
    assert harness.direct is not None
    assert [request.body for request in harness.direct.requests] == [BODY]


def test_request_declined_by_the_service_falls_back_once() -> None:
    harness = make_harness(FakeNowaitAcceptor(accepts=False))
    assert len(responses(harness, [post()], [post()])) == 2
    assert harness.direct is not None
    assert (len(harness.direct.requests), len(harness.acceptor.requests)) == (2, 2)


@pytest.mark.parametrize("at", range(1, len(SECOND_REQUEST)))
def test_request_split_at_any_byte_is_answered(at: int) -> None:
    harness = make_harness()
    (unsplit, split) = responses(
        harness, [SECOND_REQUEST], [SECOND_REQUEST[:at], SECOND_REQUEST[at:]]
    )
    assert unsplit == split
    assert harness.direct is not None
    bodies = [request.body for request in (*harness.direct.requests, *harness.acceptor.requests)]
    assert bodies == [BODY, BODY]


def test_pipelined_requests_are_answered_in_order() -> None:
    direct = FakeNowaitAcceptor(confirms=False)
    harness = make_harness(direct)
    harness.acceptor.outcome = AcceptResult(7)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(post() + post() + post())
        await direct.reached.wait()
        await asyncio.sleep(0.01)
        assert harness.acceptor.requests == []
        direct.waiting[0](None)
        counts = [(await read_response(reader))[2] for _ in range(3)]
        assert [count["count"] for count in counts if isinstance(count, dict)] == [1, 7, 7]
        writer.write(post())
        direct.reached.clear()
        await direct.reached.wait()  # the connection may use the fast path again
        direct.waiting[1](None)
        assert (await read_response(reader))[0] == 200
        writer.close()

    run(harness, scenario)


def test_cached_head_is_valid_for_another_body() -> None:
    harness = make_harness()
    bodies = [b'{"name":"%c"}' % letter for letter in b"abcde"]
    responses(harness, *([post(body=body)] for body in bodies))
    assert harness.direct is not None
    assert [request.body for request in harness.direct.requests] == bodies


@pytest.mark.parametrize(
    "crafted",
    [
        pytest.param(
            b"POST /track HTTP/1.1\nHost: x\nContent-Length: 8\n\nab\r\n\r\ncd",
            id="bare line ends",
        ),
        pytest.param(
            b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\n\r\n\r\nabcd",
            id="a bare end of the last line",
        ),
        pytest.param(b"\r\n\r\n" + post(body=b"12345678"), id="empty lines come first"),
    ],
)
def test_cached_head_must_end_where_the_parser_ends_it(crafted: bytes) -> None:
    harness = make_harness()
    known = crafted[: crafted.index(b"\r\n\r\n") + 4]

    async def scenario(server: Server) -> None:
        for sent in (crafted, crafted, known + b"87654321"):
            reader, writer = await server.connect()
            writer.write(sent)
            writer.write_eof()
            await reader.read()
            writer.close()

    run(harness, scenario)
    assert harness.direct is not None
    bodies = [request.body for request in (*harness.direct.requests, *harness.acceptor.requests)]
    assert b"87654321" not in bodies


def test_query_before_a_simple_request_does_not_share_its_head() -> None:
    harness = make_harness()
    query = post(b"/v1/query/custom?website_id=web_public")  # its body is as long as an event

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        is_query_response: list[bool] = []
        for sent, responses in ((query + post(), 2), (query + post(), 2), (query, 1)):
            writer.write(sent)
            for _ in range(responses):
                body = (await read_response(reader))[2]
                is_query_response.append(isinstance(body, dict) and "success" in body)
        assert is_query_response == [True, False, True, False, True]
        writer.close()

    run(harness, scenario)


def test_forwarded_address_is_trusted_from_proxies_for_cached_heads_too() -> None:
    harness = make_harness(settings=Settings(trusted_proxies=("127.0.0.1",)))
    sent = [post(more=b"X-Forwarded-For: 203.0.113.%d\r\n" % number) for number in (7, 7, 7, 8)]
    responses(harness, *([each] for each in sent))
    assert harness.direct is not None
    assert [request.address[-1] for request in harness.direct.requests] == ["7", "7", "7", "8"]


def test_connection_idle_after_a_fast_path_request_is_closed() -> None:
    harness = make_harness()
    connections: set[HeadraceProtocol] = set()

    async def scenario() -> None:
        config = uvicorn.Config(harness.app(), log_config=None, lifespan="off")
        config.load()
        protocol = HeadraceProtocol.configured(max_connections=9, fast_path=harness.app().fast_path)

        def connect() -> HeadraceProtocol:
            connections.add(made := protocol(config, uvicorn.server.ServerState(), {}))
            return made

        listening = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
        port: int = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post())
        assert (await read_response(reader))[0] == 200
        (connection,) = connections
        connection.close_if_timed_out(head_timeout_s=9, idle_timeout_s=9)
        writer.write(post())  # it is still open
        assert (await read_response(reader))[0] == 200
        await asyncio.sleep(0.01)
        connection.close_if_timed_out(head_timeout_s=9, idle_timeout_s=0.005)
        assert await reader.read() == b""
        writer.close()
        listening.close()
        await listening.wait_closed()

    asyncio.run(scenario())


def test_log_failure_is_503_in_the_error_envelope_and_logged() -> None:
    direct = FakeNowaitAcceptor(confirms=False)
    harness = make_harness(direct)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(post(more=b"Origin: https://shop.example\r\n"))
        await direct.reached.wait()
        direct.waiting[0](LogUnavailable("the disk is full"))
        status, headers, body = await read_response(reader)
        assert (status, body) == (503, ingestion_error("Service unavailable", "UNAVAILABLE"))
        assert headers["retry-after"] == "5"
        assert headers["access-control-allow-origin"] == "https://shop.example"
        writer.write(post())
        direct.reached.clear()
        await direct.reached.wait()
        direct.waiting[1](None)
        assert (await read_response(reader))[0] == 200
        writer.close()

    run(harness, scenario)
    assert [line["event"] for line in harness.lines] == ["request_failed", "request"]
    assert harness.lines[1]["status"] == 503


def test_every_fast_path_request_is_counted() -> None:
    harness = make_harness()
    responses(harness, *([post()] for _ in range(5)), [post(b"/vitals")])
    counted = harness.metrics.render().decode().splitlines()
    assert 'headrace_http_requests_total{endpoint="track",status="200"} 5.0' in counted
    assert 'headrace_http_requests_total{endpoint="vitals",status="200"} 1.0' in counted


def test_client_disconnect_leaves_no_state_behind() -> None:
    direct = FakeNowaitAcceptor(confirms=False)
    harness = make_harness(direct)

    async def scenario(server: Server) -> None:
        _, writer = await server.connect()
        writer.write(post())
        await direct.reached.wait()
        writer.transport.abort()
        await asyncio.sleep(0.02)
        direct.waiting[0](None)
        direct.confirms = True
        assert REQUEST_ID.encode() in await exchange(server, post())

    run(harness, scenario)


def test_bodies_over_the_limit_are_rejected_by_the_slow_path() -> None:
    direct = FakeNowaitAcceptor(confirms=False)
    harness = make_harness(direct, Settings(max_inflight_bytes=2 * len(BODY)))
    slow = SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        open_connections = [await server.connect() for _ in range(2)]
        for _, writer in open_connections:
            writer.write(post())
            direct.reached.clear()
            await direct.reached.wait()
        assert (await exchange(server, post())).startswith(b"HTTP/1.1 503 ")
        for fast_requests, (reader, writer) in zip(direct.waiting, open_connections, strict=True):
            fast_requests(None)
            assert (await read_response(reader))[0] == 200
            writer.close()
        direct.confirms = True
        assert (await exchange(server, post())).startswith(b"HTTP/1.1 200 ")

    run(harness, scenario)


def test_pending_requests_are_answered_after_the_stop() -> None:
    direct = FakeNowaitAcceptor(confirms=False)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        idle, idle_writer = await server.connect()
        writer.write(post())
        await direct.reached.wait()
        server.stop.set()
        assert await idle.read() == b""  # shutdown has begun
        direct.waiting[0](None)
        status, headers, _ = await read_response(reader)
        assert (status, headers["connection"]) == (200, "close")
        await server.task
        for each in (writer, idle_writer):
            each.close()

    run(make_harness(direct), scenario)


def test_request_that_outlasts_the_shutdown_timeout_gets_a_response() -> None:
    direct = FakeNowaitAcceptor(confirms=False)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(post())
        await direct.reached.wait()
        server.stop.set()
        status, headers, body = await read_response(reader)
        assert (status, headers["connection"]) == (500, "close")
        assert body == ingestion_error("Internal server error", "INTERNAL")
        await server.task
        direct.waiting[0](None)  # too late: it is ignored
        writer.close()

    run(make_harness(direct, SHORT_TIMEOUTS), scenario)


def test_debug_lines_are_written_for_every_request() -> None:
    harness = make_harness()
    assert harness.app(debug=True).fast_path is None
    assert harness.app().fast_path is not None


def test_request_may_wait_for_the_log_longer_than_the_head_timeout() -> None:
    direct = FakeNowaitAcceptor(confirms=False)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for number, sent in enumerate([post(), post()]):
            writer.write(sent)
            await direct.reached.wait()
            direct.reached.clear()
            await asyncio.sleep(3 * SHORT_TIMEOUTS.body_timeout_s)
            direct.waiting[number](None)
            assert (await read_response(reader))[0] == 200
        writer.close()

    run(make_harness(direct, SHORT_TIMEOUTS), scenario)


def test_fast_path_endpoints_are_the_ingestion_endpoints() -> None:
    harness = make_harness()
    paths = [b"/track", b"/vitals", b"/errors", b"/batch", b"/", b"/engagement", b"/identify"]
    responses(harness, *([post(path)] for path in paths))
    assert harness.direct is not None
    assert [request.endpoint for request in harness.direct.requests] == list(IngestPath)


@pytest.mark.parametrize("known", [False, True], ids=["first", "with a known head"])
def test_invalid_http_is_400_after_the_response_of_the_previous_simple_request(known: bool) -> None:
    direct = FakeNowaitAcceptor(confirms=False)
    harness = make_harness(direct)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for number in range(2 * known):
            direct.reached.clear()
            writer.write(post())
            await direct.reached.wait()
            direct.waiting[number](None)
            assert (await read_response(reader))[0] == 200
        direct.reached.clear()
        writer.write(post() + b"nonsense\r\n\r\n")
        await direct.reached.wait()
        await asyncio.sleep(0.01)
        direct.waiting[-1](None)
        assert (await read_response(reader))[0] == 200
        assert await reader.read() == BAD_REQUEST
        writer.close()

    run(harness, scenario)
