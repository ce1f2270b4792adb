"""The short way of plain calls: what goes it, what is answered there, and its odd moments."""

import asyncio
from collections.abc import Sequence

import pytest
import uvicorn
import uvicorn.server

from headrace.base.errors import LogUnavailable
from headrace.base.settings import Settings
from headrace.http.server.fast_path_protocol import DirectConnection
from headrace.ingest.receive.decode import Endpoint
from headrace.ingest.receive.service import Accepted
from tests.contract.http_twins import REQUEST_ID, TwinDirect, World, ingestion_error
from tests.contract.test_http_server import HURRIED, SlowAcceptor, read_reply, run
from tests.contract.test_http_server import Server as Running

BODY = b'{"name":"signup"}'
TYPE = b"Content-Type: application/json\r\n"
ONE_MORE = b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" + BODY


def call(
    path: bytes = b"/track", more: bytes = TYPE, body: bytes = BODY, version: bytes = b"1.1"
) -> bytes:
    head = b"POST %b HTTP/%b\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    return head % (path, version, more, len(body)) + body


def chunked(body: bytes) -> bytes:
    head = b"POST /track HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def make_world(direct: TwinDirect | None = None, settings: Settings | None = None) -> World:
    world = World(settings)
    world.direct = direct or TwinDirect()
    return world


async def exchange(server: Running, *pieces: bytes) -> bytes:
    """Send pieces one after the other and return the bytes of one reply."""
    reader, writer = await server.connect()
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.002)
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length))
    writer.close()
    return head + body


def replies(world: World, *calls: Sequence[bytes]) -> list[bytes]:
    """Make calls on connections of their own, and return the bytes of their replies."""
    got: list[bytes] = []

    async def scenario(server: Running) -> None:
        got.extend([await exchange(server, *pieces) for pieces in calls])

    run(world, scenario)
    return got


PLAIN: dict[str, bytes] = {
    "a key": call(more=TYPE + b"Authorization: Bearer hr_1\r\n"),
    "a website": call(b"/track?website_id=web_1"),
    "no content type": call(more=b""),
    "a page's call": call(more=b"Origin: https://shop.example\r\nUser-Agent: Mozilla/5.0\r\n"),
    "web vitals": call(b"/vitals?client_id=web_1"),
    "errors": call(b"/errors?client_id=web_1"),
    "a batch of page views": call(b"/batch?website_id=web_1"),
    "a page view": call(b"/?website_id=web_1"),
}


@pytest.mark.parametrize("sent", PLAIN.values(), ids=list(PLAIN))
def test_plain_call_is_asked_and_answered_as_on_the_long_way(sent: bytes) -> None:
    short, long = make_world(), World()
    assert replies(short, [sent], [sent]) == replies(long, [sent], [sent])
    assert short.direct is not None
    told = short.direct.requests
    assert short.acceptor.requests == []
    assert [request.endpoint for request in told] == [
        request.endpoint for request in long.acceptor.requests
    ]
    for ours, theirs in zip(told, long.acceptor.requests, strict=True):
        assert (ours.body, ours.credentials, ours.user_agent) == (
            theirs.body,
            theirs.credentials,
            theirs.user_agent,
        )
        assert ours.address == ("" if ours.credentials.api_key else theirs.address)


NOT_PLAIN: dict[str, bytes] = {
    "chunked": chunked(BODY),
    "Idempotency-Key": call(more=b"Idempotency-Key: 1\r\n"),
    "Content-Encoding": call(more=b"Content-Encoding: identity\r\n"),
    "Expect": call(more=b"Expect: 100-continue\r\n"),
    "Connection: close": call(more=b"Connection: close\r\n"),
    "HTTP/1.0": call(version=b"1.0"),
    "no body": call(body=b""),
    "percent-encoded path": call(b"/tr%61ck"),
    "another type": call(more=b"Content-Type: text/html\r\n"),
    "body over the limit": call(body=b"[" + b" " * 200 + b"]"),
    "another path": call(b"/health"),
    "other method": call().replace(b"POST", b"PUT", 1),
    "preflight": b"OPTIONS /track HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n",
}


@pytest.mark.parametrize("sent", NOT_PLAIN.values(), ids=list(NOT_PLAIN))
def test_call_that_is_not_plain_goes_the_long_way(sent: bytes) -> None:
    world = make_world(settings=Settings(max_body_bytes=100))

    async def scenario(server: Running) -> None:
        _, writer = await server.connect()
        reader, after = await server.connect()
        writer.write(sent)
        after.write(ONE_MORE)  # answered after the other was taken
        assert (await read_reply(reader))[0] == 200
        for each in (writer, after):
            each.close()

    run(world, scenario)
    assert world.direct is not None
    assert [request.body for request in world.direct.requests] == [BODY]


def test_call_that_the_use_case_does_not_take_goes_the_long_way_once() -> None:
    world = make_world(TwinDirect(takes=False))
    assert len(replies(world, [call()], [call()])) == 2
    assert world.direct is not None
    assert (len(world.direct.requests), len(world.acceptor.requests)) == (2, 2)


