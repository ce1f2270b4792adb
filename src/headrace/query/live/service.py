"""The use case of live streams: many streams of a worker share one follower of each website."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final

from headrace.base.clock import Clock
from headrace.base.errors import Unavailable
from headrace.formats.event_stream import COMMENT, encode_position
from headrace.model.tenancy import WebsiteId
from headrace.ports.live import LiveSource
from headrace.query.live.feed import Feed, parse_position

COMMENT_S: Final = 15.0
"""A stream without items has a comment this often, so that proxies keep it."""

CHECK_S: Final = 1.0
"""How often a stream looks whether its caller may still read."""

_RETRY_S: Final = 1.0


class _Followed:
    """A feed, the task that reads it, and the number of its streams."""

    def __init__(self) -> None:
        self.feed = Feed()
        self.streams = 0
        self.tasks: tuple[asyncio.Task[None], ...] = ()

    def wake_at_end(self, _: asyncio.Task[None]) -> None:
        """Wake all streams: a task has failed, or its last stream has ended."""
        self.feed.started.set()
        self.feed.wake()

    def check(self) -> None:
        """Raise the error with which a task has ended."""
        for task in self.tasks:
            if task.done():
                task.result()


class LiveService:
    """Streams the items of websites as server-sent events; for one event loop and many tasks."""

    def __init__(self, source: LiveSource, *, clock: Clock, check_s: float = CHECK_S) -> None:
        self._source = source
        self._clock = clock
        self._check_s = check_s
        self._followed: dict[WebsiteId, _Followed] = {}
        self._is_closing = False

    def count_stream(self, caller: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Count a stream of a caller; see `LiveSource.count_stream`."""
        return self._source.count_stream(caller)

    async def stream(
        self, website_id: WebsiteId, last_id: str, may_read: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Return the events from now on, or those after the event `last_id`.

        A client that is slow, or comes back late, gets an event `missed` in the place of those that
        are not kept any more. Ends soon after the caller's right to read. Raises what the source
        raises, but for `Unavailable`.
        """
        async with self._following(website_id) as followed:
            followed.check()
            feed = followed.feed
            position = parse_position(last_id) if last_id else feed.end
            # The client knows at once that the stream is open, and where a new one goes on.
            yield COMMENT if last_id else encode_position(position.as_id())
            commented_s = checked_s = self._clock.monotonic_s()
            while not self._is_closing:
                now_s = self._clock.monotonic_s()
                if now_s - checked_s >= self._check_s:
                    checked_s = now_s
                    if not may_read():
                        return
                if position != feed.end:
                    events, position = feed.since(position), feed.end
                    yield events
                    commented_s = self._clock.monotonic_s()
                    continue  # more may have come while the client was slow
                if now_s - commented_s >= COMMENT_S:
                    yield COMMENT
                    commented_s = now_s
                followed.check()
                await feed.wait()

    def close(self) -> None:
        """End all streams."""
        self._is_closing = True
        for followed in self._followed.values():
            followed.feed.started.set()
            followed.feed.wake()

    @contextlib.asynccontextmanager
    async def _following(self, website_id: WebsiteId) -> AsyncGenerator[_Followed]:
        followed = self._followed.get(website_id)
        if followed is None:
            followed = self._followed[website_id] = _Followed()
            followed.tasks = (
                asyncio.create_task(self._follow(website_id, followed.feed)),
                asyncio.create_task(self._tick(followed.feed)),
            )
            for task in followed.tasks:
                task.add_done_callback(followed.wake_at_end)
        followed.streams += 1
        try:
            await followed.feed.started.wait()
            yield followed
        finally:
            followed.streams -= 1
            if not followed.streams:
                del self._followed[website_id]
                for task in followed.tasks:
                    task.cancel()

    async def _follow(self, website_id: WebsiteId, feed: Feed) -> None:
        while True:
            try:
                found = await self._source.follow(website_id, feed.end.epoch, feed.end.number)
            except Unavailable:  # the engine process starts again
                await asyncio.sleep(_RETRY_S)
            else:
                feed.extend(found)

    async def _tick(self, feed: Feed) -> None:
        """Wake all streams, so that none needs a timer of its own."""
        while True:
            await asyncio.sleep(self._check_s)
            feed.wake()
