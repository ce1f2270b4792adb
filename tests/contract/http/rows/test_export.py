"""The export endpoint over a fake use case: what is sent when an export fails, and when."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.audit import AuditAction, AuditedChange
from headrace.model.export import ExportFormat, ExportRequest
from headrace.query.export.service import ExportedPiece
from tests.contract.http.fakes import MANAGER_KEY, PRIVATE, Harness, exchange, make_scope
from tests.contract.http.server.live_server import SHORT_TIMEOUTS, Server, run

QUERY = f"website_id={PRIVATE}&table=events&format=csv"


def scope_of(harness: Harness) -> dict[str, Any]:
    del harness
    headers = [("authorization", f"Bearer {MANAGER_KEY}")]
    return make_scope("GET", "/v1/export", QUERY, headers, None)


async def messages(harness: Harness, *, disconnect: asyncio.Event | None = None) -> list[Message]:
    """Return what the application sends; `disconnect` is when the client leaves."""
    waiting: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await (disconnect or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await harness.app()(scope_of(harness), receive, send)
    return sent


def bodies(sent: list[Message]) -> list[tuple[bytes, bool]]:
    return [(one["body"], one.get("more_body", False)) for one in sent[1:]]


def test_pieces_are_sent_as_they_are_made_and_the_last_message_ends_the_body() -> None:
    harness = Harness()
    sent = asyncio.run(messages(harness))
    assert sent[0]["status"] == 200
    assert bodies(sent) == [(b"one\n", True), (b"two\n", True), (b"", False)]
    assert harness.exporter.requests == [
        ExportRequest(website_id=PRIVATE, table="events", format=ExportFormat.CSV)
    ]
    assert harness.exporter.running == 0


def test_large_pieces_are_sent_in_parts_that_wait_for_slow_readers() -> None:
    harness = Harness()
    harness.exporter.bytes = [b"x" * 600_000]
    sizes = [len(body) for body, _ in bodies(asyncio.run(messages(harness)))]
    assert sizes == [262_144, 262_144, 75_712, 0]


@pytest.mark.parametrize(
    "error", [StoreUnavailable("away"), RuntimeError("a bug")], ids=["unavailable", "bug"]
)
def test_export_that_fails_midway_has_no_last_message(error: Exception) -> None:
    harness = Harness()
    harness.exporter.bytes = [b"one\n", error]
    sent = asyncio.run(messages(harness))
    assert bodies(sent) == [(b"one\n", True)]
    assert harness.exporter.running == 0
    assert [line["event"] for line in harness.lines] == ["request_failed", "request"]


def test_export_that_cannot_begin_is_503_with_retry_after() -> None:
    harness = Harness()
    harness.exporter.outcome = StoreUnavailable("2 exports of the website are running already")
    response = asyncio.run(exchange(harness.app(), scope_of(harness), b""))
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert response.json["error"] == "Service unavailable"


def test_an_export_is_in_the_audit_log_before_its_first_byte() -> None:
    harness = Harness()
    asyncio.run(messages(harness))
    export = {"table": "events", "format": "csv", "from": None, "to": None}
    assert harness.recorded == [
        (
            f"key_{MANAGER_KEY}",
            AuditedChange(
                action=AuditAction.ROWS_EXPORT,
                object_id=PRIVATE,
                after=export,
                website_ids=(PRIVATE,),
            ),
        )
    ]


def test_an_export_that_cannot_begin_is_not_in_the_audit_log() -> None:
    harness = Harness()
    harness.exporter.outcome = StoreUnavailable("2 exports of the website are running already")
    asyncio.run(exchange(harness.app(), scope_of(harness), b""))
    assert harness.recorded == []


def test_an_export_without_an_audit_log_is_503_and_ends() -> None:
    harness = Harness()
    harness.audit_failure = OperatorError("the disk is gone")
    response = asyncio.run(exchange(harness.app(), scope_of(harness), b""))
    assert (response.status, response.json["error"]) == (503, "Service unavailable")
    assert harness.exporter.running == 0


def test_disconnect_ends_the_export() -> None:
    harness = Harness()

    async def leave_midway() -> None:
        left = asyncio.Event()
        harness.exporter.bytes = [b"one\n"] * 3
        pieces = harness.exporter.pieces

        async def stalled() -> Any:
            async for piece in pieces():
                yield piece
                left.set()
                await asyncio.Event().wait()

        harness.exporter.pieces = stalled  # type: ignore[method-assign]  # waits for ever
        sent = await messages(harness, disconnect=left)
        assert bodies(sent) == [(b"one\n", True)]

    asyncio.run(leave_midway())
    assert harness.exporter.running == 0


REQUEST = (
    f"GET /v1/export?{QUERY} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {MANAGER_KEY}\r\n\r\n"
).encode()
LAST_CHUNK = b"0\r\n\r\n"


async def body_on_the_wire(server: Server) -> bytes:
    """Return what follows the head, up to the end of the body or of the connection."""
    reader, writer = await server.connect()
    writer.write(REQUEST)
    await reader.readuntil(b"\r\n\r\n")
    body = b""
    while not body.endswith(LAST_CHUNK) and (piece := await reader.read(65_536)):
        body += piece
    writer.close()
    return body


def test_complete_export_ends_with_the_last_chunk() -> None:
    async def scenario(server: Server) -> None:
        expected = b"4\r\none\n\r\n4\r\ntwo\n\r\n" + LAST_CHUNK
        assert await body_on_the_wire(server) == expected

    run(Harness(SHORT_TIMEOUTS), scenario)


def test_export_that_fails_midway_is_cut_off_without_the_last_chunk() -> None:
    harness = Harness(SHORT_TIMEOUTS)
    harness.exporter.bytes = [b"one\n", StoreUnavailable("away")]

    async def scenario(server: Server) -> None:
        assert await body_on_the_wire(server) == b"4\r\none\n\r\n"

    run(harness, scenario)


def test_export_of_a_client_that_leaves_ends() -> None:
    harness = Harness(SHORT_TIMEOUTS)
    left = asyncio.Event()

    async def endless() -> Any:
        try:
            while True:
                yield ExportedPiece(b"x" * 65_536)
        finally:
            left.set()

    harness.exporter.pieces = endless  # type: ignore[method-assign]  # never ends by itself

    async def scenario(server: Server) -> None:
        reader, writer = await server.connect()
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await left.wait()

    run(harness, scenario)
    assert harness.exporter.running == 0
