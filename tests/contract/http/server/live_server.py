"""A server on a real socket: how to start it and read its responses byte by byte."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from headrace.base.settings import Settings
from headrace.http.server.server import serve
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest, Reserve
from tests.contract.http.fakes import PRIVATE, READER_KEY, Harness

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEAD = b"POST /track HTTP/1.1\r\nHost: x\r\n"
QUERY = (
    b"POST /v1/query/custom?website_id=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
    b"Content-Length: 2\r\n\r\n{}" % (PRIVATE.encode(), READER_KEY.encode())
)
TIMEOUT_S = 100
"""Of a scenario that hangs; one of thousands of requests takes some seconds on a busy machine."""

SHORT_TIMEOUTS = Settings(body_timeout_s=0.1, shutdown_timeout_s=0.5, max_body_bytes=100)


class Server(NamedTuple):
    """A running server, with its address and the means to stop it."""

    port: int
    stop: asyncio.Event
    task: asyncio.Task[None]

    async def connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def running(harness: Harness) -> AsyncGenerator[Server]:
    listening = socket.create_server(("127.0.0.1", 0))
    port: int = listening.getsockname()[1]
    stop = asyncio.Event()
    app = harness.app()
    task = asyncio.create_task(
        serve(
            app,
            listening_socket=listening,
            settings=harness.settings,
            stop=stop,
            fast_path=app.fast_path,
        )
    )
    try:
        yield Server(port, stop, task)
    finally:
        stop.set()
        await task


def run(harness: Harness, scenario: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(TIMEOUT_S), running(harness) as server:
            await scenario(server)

    asyncio.run(main())


async def read_response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], object]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status_line, *lines = head.strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(status_line.split()[1]), headers, json.loads(body)


class SlowAcceptor:
    """Accepts a request once `allowed` is set."""

    def __init__(self) -> None:
        self.in_progress = 0
        self.reached = asyncio.Event()
        self.allowed = asyncio.Event()

    async def accept(self, request: IngestRequest, reserve: Reserve) -> AcceptResult:
        del request, reserve
        self.in_progress += 1
        self.reached.set()
        await self.allowed.wait()
        return AcceptResult(1)
