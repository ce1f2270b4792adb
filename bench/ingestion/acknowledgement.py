"""Measures the latency of a 200, and the part of it that is the log's shared fsync.

Run: .venv/bin/python -m bench.ingestion.acknowledgement [--folder DIR] [--rounds N]

Sends single events over 1, 16 and 64 connections to a real service on a fresh directory. An empty
batch takes the same path except for the log: the difference of the medians is the cost of the log.
Values are medians of interleaved rounds; "fsync" and "events an fsync" are derived from the
service's own histogram.
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

from testing.service import Service

CONNECTIONS = (1, 16, 64)
REQUESTS = 4000
WARM_UP = 500
EVENT = (
    b'{"name":"purchase","anonymousId":"anon_4f1c","sessionId":"sess_77","path":"/pricing",'
    b'"properties":{"plan":"pro","seats":3,"currency":"EUR","value":119.5,"trial":false}}'
)
EMPTY_BATCH = b"[]"
HISTOGRAM = "headrace_log_fsync_seconds"
BUCKET_BOUNDS_MS = (0.5, 1, 2, 5, 10, 20, 50, 100)


class FsyncStats(NamedTuple):
    """The service's histogram, or its increase during one measurement."""

    number: float
    seconds: float
    bucket_counts: tuple[float, ...]


class AckLatency(NamedTuple):
    """One measurement: the latency for senders, and the fsyncs of the log."""

    requests: int
    p50_ms: float
    p99_ms: float
    per_s: float
    fsyncs: FsyncStats


def encode_request(website: str, body: bytes) -> bytes:
    return (
        f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def send(port: int, request: bytes, count: int) -> list[float]:
    """Send a request `count` times over one connection; return the latency of each 200 in ms."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    latencies_ms: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(content_length(head))
        latencies_ms.append((time.perf_counter() - started) * 1e3)
        assert head.startswith(b"HTTP/1.1 200 "), head
    writer.close()
    await writer.wait_closed()
    return latencies_ms


def content_length(head: bytes) -> int:
    return int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])


async def send_from_all(port: int, request: bytes, connections: int, count: int) -> list[float]:
    each = count // connections
    results = await asyncio.gather(*(send(port, request, each) for _ in range(connections)))
    return [latency for latencies in results for latency in latencies]


def measure(service: Service, request: bytes, connections: int) -> AckLatency:
    uvloop.run(send_from_all(service.port, request, connections, WARM_UP))
    before, started = read_fsyncs(service), time.perf_counter()
    latencies_ms = uvloop.run(send_from_all(service.port, request, connections, REQUESTS))
    seconds, after = time.perf_counter() - started, read_fsyncs(service)
    return AckLatency(
        requests=len(latencies_ms),
        p50_ms=median(latencies_ms),
        p99_ms=quantiles(latencies_ms, n=100)[98],
        per_s=len(latencies_ms) / seconds,
        fsyncs=FsyncStats(
            after.number - before.number,
            after.seconds - before.seconds,
            tuple(b - a for a, b in zip(before.bucket_counts, after.bucket_counts, strict=True)),
        ),
    )


def read_fsyncs(service: Service) -> FsyncStats:
    lines = (line.rsplit(" ", 1) for line in service.get("/metrics").text.splitlines())
    values = {line[0]: line[1] for line in lines}
    return FsyncStats(
        number=float(values.get(f"{HISTOGRAM}_count", 0)),
        seconds=float(values.get(f"{HISTOGRAM}_sum", 0)),
        bucket_counts=tuple(
            float(values.get(f'{HISTOGRAM}_bucket{{le="{bound / 1e3}"}}', 0))
            for bound in BUCKET_BOUNDS_MS
        ),
    )


def print_table(results: Mapping[tuple[int, bytes], Sequence[AckLatency]]) -> None:
    print(
        "| connections | 200 p50 | p99 | 200s a second | nothing to log p50 | the log adds ", end=""
    )
    print("| fsync, mean | fsyncs within 0.5 / 1 / 5 ms | events an fsync |")
    print(f"|{'---|' * 9}")
    for connections in CONNECTIONS:
        with_log, without = results[connections, EVENT], results[connections, EMPTY_BATCH]
        added = [one.p50_ms - two.p50_ms for one, two in zip(with_log, without, strict=True)]
        fsyncs = [one.fsyncs for one in with_log]
        total = sum(one.number for one in fsyncs)
        bucket_counts = [
            sum(one.bucket_counts[bound] for one in fsyncs) / total for bound in (0, 1, 3)
        ]
        print(
            f"| {connections} | {median(one.p50_ms for one in with_log):.2f} ms"
            f" | {median(one.p99_ms for one in with_log):.2f} ms"
            f" | {median(one.per_s for one in with_log):,.0f}"
            f" | {median(one.p50_ms for one in without):.2f} ms | {median(added):.2f} ms"
            f" | {median(one.seconds / one.number for one in fsyncs) * 1e3:.3f} ms"
            f" | {' / '.join(f'{share:.1%}' for share in bucket_counts)}"
            f" | {sum(one.requests for one in with_log) / total:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    results: dict[tuple[int, bytes], list[AckLatency]] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-ack-", dir=options.folder) as directory:
        service = Service(Path(directory) / "data").start()
        try:
            website = service.website()
            for _ in range(options.rounds):
                for connections in CONNECTIONS:
                    for body in (EVENT, EMPTY_BATCH):
                        latencies = measure(service, encode_request(website, body), connections)
                        results.setdefault((connections, body), []).append(latencies)
        finally:
            service.kill()
    print_table(results)


if __name__ == "__main__":
    main()
