"""Clients that close their half of the connection, and requests in flight behind each other."""

import asyncio

import pytest

from headrace.base.settings import Settings
from headrace.http.server.final_response import BAD_REQUEST
from headrace.model.saved_query import SavedQuery
from headrace.model.tenancy import hash_secret
from headrace.query.saved.service import IsKnown, SavedAnswer
from tests.contract.http.fakes import (
    PRIVATE,
    FakeNowaitAcceptor,
    FakeQueryService,
    FakeSavedQueries,
    Harness,
    empty_result,
    ingestion_error,
)
from tests.contract.http.server.live_server import (
    HEAD,
    QUERY,
    Server,
    SlowAcceptor,
    read_response,
    run,
)

EVENT = HEAD + b"Content-Length: 2\r\n\r\n{}"
CHUNKED_EVENT = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


async def exchange(server: Server, sent: bytes) -> list[int]:
    """Send bytes, close the half, and return the status of each response."""
    reader, writer = await server.connect()
    writer.write(sent)
    writer.write_eof()
    statuses: list[int] = []
    while not reader.at_eof():
        try:
            statuses.append((await read_response(reader))[0])
        except asyncio.IncompleteReadError as end:
            assert end.partial == b""  # noqa: PT017 - the end between two responses
            break
    writer.close()
    return statuses


@pytest.mark.parametrize("is_fast", [True, False], ids=["fast path", "slow path"])
@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        pytest.param(EVENT, [200], id="an event"),
        pytest.param(CHUNKED_EVENT, [200], id="a chunked event"),
        pytest.param(HEALTH, [200], id="another request"),
        pytest.param(EVENT * 2, [200, 200], id="two events"),
        pytest.param(EVENT + HEALTH + EVENT[:-1], [200, 200], id="part of a body"),
        pytest.param(EVENT + HEAD, [200], id="part of a head"),
        pytest.param(EVENT + QUERY + EVENT, [200], id="a query between events"),
        pytest.param(QUERY + EVENT, [], id="a query before an event"),
        pytest.param(EVENT[:-1], [], id="only part of a body"),
        pytest.param(CHUNKED_EVENT[:-1], [], id="only part of a chunked body"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_whole_requests_of_a_half_closed_connection_are_answered(
    sent: bytes, statuses: list[int], is_fast: bool
) -> None:
    harness = Harness()
    harness.direct = FakeNowaitAcceptor() if is_fast else None
    harness.queries = FakeQueryService(FakeQueryService.never)

    async def scenario(server: Server) -> None:
        assert await exchange(server, sent) == statuses

    run(harness, scenario)


@pytest.mark.parametrize("is_fast", [True, False], ids=["fast path", "slow path"])
def test_event_in_progress_is_answered_after_its_client_closed_its_half(is_fast: bool) -> None:
    harness, slow = Harness(), SlowAcceptor()
    direct = FakeNowaitAcceptor(confirms=False)
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol
    harness.direct = direct if is_fast else None

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(EVENT)
        await (direct if is_fast else slow).reached.wait()
        writer.write_eof()
        other, other_writer = await server.connect()
        other_writer.write(HEALTH)  # completes after the server has read the end of the first
        assert (await read_response(other))[0] == 200
        for on_durable in direct.waiting:
            on_durable(None)
        slow.allowed.set()
        status, headers, body = await read_response(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert body == {"status": "success", "type": "custom_event", "count": 1}
        assert await reader.read() == b""
        for each in (writer, other_writer):
            each.close()

    run(harness, scenario)


def test_half_close_cancels_a_query() -> None:
    harness = Harness()
    harness.queries = FakeQueryService(FakeQueryService.never)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(QUERY)
        await harness.queries.began.wait()
        writer.write_eof()
        await harness.queries.was_cancelled.wait()
        assert await reader.read() == b""
        writer.close()

    run(harness, scenario)


class UnansweredQueries(FakeSavedQueries):
    """Answers wait until they are cancelled."""

    def __init__(self) -> None:
        super().__init__(empty_result())
        self.began, self.was_cancelled = asyncio.Event(), asyncio.Event()

    async def answer(self, saved: SavedQuery, media_format: str, is_known: IsKnown) -> SavedAnswer:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled.set()
        return await super().answer(saved, media_format, is_known)


def test_half_close_cancels_the_answer_of_a_saved_query() -> None:
    harness = Harness()
    queries = harness.saved_queries = UnansweredQueries()
    queries.tokens["hq_1"] = SavedQuery(PRIVATE, "daily", b"{}", hash_secret("hq_1"), 0, 0)

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(b"GET /v1/saved/daily.json?token=hq_1 HTTP/1.1\r\nHost: x\r\n\r\n")
        await queries.began.wait()
        writer.write_eof()
        await queries.was_cancelled.wait()
        assert await reader.read() == b""
        writer.close()

    run(harness, scenario)


def test_malformed_http_is_400_behind_the_events_of_a_half_closed_connection() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(EVENT + b"nonsense\r\n\r\n")
        writer.write_eof()
        assert (await read_response(reader))[0] == 200
        assert await reader.read() == BAD_REQUEST
        writer.close()

    run(Harness(), scenario)


def test_body_that_turns_malformed_after_its_response_gets_no_second_one() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n")
        status, _, body = await read_response(reader)
        assert (status, body) == (413, ingestion_error("Payload too large", "PAYLOAD_TOO_LARGE"))
        writer.write(b"zz\r\n")
        assert await reader.read() == b""
        writer.close()

    run(Harness(Settings(max_body_bytes=100)), scenario)


def test_malformed_body_of_a_queued_request_is_400_in_its_turn() -> None:
    harness, slow = Harness(), SlowAcceptor()
    harness.acceptor = slow  # type: ignore[assignment]  # another fake of the same Protocol

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(EVENT + CHUNKED_EVENT.replace(b"2\r\n{}", b"zz\r\n"))
        await slow.reached.wait()
        slow.allowed.set()
        assert (await read_response(reader))[0] == 200
        assert await reader.read() == BAD_REQUEST
        writer.close()

    run(harness, scenario)


@pytest.mark.parametrize(
    ("path", "status"), [("/unknown", 404), ("/track", 413)], ids=["unknown path", "too long"]
)
def test_response_instead_of_100_continue_closes_the_connection(path: str, status: int) -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        head = HEAD.replace(b"/track", path.encode())
        writer.write(head + b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
        got, headers, _ = await read_response(reader)
        assert (got, headers["connection"]) == (status, "close")
        assert await reader.read() == b""
        writer.close()

    run(Harness(Settings(max_body_bytes=100)), scenario)


def test_connection_stays_open_after_100_continue() -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        for _ in range(2):
            writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"{}")
            assert (await read_response(reader))[0] == 200
        writer.close()

    run(Harness(), scenario)
