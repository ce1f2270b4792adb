"""The connection policies, without a socket."""

import contextlib
import socket
from typing import Any

import pytest

from headrace.base.errors import PayloadTooLarge, RequestTimeout
from headrace.http.endpoints import TRACK
from headrace.http.server.connection_limit import ConnectionLimit
from headrace.http.server.disconnects import MAX_PIPELINED_BYTES, DisconnectDetector
from headrace.http.server.final_response import encode_head_error
from headrace.http.server.head_timeouts import HeadTimeouts
from headrace.http.server.parsing.cached_heads import (
    CachedHead,
    FastPathRoute,
    HeadCache,
    SimpleHeadParser,
)
from headrace.http.server.parsing.request_buffer import RequestBuffer
from headrace.http.server.response_bytes import encode_response
from headrace.http.server.send_queue import queued_bytes
from headrace.http.server.slow_readers import WriteProgress, drop_slowest_readers
from headrace.ingest.receive.decoding.decode import IngestPath


class FakeConnection:
    """A connection with a given state; records whether it was closed."""

    def __init__(self, *, idle: bool = True, unsent: int = 0, drained: int | None = None) -> None:
        self.idle = idle
        self.unsent_bytes = unsent
        self.drained_bytes = drained
        self.is_closed = False

    def is_idle(self) -> bool:
        return self.idle

    def evict(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


class FakeEvent:
    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True


class FakeRequest:
    def __init__(self, *, response_complete: bool = False) -> None:
        self.response_complete = response_complete
        self.disconnected = False
        self.message_event = FakeEvent()


def test_head_that_is_not_complete_in_time_is_late() -> None:
    head = HeadTimeouts(opened_s=0)
    head.start(10)
    assert [head.is_late(now_s, 5) for now_s in (14, 15, 16)] == [False, False, True]
    head.complete()
    assert not head.is_late(100, 5)


def test_connection_without_a_request_is_unused_after_the_timeout() -> None:
    head = HeadTimeouts(opened_s=10)
    assert [head.is_unused(now_s, 5) for now_s in (15, 16)] == [False, True]
    head.start(16)
    assert not head.is_unused(100, 5)


@pytest.mark.parametrize(
    ("error", "status_line"),
    [
        pytest.param(PayloadTooLarge(), b"HTTP/1.1 413 Content Too Large", id="too long"),
        pytest.param(RequestTimeout(), b"HTTP/1.1 408 Request Timeout", id="late"),
    ],
)
def test_response_to_a_bad_head_closes_the_connection(error: Any, status_line: bytes) -> None:
    head, _, body = encode_head_error(error).partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        status_line,
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
    ]


def test_response_is_status_line_headers_and_body() -> None:
    assert encode_response(200, [(b"a", b"1"), (b"content-length", b"2")], b"{}") == (
        b"HTTP/1.1 200 OK\r\na: 1\r\ncontent-length: 2\r\n\r\n{}"
    )


def test_connection_below_the_limit_evicts_none() -> None:
    others = [FakeConnection(), FakeConnection()]
    assert ConnectionLimit(3).make_room(2, others)
    assert [each.is_closed for each in others] == [False, False]


def test_connection_at_the_limit_evicts_one_idle_connection() -> None:
    others = [FakeConnection(idle=False), FakeConnection(), FakeConnection()]
    assert ConnectionLimit(3).make_room(3, others)
    assert [each.is_closed for each in others] == [False, True, False]


def test_connection_at_the_limit_is_refused_if_none_is_idle() -> None:
    others = [FakeConnection(idle=False)]
    assert not ConnectionLimit(1).make_room(1, others)
    assert not others[0].is_closed


def test_disconnect_wakes_the_active_request() -> None:
    detector = DisconnectDetector()
    detector.report_disconnect()  # before the first request
    request = FakeRequest()
    detector.active_request = request
    detector.report_disconnect()
    assert (request.disconnected, request.message_event.is_set) == (True, True)