@pytest.mark.parametrize("at", range(1, len(ONE_MORE)))
def test_call_in_two_pieces_is_answered_wherever_it_is_cut(at: int) -> None:
    world = make_world()
    (whole, cut) = replies(world, [ONE_MORE], [ONE_MORE[:at], ONE_MORE[at:]])
    assert whole == cut
    assert world.direct is not None
    bodies = [request.body for request in (*world.direct.requests, *world.acceptor.requests)]
    assert bodies == [BODY, BODY]


def test_calls_that_come_together_are_answered_in_order() -> None:
    direct = TwinDirect(tells=False)
    world = make_world(direct)
    world.acceptor.outcome = Accepted(7)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        writer.write(call() + call() + call())
        await direct.reached.wait()
        await asyncio.sleep(0.01)
        assert world.acceptor.requests == []
        direct.waiting[0](None)
        counts = [(await read_reply(reader))[2] for _ in range(3)]
        assert [count["count"] for count in counts if isinstance(count, dict)] == [1, 7, 7]
        writer.write(call())
        direct.reached.clear()
        await direct.reached.wait()  # the connection is free for the short way again
        direct.waiting[1](None)
        assert (await read_reply(reader))[0] == 200
        writer.close()

    run(world, scenario)


def test_known_head_means_the_same_with_another_body() -> None:
    world = make_world()
    bodies = [b'{"name":"%c"}' % letter for letter in b"abcde"]
    replies(world, *([call(body=body)] for body in bodies))
    assert world.direct is not None
    assert [request.body for request in world.direct.requests] == bodies


@pytest.mark.parametrize(
    "crafted",
    [
        pytest.param(
            b"POST /track HTTP/1.1\nHost: x\nContent-Length: 8\n\nab\r\n\r\ncd",
            id="lines end bare",
        ),
        pytest.param(
            b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\n\r\n\r\nabcd",
            id="the last line ends bare",
        ),
        pytest.param(b"\r\n\r\n" + call(body=b"12345678"), id="empty lines come first"),
    ],
)
def test_head_is_known_only_where_it_ends_for_the_parser(crafted: bytes) -> None:
    world = make_world()
    known = crafted[: crafted.index(b"\r\n\r\n") + 4]

    async def scenario(server: Running) -> None:
        for sent in (crafted, crafted, known + b"87654321"):
            reader, writer = await server.connect()
            writer.write(sent)
            writer.write_eof()
            await reader.read()
            writer.close()

    run(world, scenario)
    assert world.direct is not None
    bodies = [request.body for request in (*world.direct.requests, *world.acceptor.requests)]
    assert b"87654321" not in bodies


def test_query_before_a_plain_call_does_not_lend_it_its_head() -> None:
    world = make_world()
    query = call(b"/v1/query/custom?website_id=web_public")  # its body is as long as an event

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        is_answer_to_a_query: list[bool] = []
        for sent, replies in ((query + call(), 2), (query + call(), 2), (query, 1)):
            writer.write(sent)
            for _ in range(replies):
                body = (await read_reply(reader))[2]
                is_answer_to_a_query.append(isinstance(body, dict) and "success" in body)
        assert is_answer_to_a_query == [True, False, True, False, True]
        writer.close()

    run(world, scenario)


def test_address_is_believed_from_trusted_proxies_for_known_heads_too() -> None:
    world = make_world(settings=Settings(trusted_proxies=("127.0.0.1",)))
    sent = [call(more=b"X-Forwarded-For: 203.0.113.%d\r\n" % number) for number in (7, 7, 7, 8)]
    replies(world, *([each] for each in sent))
    assert world.direct is not None
    assert [request.address[-1] for request in world.direct.requests] == ["7", "7", "7", "8"]


def test_connection_that_is_idle_after_a_call_of_the_short_way_is_closed() -> None:
    world = make_world()
    connections: set[DirectConnection] = set()

    async def scenario() -> None:
        config = uvicorn.Config(world.app(), log_config=None, lifespan="off")
        config.load()
        protocol = DirectConnection.with_(max_connections=9, lane=world.app().lane)

        def connect() -> DirectConnection:
            connections.add(made := protocol(config, uvicorn.server.ServerState(), {}))
            return made

        listening = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
        port: int = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(call())
        assert (await read_reply(reader))[0] == 200
        (connection,) = connections
        connection.end_if_late(head_timeout_s=9, idle_timeout_s=9)
        writer.write(call())  # it is still open
        assert (await read_reply(reader))[0] == 200
        await asyncio.sleep(0.01)
        connection.end_if_late(head_timeout_s=9, idle_timeout_s=0.005)
        assert await reader.read() == b""
        writer.close()
        listening.close()
        await listening.wait_closed()

    asyncio.run(scenario())


def test_failure_of_the_log_is_503_in_our_envelope_and_has_a_line() -> None:
    direct = TwinDirect(tells=False)
    world = make_world(direct)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        writer.write(call(more=b"Origin: https://shop.example\r\n"))
        await direct.reached.wait()
        direct.waiting[0](LogUnavailable("the disk is full"))
        status, headers, body = await read_reply(reader)
        assert (status, body) == (503, ingestion_error("Service unavailable", "UNAVAILABLE"))
        assert headers["retry-after"] == "5"
        assert headers["access-control-allow-origin"] == "https://shop.example"
        writer.write(call())
        direct.reached.clear()
        await direct.reached.wait()
        direct.waiting[1](None)
        assert (await read_reply(reader))[0] == 200
        writer.close()

    run(world, scenario)
    assert [line["event"] for line in world.lines] == ["request_failed", "request"]
    assert world.lines[1]["status"] == 503


