"""Open-loop client: sends at a given rate regardless of responses, and measures their latency.

Run: .venv/bin/python -m bench.load.open_loop PORT BODIES RATE SECONDS CONNECTIONS [AUTHORIZATION]

BODIES is a file of request bodies, one per line. A request without a free connection waits for one,
and the wait counts as latency: a stalled server does not reduce the load. SIGTERM ends it early.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

from bench.load.processes import cpu_s

_SEND_INTERVAL_S = 0.001
_LAST_RESPONSE_TIMEOUT_S = 30.0
_HEAD_END = b"\r\n\r\n"


class OpenLoopResult(Struct, frozen=True):
    """Results of an open-loop client; all responses were 200. Its CPU is in shares of one core."""

    requests: int
    p50_ms: float
    p99_ms: float
    per_s: float
    generator_share: float


class _Connection(asyncio.Protocol):
    """A connection with one request at a time. Responses must have a Content-Length."""

    def __init__(self, client: "_Client") -> None:
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._scheduled_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def send(self, request: bytes, scheduled_s: float) -> None:
        assert self._transport is not None
        self._scheduled_s = scheduled_s
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_HEAD_END)
        if not end or len(body) < _content_length(head):
            return
        assert head.startswith(b"HTTP/1.1 200 "), self._received
        self._received = b""
        self._client.record_response(self, time.perf_counter() - self._scheduled_s)

    def connection_lost(self, exc: Exception | None) -> None:
        assert exc is None, exc

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


class _Client:
    def __init__(self, requests: Sequence[bytes], rate: float) -> None:
        self._requests = requests
        self._rate = rate
        self._idle_connections: deque[_Connection] = deque()
        self._queued: deque[tuple[bytes, float]] = deque()
        self._all_answered = asyncio.Event()
        self._is_stopped = False
        self.latencies_s: list[float] = []
        self.sent = 0

    async def connect(self, port: int, connections: int) -> list[_Connection]:
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: _Connection(self), "127.0.0.1", port)
            for _ in range(connections)
        ]
        self._idle_connections.extend(connection for _, connection in made)
        return list(self._idle_connections)

    async def run(self, seconds: float) -> None:
        started_s = time.perf_counter()
        while (now_s := time.perf_counter()) < started_s + seconds and not self._is_stopped:
            while started_s + self.sent / self._rate <= now_s:
                self.sent += 1
                self._send(self._requests[self.sent % len(self._requests)], now_s)
            await asyncio.sleep(_SEND_INTERVAL_S)
        async with asyncio.timeout(_LAST_RESPONSE_TIMEOUT_S):
            await self._all_answered.wait()

    def stop(self) -> None:
        """Send nothing more; `run` returns when all requests are answered."""
        self._is_stopped = True

    def record_response(self, connection: _Connection, latency_s: float) -> None:
        self.latencies_s.append(latency_s)
        if self._queued:
            connection.send(*self._queued.popleft())
        else:
            self._idle_connections.append(connection)
        if len(self.latencies_s) == self.sent:
            self._all_answered.set()

    def _send(self, request: bytes, scheduled_s: float) -> None:
        self._all_answered.clear()
        if self._idle_connections:
            self._idle_connections.popleft().send(request, scheduled_s)
        else:
            self._queued.append((request, scheduled_s))


def run_open_loop(
    port: int,
    bodies: Path,
    *,
    rate: float,
    seconds: float,
    connections: int,
    authorization: str,
) -> OpenLoopResult:
    """Run the client in its own process."""
    client = OpenLoopClient(
        port,
        bodies,
        rate=rate,
        seconds=seconds,
        connections=connections,
        authorization=authorization,
    )
    return client.wait()


class OpenLoopClient:
    """A client that sends in its own process, for `seconds` or until it is stopped."""

    def __init__(
        self,
        port: int,
        bodies: Path,
        *,
        rate: float,
        seconds: float,
        connections: int,
        authorization: str,
    ) -> None:
        numbers = (port, bodies, rate, seconds, connections)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load.open_loop", *map(str, numbers), authorization],
            stdout=subprocess.PIPE,
        )

    def stop(self) -> OpenLoopResult:
        """End the load, and return its results. Sending must have begun."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> OpenLoopResult:
        """Return the results when the load has ended."""
        output, _ = self._process.communicate()
        assert self._process.returncode == 0, "the client failed"
        return msgspec.json.decode(output, type=OpenLoopResult)


async def _run(
    port: int, requests: Sequence[bytes], rate: float, seconds: float, connection_count: int
) -> OpenLoopResult:
    client = _Client(requests, rate)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.stop)
    connections = await client.connect(port, connection_count)
    started_s, cpu_before_s = time.perf_counter(), cpu_s([_current_pid()])
    await client.run(seconds)
    wall_s = time.perf_counter() - started_s
    for connection in connections:
        connection.close()
    return OpenLoopResult(
        requests=client.sent,
        p50_ms=median(client.latencies_s) * 1e3,
        p99_ms=quantiles(client.latencies_s, n=100)[98] * 1e3,
        per_s=client.sent / wall_s,
        generator_share=(cpu_s([_current_pid()]) - cpu_before_s) / wall_s,
    )


def _current_pid() -> int:
    return int(Path("/proc/self").readlink().name)


def _content_length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


def _encode_request(body: bytes, authorization: str) -> bytes:
    lines = (
        "POST /track HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *([f"Authorization: {authorization}"] if authorization else []),
    )
    return "\r\n".join(lines).encode() + _HEAD_END + body


def main() -> None:
    port, bodies, rate, seconds, connections, *authorization = sys.argv[1:]
    requests = [
        _encode_request(body, "".join(authorization))
        for body in Path(bodies).read_bytes().splitlines()
    ]
    result = uvloop.run(_run(int(port), requests, float(rate), float(seconds), int(connections)))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