def test_disconnect_after_the_response_changes_nothing() -> None:
    detector = DisconnectDetector()
    request = FakeRequest(response_complete=True)
    detector.active_request = request
    detector.report_disconnect()
    assert (request.disconnected, request.message_event.is_set) == (False, False)


def test_reading_stops_after_the_limit_of_pipelined_bytes() -> None:
    detector = DisconnectDetector()
    detector.pipelined_bytes = MAX_PIPELINED_BYTES - 1
    assert detector.should_read_on()
    detector.pipelined_bytes += 1
    assert not detector.should_read_on()


def test_client_that_reads_nothing_is_stalled_after_the_timeout() -> None:
    progress = WriteProgress()
    progress.sample(1, 100, 0)
    progress.sample(6, 100, 0)
    assert not progress.is_stalled(6, 5)
    progress.sample(7, 100, 0)
    assert progress.is_stalled(7, 5)
    progress.sample(8, 60, 0)
    assert not progress.is_stalled(8, 5)
    assert progress.drained_bytes == 40
    progress.sample(9, 0, 0)
    progress.sample(100, 0, 0)
    assert not progress.is_stalled(100, 5)
    assert progress.drained_bytes is None


def test_reader_of_what_the_kernel_has_taken_is_not_stalled() -> None:
    progress = WriteProgress()
    for now_s, queued in enumerate([900, 800, 700, 600]):
        progress.sample(now_s, 100, queued)
        assert not progress.is_stalled(now_s, 0.5)
    progress.sample(4, 100, 600)
    assert progress.is_stalled(4, 0.5)


def test_bytes_in_the_kernel_are_those_that_the_other_side_has_not_received() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = socket.create_connection(server.getsockname())
        writer, _ = server.accept()
    with reader, writer:
        assert queued_bytes(writer) == 0
        writer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                writer.send(b"x" * 65536)
        full = queued_bytes(writer)
        while queued_bytes(writer) == full:
            assert reader.recv(65536)
        assert 0 < queued_bytes(writer) < full
    assert queued_bytes(writer) == 0  # a closed one


def test_slowest_readers_are_dropped_first() -> None:
    fast = FakeConnection(unsent=100, drained=99)
    slow = FakeConnection(unsent=100, drained=9)
    slowest = FakeConnection(unsent=100, drained=0)
    unsampled = FakeConnection(unsent=100)
    drop_slowest_readers([fast, slow, slowest, unsampled], 400)
    assert not any(each.is_closed for each in (fast, slow, slowest, unsampled))
    drop_slowest_readers([fast, slow, slowest, unsampled], 250)
    assert [each.is_closed for each in (fast, slow, slowest, unsampled)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("raw", "is_cacheable"),
    [
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", True, id="plain"),
        pytest.param(b"POST / HTTP/1.1\nHost: x\r\n\r\n", False, id="a bare line end"),
        pytest.param(b"\r\n\r\n", False, id="empty lines come first"),
        pytest.param(b"", False, id="in the middle of a chunk"),
    ],
)
def test_head_is_cacheable_if_its_end_is_certain(raw: bytes, is_cacheable: bool) -> None:
    buffer = RequestBuffer()
    buffer.chunk_head = raw
    buffer.start_message()
    assert buffer.cacheable_head() == (raw if is_cacheable else None)
    buffer.start_message()  # the second request of the chunk has no cached head
    assert buffer.cacheable_head() is None


def make_head() -> CachedHead:
    routes = {b"/track": FastPathRoute(TRACK, IngestPath.TRACK, None)}
    head = SimpleHeadParser(routes, max_body_bytes=2).parse(b"/track", [(b"content-length", b"2")])
    assert head is not None
    return head


def test_head_is_cached_from_its_second_occurrence_on() -> None:
    cache, head = HeadCache(), make_head()
    cache.remember(b"raw", head)
    assert cache.get(b"raw") is None
    cache.remember(b"raw", head)
    assert cache.get(b"raw") is head


def test_long_head_is_never_cached() -> None:
    cache, head, raw = HeadCache(), make_head(), b"x" * 2_049
    cache.remember(raw, head)
    cache.remember(raw, head)
    assert cache.get(raw) is None
