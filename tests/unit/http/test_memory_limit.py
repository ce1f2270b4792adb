"""The limit of buffered body bytes."""

import pytest
from starlette.types import Message

from headrace.base.errors import Unavailable
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.request import Request


async def receive() -> Message:
    return {"type": "http.request"}


def make_request() -> Request:
    return Request({"headers": []}, receive, "0123456789abcdef")


def test_request_over_the_inflight_limit_is_rejected() -> None:
    inflight, first, second = InflightLimiter(10), make_request(), make_request()
    inflight.reserve(first, 4)
    inflight.reserve(second, 6)

    with pytest.raises(Unavailable) as caught:
        inflight.reserve(first, 1)

    assert caught.value.retry_after_s == 1


def test_reserved_bytes_are_released_once_per_request() -> None:
    inflight, first, second, third = (
        InflightLimiter(10),
        make_request(),
        make_request(),
        make_request(),
    )
    inflight.reserve(first, 10)
    inflight.release(first)
    inflight.release(first)
    inflight.reserve(second, 10)

    with pytest.raises(Unavailable):
        inflight.reserve(third, 1)

    assert (first.reserved_bytes, second.reserved_bytes, third.reserved_bytes) == (0, 10, 1)


def test_rejected_request_releases_its_bytes() -> None:
    inflight, first, second = InflightLimiter(10), make_request(), make_request()
    inflight.reserve(first, 8)
    with pytest.raises(Unavailable):
        inflight.reserve(second, 8)
    inflight.release(second)
    inflight.reserve(first, 2)
    inflight.release(first)
    inflight.reserve(second, 10)
    assert second.reserved_bytes == 10


def test_single_request_is_never_rejected() -> None:
    inflight, alone = InflightLimiter(1), make_request()
    inflight.reserve(alone, 1_000_000)
    inflight.reserve(alone, 1_000_000)
    assert alone.reserved_bytes == 2_000_000
