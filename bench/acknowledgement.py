"""How long a sender waits for its 200, and how much of that is the log's shared fsync.

Run: .venv/bin/python -m bench.acknowledgement [--folder DIR] [--rounds N]
Single events over 1, 16 and 64 connections of a real service on a fresh directory. An empty batch
goes the same way but for the log: the difference of medians is what the log adds. Medians of rounds
that take turns; "fsync" and "events an fsync" are worked out from the service's own histogram.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import uvloop

from tests.e2e.service import Service

CONNECTIONS = (1, 16, 64)
REQUESTS = 4000
WARM_UP = 500
EVENT = (
    b'{"name":"purchase","anonymousId":"anon_4f1c","sessionId":"sess_77","path":"/pricing",'
    b'"properties":{"plan":"pro","seats":3,"currency":"EUR","value":119.5,"trial":false}}'
)
NOTHING = b"[]"
HISTOGRAM = "headrace_log_fsync_seconds"
EDGES_MS = (0.5, 1, 2, 5, 10, 20, 50, 100)


class Fsyncs(NamedTuple):
    """The service's histogram, or what one measurement added to it."""

    number: float
    seconds: float
    within: tuple[float, ...]


class Waits(NamedTuple):
    """One measurement: what the senders saw, and what the log did meanwhile."""

    requests: int
    p50_ms: float
    p99_ms: float
    per_s: float
    fsyncs: Fsyncs


def message(website: str, body: bytes) -> bytes:
    return (
        f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def send(port: int, request: bytes, count: int) -> list[float]:
    """Send a request so many times over one connection; return how long each 200 took, in ms."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    waits_ms: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(content_length(head))
        waits_ms.append((time.perf_counter() - started) * 1e3)
        assert head.startswith(b"HTTP/1.1 200 "), head
    writer.close()
    await writer.wait_closed()
    return waits_ms


def content_length(head: bytes) -> int:
    return int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])


async def send_from_all(port: int, request: bytes, connections: int, count: int) -> list[float]:
    each = count // connections
    found = await asyncio.gather(*(send(port, request, each) for _ in range(connections)))
    return [wait for waits in found for wait in waits]


def measure(service: Service, request: bytes, connections: int) -> Waits:
    uvloop.run(send_from_all(service.port, request, connections, WARM_UP))
    before, started = read_fsyncs(service), time.perf_counter()
    waits_ms = uvloop.run(send_from_all(service.port, request, connections, REQUESTS))
    seconds, after = time.perf_counter() - started, read_fsyncs(service)
    return Waits(
        requests=len(waits_ms),
        p50_ms=median(waits_ms),
        p99_ms=quantiles(waits_ms, n=100)[98],
        per_s=len(waits_ms) / seconds,
        fsyncs=Fsyncs(
            after.number - before.number,
            after.seconds - before.seconds,
            tuple(b - a for a, b in zip(before.within, after.within, strict=True)),
        ),
    )


def read_fsyncs(service: Service) -> Fsyncs:
    lines = (line.rsplit(" ", 1) for line in service.get("/metrics").text.splitlines())
    values = {line[0]: line[1] for line in lines}
    return Fsyncs(
        number=float(values.get(f"{HISTOGRAM}_count", 0)),
        seconds=float(values.get(f"{HISTOGRAM}_sum", 0)),
        within=tuple(
            float(values.get(f'{HISTOGRAM}_bucket{{le="{edge / 1e3}"}}', 0)) for edge in EDGES_MS
        ),
    )


def print_table(found: Mapping[tuple[int, bytes], Sequence[Waits]]) -> None:
    print(
        "| connections | 200 p50 | p99 | 200s a second | nothing to log p50 | the log adds ", end=""
    )
    print("| fsync, mean | fsyncs within 0.5 / 1 / 5 ms | events an fsync |")
    print(f"|{'---|' * 9}")
    for connections in CONNECTIONS:
        with_log, without = found[connections, EVENT], found[connections, NOTHING]
        added = [one.p50_ms - two.p50_ms for one, two in zip(with_log, without, strict=True)]
        fsyncs = [one.fsyncs for one in with_log]
        total = sum(one.number for one in fsyncs)
        within = [sum(one.within[edge] for one in fsyncs) / total for edge in (0, 1, 3)]
        print(
            f"| {connections} | {median(one.p50_ms for one in with_log):.2f} ms"
            f" | {median(one.p99_ms for one in with_log):.2f} ms"
            f" | {median(one.per_s for one in with_log):,.0f}"
            f" | {median(one.p50_ms for one in without):.2f} ms | {median(added):.2f} ms"
            f" | {median(one.seconds / one.number for one in fsyncs) * 1e3:.3f} ms"
            f" | {' / '.join(f'{share:.1%}' for share in within)}"
            f" | {sum(one.requests for one in with_log) / total:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    found: dict[tuple[int, bytes], list[Waits]] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-ack-", dir=options.folder) as directory:
        service = Service(Path(directory) / "data").start()
        try:
            website = service.website()
            for _ in range(options.rounds):
                for connections in CONNECTIONS:
                    for body in (EVENT, NOTHING):
                        waits = measure(service, message(website, body), connections)
                        found.setdefault((connections, body), []).append(waits)
        finally:
            service.kill()
    print_table(found)


if __name__ == "__main__":
    main()
