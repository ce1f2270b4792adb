"""Holds idle connections open and reports a worker's memory for each, and how others are served.

Run: .venv/bin/python -m bench.operation.idle_connections --connections 10000
"""

import argparse
import contextlib
import resource
import socket
import statistics
import tempfile
import time
from pathlib import Path

from bench.operation.soak import memory_mib
from headrace.http.server.connection_limit import RESERVED_FILE_DESCRIPTORS
from testing.service import Service

EVENT = b'{"name":"idle_connections"}'
REQUESTS = 200
USED_EVERY = 10
"""One connection in so many has sent an event before it is idle; the others have sent nothing."""


def reserve_files(connections: int) -> int:
    """Raise the limit of open files, which the service inherits; return how many may be open."""
    wanted = connections + 2 * RESERVED_FILE_DESCRIPTORS
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, soft - 2 * RESERVED_FILE_DESCRIPTORS)


def encode_event(website: str) -> bytes:
    head = f"POST /track?website_id={website} HTTP/1.1\r\nHost: x\r\n"
    return f"{head}Content-Length: {len(EVENT)}\r\n\r\n".encode() + EVENT


def exchange(connection: socket.socket, sent: bytes) -> bool:
    """Send an event and return whether it was accepted."""
    connection.sendall(sent)
    return connection.recv(4_096).startswith(b"HTTP/1.1 200 ")


def connect(service: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=60)


def measure_sender(service: Service, sent: bytes) -> tuple[int, list[float]]:
    """Send events one by one; return the accepted ones and the times in milliseconds."""
    accepted, times_ms = 0, list[float]()
    with connect(service) as connection:
        for _ in range(REQUESTS):
            started_s = time.perf_counter()
            accepted += exchange(connection, sent)
            times_ms.append((time.perf_counter() - started_s) * 1000)
    return accepted, times_ms


def count_open(connections: list[socket.socket]) -> int:
    """Return how many connections the service has not closed."""
    still_open = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            still_open += connection.recv(1) != b""
        except BlockingIOError:
            still_open += 1
        except ConnectionError:
            pass
    return still_open


def report(service: Service, wanted: int, stack: contextlib.ExitStack) -> None:
    sent = encode_event(service.website(public=True))
    (worker,) = service.child_pids("worker")
    measure_sender(service, sent)
    before_mib = memory_mib(worker)
    idle: list[socket.socket] = []
    for number in range(wanted):
        idle.append(stack.enter_context(connect(service)))
        if number % USED_EVERY == 0:
            assert exchange(idle[-1], sent), "an event was refused"
    after_mib = memory_mib(worker)
    accepted, times_ms = measure_sender(service, sent)
    centiles = statistics.quantiles(times_ms, n=100)
    print(f"connections {wanted}, open {count_open(idle)}")
    print(f"worker {before_mib:.0f} MiB before, {after_mib:.0f} MiB after")
    print(f"each connection {(after_mib - before_mib) * 1024 / wanted:.1f} KiB")
    print(f"sender: {accepted} of {REQUESTS}, p50 {centiles[49]:.1f} ms, p99 {centiles[98]:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    wanted = reserve_files(options.connections)
    with tempfile.TemporaryDirectory(prefix="headrace-idle-") as directory:
        service = Service(Path(directory) / "data", settings={}).start()
        try:
            with contextlib.ExitStack() as stack:
                report(service, wanted, stack)
        finally:
            service.kill()


if __name__ == "__main__":
    main()
