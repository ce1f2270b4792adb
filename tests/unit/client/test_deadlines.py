"""A server that sends its response a byte at a time keeps neither an item nor a query for ever."""

import os
import socketserver
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import httpx
import pytest

from headrace_client import Headrace, QueryUnavailable
from headrace_client.testing import FakeHeadrace

pytestmark = pytest.mark.slow  # each waits for a deadline of seconds

BYTE_PAUSE_S = 0.02
TIMEOUT_S = 1.0  # of a part of a response, which each byte is; a busy machine stalls for less
BEGINNINGS = {
    "head": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
}


@contextmanager
def slow_server(
    beginning: bytes, byte: bytes, *, count: int = sys.maxsize, end: bytes = b""
) -> Generator[str]:
    """Serve a response with so many bytes in turn; yield the address."""
    is_ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            try:
                self.request.sendall(beginning)
                for _ in range(count):
                    if is_ended.wait(BYTE_PAUSE_S):
                        return
                    self.request.sendall(byte)
                self.request.sendall(end)
                while self.request.recv(65536):  # what is unread would reset the connection
                    pass
            except OSError:  # the client has closed the connection
                return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            is_ended.set()
            server.shutdown()


@pytest.fixture(params=BEGINNINGS.values(), ids=tuple(BEGINNINGS))
def client(request: pytest.FixtureRequest) -> Iterator[Headrace]:
    """A client of a slow server."""
    with slow_server(*request.param) as url:
        client = Headrace(url, "key", outbox=None, website_id="web_1", make_http_client=impatient)
        yield client
        client.close(0)


def impatient() -> httpx.Client:
    return httpx.Client(timeout=TIMEOUT_S)


def test_query_ends_by_its_deadline(client: Headrace) -> None:
    with pytest.raises(QueryUnavailable, match=r"^no response: the response does not end$"):
        client.query({})


def test_request_with_items_ends_by_its_deadline_and_they_stay(client: Headrace) -> None:
    client.track("a")
    while not client.stats().last_error:
        client.flush(BYTE_PAUSE_S)

    stats = client.stats()
    assert (stats.pending, stats.last_error) == (1, "ReadTimeout: the response does not end")


def test_large_request_has_more_time() -> None:
    reply = b'{"status": "success"}'
    end = b"\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply)
    count = int(3 * TIMEOUT_S / BYTE_PAUSE_S)  # beyond the deadline of a small request
    with (
        slow_server(*BEGINNINGS["head"], count=count, end=end) as url,
        Headrace(url, "key", outbox=None, make_http_client=impatient) as client,
    ):
        client.track("a", {"incompressible": os.urandom(100_000).hex()})
        assert client.flush()
        assert client.stats().failures == 0


def test_queries_in_turn_share_their_connections(server: FakeHeadrace) -> None:
    made: list[httpx.Client] = []

    def make_http_client() -> httpx.Client:
        made.append(httpx.Client())
        return made[-1]

    with Headrace(
        server.url, "key", outbox=None, website_id="web_1", make_http_client=make_http_client
    ) as client:
        for _ in range(2):
            client.query({})
    assert [one.is_closed for one in made] == [True]
