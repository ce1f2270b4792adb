"""The bytes of bodies that are held at a time, counted by hand."""

import pytest
from starlette.types import Message

from headrace.base.errors import Unavailable
from headrace.http.reading.memory_limit import InflightBytes
from headrace.http.request import Call


async def receive() -> Message:
    return {"type": "http.request"}


def call() -> Call:
    return Call({"headers": []}, receive, "0123456789abcdef")


def test_call_that_brings_more_than_there_is_room_for_is_refused() -> None:
    inflight, first, second = InflightBytes(10), call(), call()
    inflight.hold(first, 4)
    inflight.hold(second, 6)

    with pytest.raises(Unavailable) as caught:
        inflight.hold(first, 1)

    assert caught.value.retry_after_s == 1


def test_room_comes_back_once_with_each_call_that_ends() -> None:
    inflight, first, second, third = InflightBytes(10), call(), call(), call()
    inflight.hold(first, 10)
    inflight.release(first)
    inflight.release(first)
    inflight.hold(second, 10)

    with pytest.raises(Unavailable):
        inflight.hold(third, 1)

    assert (first.held_bytes, second.held_bytes, third.held_bytes) == (0, 10, 1)


def test_refused_call_gives_back_what_it_had_brought() -> None:
    inflight, first, second = InflightBytes(10), call(), call()
    inflight.hold(first, 8)
    with pytest.raises(Unavailable):
        inflight.hold(second, 8)
    inflight.release(second)
    inflight.hold(first, 2)
    inflight.release(first)
    inflight.hold(second, 10)
    assert second.held_bytes == 10


def test_call_alone_is_never_refused() -> None:
    inflight, alone = InflightBytes(1), call()
    inflight.hold(alone, 1_000_000)
    inflight.hold(alone, 1_000_000)
    assert alone.held_bytes == 2_000_000
