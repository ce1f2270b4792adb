"""Streams of a worker over a source that a test fills: comments, slow clients, and the end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.formats.event_stream import COMMENT
from headrace.model.tenancy import WebsiteId
from headrace.ports.live import KEPT_ITEMS, LiveItem, LiveItems
from headrace.query.live.service import COMMENT_S, LiveService

WEBSITE = WebsiteId("web_1")
CHECK_S = 0.001
COMMENT_MS = round(COMMENT_S * 1000)


class FilledSource:
    """A `LiveSource` of one epoch that keeps every item."""

    def __init__(self) -> None:
        self.items: list[LiveItem] = []
        self.failures = 0
        self.error: Exception | None = None
        self._changed = asyncio.Event()

    def add(self, count: int) -> None:
        start = len(self.items)
        self.items += [LiveItem("event", b"%d" % number) for number in range(start, start + count)]
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self, website_id: WebsiteId, epoch: str, after: int) -> LiveItems:
        assert website_id == WEBSITE
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the engine process starts again")
        if self.error is not None:
            raise self.error
        if epoch == "e" and after == len(self.items):
            await self._changed.wait()
        first = after if epoch == "e" else 0
        return LiveItems("e", first, tuple(self.items[first:]))

    @contextlib.asynccontextmanager
    async def count_stream(self, caller: str) -> AsyncGenerator[None]:
        assert caller
        yield

    async def publish(self, website_id: WebsiteId, item: LiveItem) -> None:
        raise NotImplementedError


class Harness:
    """A service over a source, at a time that only moves when a test moves it."""

    def __init__(self) -> None:
        self.source, self.clock = FilledSource(), FixedClock(0)
        self.service = LiveService(self.source, clock=self.clock, check_s=CHECK_S)
        self.may_read = True

    @contextlib.asynccontextmanager
    async def stream(self, last_id: str = "") -> AsyncGenerator[AsyncGenerator[bytes]]:
        """A stream that has sent its first comment, with an id where it is a new one."""
        stream = self.service.stream(WEBSITE, last_id, lambda: self.may_read)
        async with contextlib.aclosing(stream):
            beginning = b":\nid: e-%d\n\n" % len(self.source.items)
            assert await anext(stream) == (COMMENT if last_id else beginning)
            yield stream

    async def begin_to_wait(self, stream: AsyncGenerator[bytes]) -> "asyncio.Future[bytes]":
        """Return what a stream sends next, once it has looked at the clock."""
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        return waiting

    async def is_silent(self, waiting: "asyncio.Future[bytes]") -> bool:
        """Return whether a stream sends nothing while it looks at the clock many times."""
        await asyncio.sleep(50 * CHECK_S)
        return not waiting.done()


def event(number: int) -> bytes:
    return b"event: event\nid: e-%d\ndata: %d\n\n" % (number + 1, number)


def missed(number: int, count: int) -> bytes:
    return f'event: missed\nid: e-{number}\ndata: {{"count":{count}}}\n\n'.encode()


async def test_a_stream_without_events_goes_on_from_its_beginning() -> None:
    harness = Harness()
    harness.source.add(2)
    async with harness.stream():
        pass
    harness.source.add(1)
    async with harness.stream("e-2") as stream:
        assert await anext(stream) == event(2)


async def test_a_silent_stream_has_a_comment_every_15_seconds() -> None:
    harness = Harness()
    async with harness.stream() as stream:
        for _ in range(2):
            waiting = await harness.begin_to_wait(stream)
            harness.clock.advance(14_999)
            assert await harness.is_silent(waiting)
            harness.clock.advance(1)
            assert await waiting == COMMENT


async def test_the_time_to_the_next_comment_begins_with_an_event() -> None:
    harness = Harness()
    async with harness.stream() as stream:
        waiting = await harness.begin_to_wait(stream)
        harness.clock.advance(COMMENT_MS - 1000)
        harness.source.add(1)
        assert await waiting == event(0)
        waiting = await harness.begin_to_wait(stream)
        harness.clock.advance(COMMENT_MS - 1)
        assert await harness.is_silent(waiting)
        harness.clock.advance(1)
        assert await waiting == COMMENT


async def test_a_slow_client_gets_the_number_of_missed_items_and_goes_on() -> None:
    harness = Harness()
    async with harness.stream() as slow, harness.stream() as quick:
        harness.source.add(1)
        assert await anext(quick) == await anext(slow) == event(0)
        received = b""
        for _ in range(3):  # the other one reads everything meanwhile
            harness.source.add(KEPT_ITEMS)
            received += await anext(quick)
        assert received == b"".join(event(number) for number in range(1, 3 * KEPT_ITEMS + 1))
        first = 2 * KEPT_ITEMS + 1
        kept = b"".join(event(number) for number in range(first, 3 * KEPT_ITEMS + 1))
        assert await anext(slow) == missed(first, first - 1) + kept
        harness.source.add(1)
        assert await anext(slow) == await anext(quick) == event(3 * KEPT_ITEMS + 1)


async def test_a_stream_ends_when_its_caller_may_read_no_more() -> None:
    harness = Harness()
    async with harness.stream() as stream:
        harness.may_read = False
        waiting = await harness.begin_to_wait(stream)
        assert await harness.is_silent(waiting)
        harness.clock.advance(1_000)
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_a_slow_stream_of_a_busy_website_ends_when_its_caller_may_read_no_more() -> None:
    harness = Harness()
    async with harness.stream() as slow, harness.stream() as quick:
        harness.source.add(1)
        assert await anext(slow) == await anext(quick) == event(0)
        harness.source.add(1)  # while the slow client takes the event before
        assert await anext(quick) == event(1)
        harness.may_read = False
        harness.clock.advance(1_000)
        with pytest.raises(StopAsyncIteration):
            await anext(slow)


async def test_closing_the_service_ends_its_streams() -> None:
    harness = Harness()
    async with harness.stream() as stream:
        waiting = await harness.begin_to_wait(stream)
        await asyncio.sleep(0)
        harness.service.close()
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_streams_raise_what_the_source_raises_unexpectedly() -> None:
    harness = Harness()
    async with harness.stream() as stream, harness.stream() as other:
        harness.source.error = ValueError("a bug")
        harness.source.add(1)
        assert await anext(stream) == await anext(other) == event(0)
        for one in (stream, other):
            with pytest.raises(ValueError, match="a bug"):
                await anext(one)


async def test_a_stream_does_not_open_while_its_source_raises() -> None:
    harness = Harness()
    harness.source.error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        async with harness.stream():
            pass
    harness.source.error = None
    async with harness.stream() as stream:
        harness.source.add(1)
        assert await anext(stream) == event(0)