def test_every_call_of_the_short_way_is_counted() -> None:
    world = make_world()
    replies(world, *([call()] for _ in range(5)), [call(b"/vitals")])
    counted = world.metrics.render().decode().splitlines()
    assert 'headrace_http_requests_total{endpoint="track",status="200"} 5.0' in counted
    assert 'headrace_http_requests_total{endpoint="vitals",status="200"} 1.0' in counted


def test_caller_that_leaves_takes_nothing_with_it() -> None:
    direct = TwinDirect(tells=False)
    world = make_world(direct)

    async def scenario(server: Running) -> None:
        _, writer = await server.connect()
        writer.write(call())
        await direct.reached.wait()
        writer.transport.abort()
        await asyncio.sleep(0.02)
        direct.waiting[0](None)
        direct.tells = True
        assert REQUEST_ID.encode() in await exchange(server, call())

    run(world, scenario)


def test_bodies_beyond_the_bound_go_the_long_way_which_refuses_them() -> None:
    direct = TwinDirect(tells=False)
    world = make_world(direct, Settings(max_inflight_bytes=2 * len(BODY)))
    slow = SlowAcceptor()
    world.acceptor = slow  # type: ignore[assignment]  # another twin of the same Protocol

    async def scenario(server: Running) -> None:
        held = [await server.connect() for _ in range(2)]
        for _, writer in held:
            writer.write(call())
            direct.reached.clear()
            await direct.reached.wait()
        assert (await exchange(server, call())).startswith(b"HTTP/1.1 503 ")
        for told, (reader, writer) in zip(direct.waiting, held, strict=True):
            told(None)
            assert (await read_reply(reader))[0] == 200
            writer.close()
        direct.tells = True
        assert (await exchange(server, call())).startswith(b"HTTP/1.1 200 ")

    run(world, scenario)


def test_what_was_taken_is_answered_after_the_stop() -> None:
    direct = TwinDirect(tells=False)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        idle, idle_writer = await server.connect()
        writer.write(call())
        await direct.reached.wait()
        server.stop.set()
        assert await idle.read() == b""  # the server has begun to stop
        direct.waiting[0](None)
        status, headers, _ = await read_reply(reader)
        assert (status, headers["connection"]) == (200, "close")
        await server.task
        for each in (writer, idle_writer):
            each.close()

    run(make_world(direct), scenario)


def test_call_that_outlasts_the_time_to_stop_is_told() -> None:
    direct = TwinDirect(tells=False)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        writer.write(call())
        await direct.reached.wait()
        server.stop.set()
        status, headers, body = await read_reply(reader)
        assert (status, headers["connection"]) == (500, "close")
        assert body == ingestion_error("Internal server error", "INTERNAL")
        await server.task
        direct.waiting[0](None)  # too late: it counts for nothing
        writer.close()

    run(make_world(direct, HURRIED), scenario)


def test_debug_lines_are_written_for_every_call() -> None:
    world = make_world()
    assert world.app(debug=True).lane is None
    assert world.app().lane is not None


def test_call_may_wait_for_the_log_for_longer_than_a_head_may_take() -> None:
    direct = TwinDirect(tells=False)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        for number, sent in enumerate([call(), call()]):
            writer.write(sent)
            await direct.reached.wait()
            direct.reached.clear()
            await asyncio.sleep(3 * HURRIED.body_timeout_s)
            direct.waiting[number](None)
            assert (await read_reply(reader))[0] == 200
        writer.close()

    run(make_world(direct, HURRIED), scenario)


def test_endpoints_of_the_short_way_are_those_of_ingestion() -> None:
    world = make_world()
    paths = [b"/track", b"/vitals", b"/errors", b"/batch", b"/"]
    replies(world, *([call(path)] for path in paths))
    assert world.direct is not None
    assert [request.endpoint for request in world.direct.requests] == list(Endpoint)


@pytest.mark.parametrize("known", [False, True], ids=["first", "with a known head"])
def test_what_is_no_http_is_never_the_reply_to_a_plain_call_before_it(known: bool) -> None:
    direct = TwinDirect(tells=False)
    world = make_world(direct)

    async def scenario(server: Running) -> None:
        reader, writer = await server.connect()
        for number in range(2 * known):
            direct.reached.clear()
            writer.write(call())
            await direct.reached.wait()
            direct.waiting[number](None)
            assert (await read_reply(reader))[0] == 200
        direct.reached.clear()
        writer.write(call() + b"nonsense\r\n\r\n")
        await direct.reached.wait()
        await asyncio.sleep(0.01)
        direct.waiting[-1](None)
        status, headers, _ = await read_reply(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert await reader.read() == b""
        writer.close()

    run(world, scenario)
