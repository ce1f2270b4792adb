"""The memory of a worker is bounded, whatever the size and number of concurrent requests."""

import gzip
import json
import resource
import socket
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # has no type annotations
import pytest
import requests
import zstandard

from testing.service import Service
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import UNAVAILABLE, error_envelope, outcome, success

pytestmark = pytest.mark.slow

MEBIBYTE = 1_048_576
IDLE_CONNECTIONS = 10_000


def memory(pid: int, line: str) -> int:
    """Return VmRSS (current) or VmHWM (peak) in bytes."""
    for found in Path(f"/proc/{pid}/status").read_text().splitlines():
        if found.startswith(f"{line}:"):
            return int(found.split()[1]) * 1024
    raise AssertionError(f"{pid} has no {line}")


@contextmanager
def assert_bounded_growth(service: Service, mebibytes: int) -> Generator[None]:
    """Check that the peak memory of the worker grows by less than the limit."""
    (worker,) = service.child_pids("worker")
    service.post("/track", {"name": "a"})
    before = memory(worker, "VmRSS")
    yield
    assert service.child_pids("worker") == [worker]
    grown = memory(worker, "VmHWM") - before
    assert grown < mebibytes * MEBIBYTE, f"it grew by {grown / MEBIBYTE:.0f} MiB"


def in_parallel(threads: int, work: Callable[[int], int]) -> Counter[int]:
    with ThreadPoolExecutor(threads) as pool:
        return Counter(pool.map(work, range(threads)))


def post_alone(service: Service, path: str, body: bytes, encoding: str = "identity") -> int:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    response = requests.post(service.url + path, data=body, headers=headers, timeout=120)
    if response.status_code == 503:
        assert int(response.headers["Retry-After"]) >= 1
    return response.status_code


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(4096).split()[1])


def begin_bodies(
    service: Service, opened: ExitStack, count: int, chunk: bytes
) -> list[socket.socket]:
    """Start requests that send the first piece of their bodies and then stall."""
    head = b"POST /track HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    begun: list[socket.socket] = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        begun.append(opened.enter_context(one))
        one.sendall(head + chunk)
    return begun


def post_beside_a_stalled_body(service: Service, path: str, body: object) -> requests.Response:
    """Post beside a request that has sent one byte of its body, until that is refused.

    The service may not have read the byte yet, or have refused that request because the one before
    it had not quite ended.
    """
    deadline = time.monotonic() + 60
    with ExitStack() as opened:
        while True:
            begin_bodies(service, opened, 1, b"[")
            response = service.post(path, body)
            if response.status_code != 200:
                return response
            assert time.monotonic() < deadline


def test_slow_bodies_are_408_and_reserve_only_received_bytes(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_BODY_TIMEOUT_S": "2"}).start()
    website = service.website()

    with assert_bounded_growth(service, 100), ExitStack() as opened:
        slow = begin_bodies(service, opened, 500, b" " * 50_000)
        meanwhile = service.post(f"/track?website_id={website}", {"name": "quick"})
        statuses = Counter(status_of(one) for one in slow)

    assert outcome(meanwhile) == (200, success("/track"))
    assert statuses == {408: 500}


def test_bodies_over_the_inflight_limit_are_503(dedicated_service: ServiceMaker) -> None:
    limit = 16 * MEBIBYTE
    settings = {"HEADRACE_BODY_TIMEOUT_S": "10", "HEADRACE_MAX_INFLIGHT_BYTES": str(limit)}
    service = dedicated_service(settings=settings).start()
    website = service.website()

    with assert_bounded_growth(service, 100), ExitStack() as opened:
        slow = begin_bodies(service, opened, 60, b" " * MEBIBYTE)
        statuses = Counter(status_of(one) for one in slow)
    after = service.post(f"/track?website_id={website}", {"name": "after"})

    assert statuses.keys() == {408, 503}
    assert statuses[408] <= 16
    assert outcome(after) == (200, success("/track"))


def test_huge_batches_in_parallel_are_stored_or_503(dedicated_service: ServiceMaker) -> None:
    settings = {"HEADRACE_MAX_INFLIGHT_BYTES": str(32 * MEBIBYTE)}
    service = dedicated_service(settings=settings).start()
    website = service.website()
    batch = json.dumps([{"name": "big", "properties": {"text": "x" * 900}}] * 9_000).encode()

    with assert_bounded_growth(service, 400):
        statuses = in_parallel(
            24, lambda _: post_alone(service, f"/track?website_id={website}", batch)
        )

    assert statuses.keys() == {200, 503}
    assert service.count(website, "events") == 9_000 * statuses[200]


def test_single_request_over_the_inflight_limit_is_accepted(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_MAX_INFLIGHT_BYTES": "1"}).start()
    website = service.website()
    body = [{"name": "big", "properties": {"text": "x" * 900}}] * 1_000

    alone = service.post(f"/track?website_id={website}", body)
    rejected = post_beside_a_stalled_body(service, f"/track?website_id={website}", body)

    assert outcome(alone) == (200, success("/track", 1_000))
    assert error_envelope(rejected) == UNAVAILABLE


def endless(compress: Callable[[bytes], bytes]) -> bytes:
    """Return a compressed body that decompresses to 400 MiB."""
    return compress(b" " * (400 * MEBIBYTE))


def quick_brotli(body: bytes) -> bytes:
    brotli = cast("Any", untyped_brotli)
    compressed: bytes = brotli.compress(body, quality=1)
    return compressed


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 1),
    "deflate": lambda body: zlib.compress(body, 1),
    "br": quick_brotli,
    "zstd": zstandard.ZstdCompressor(1).compress,
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_decompression_bombs_are_413(dedicated_service: ServiceMaker, encoding: str) -> None:
    service = dedicated_service().start()
    path, bomb = f"/track?website_id={service.website()}", endless(BOMBS[encoding])

    with assert_bounded_growth(service, 300):
        statuses = in_parallel(24, lambda _: post_alone(service, path, bomb, encoding))

    assert statuses == {413: 24}


def test_decoded_size_counts_toward_the_inflight_limit(dedicated_service: ServiceMaker) -> None:
    settings = {"HEADRACE_MAX_INFLIGHT_BYTES": str(40 * MEBIBYTE)}
    service = dedicated_service(settings=settings).start()
    website = service.website()
    body = gzip.compress(b" " * (19 * MEBIBYTE) + b'{"name":"a"}', 1)

    with assert_bounded_growth(service, 400):
        statuses = in_parallel(
            32, lambda _: post_alone(service, f"/track?website_id={website}", body, "gzip")
        )

    assert statuses.keys() <= {200, 503}
    assert service.count(website, "events") == statuses[200] > 0


@contextmanager
def many_files() -> Generator[None]:
    """Raise the limit of open files to the hard limit; skip the test if that is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE_CONNECTIONS + 1_000:
        pytest.skip("this process may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_idle_connections_do_not_block_a_new_client(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()

    with many_files(), assert_bounded_growth(service, 200), ExitStack() as opened:
        for _ in range(IDLE_CONNECTIONS):
            opened.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30))
        with service.session() as session:
            url = f"{service.url}/track?website_id={website}"
            response = session.post(url, json={"name": "a"}, timeout=30)

    assert outcome(response) == (200, success("/track"))
    assert service.count(website, "events") == 1


def test_idle_connections_over_the_worker_limit_block_no_client(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_MAX_CONNECTIONS": "50"}).start()
    website = service.website()

    with ExitStack() as opened:
        for _ in range(200):
            opened.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30))
        responses = [service.post(f"/track?website_id={website}", {"name": "a"}) for _ in range(5)]

    assert [outcome(response) for response in responses] == [(200, success("/track"))] * 5
    assert service.count(website, "events") == 5


def test_service_raises_the_open_file_limit(dedicated_service: ServiceMaker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        service = dedicated_service().start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    (worker,) = service.child_pids("worker")

    limits = resource.prlimit(worker, resource.RLIMIT_NOFILE)

    assert limits == (min(hard, MEBIBYTE), hard)
