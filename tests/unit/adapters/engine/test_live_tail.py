"""The newest items of watched websites, over a reader whose rows the test sets."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from headrace.adapters.engine.live_tail import LiveTail, RunExclusive, TailedLoader
from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.ports.event_log import LogOffset
from headrace.ports.live import KEPT_ITEMS, MAX_STREAMS_PER_CALLER, LiveItem, LiveItems

pytestmark = pytest.mark.asyncio

ENDS = {"log": LogOffset(0, 7)}


class Reader:
    """Returns the rows that a test sets, once; records what it is called for."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, bytes]] = []
        self.is_complete = True
        self.error: Exception | None = None
        self.watched: list[tuple[str, ...]] = []
        self.calls: list[str] = []

    def watch(self, websites: Collection[str]) -> None:
        self.watched.append(tuple(websites))

    def read(self, ends: Mapping[str, LogOffset]) -> tuple[Sequence[tuple[str, bytes]], bool]:
        assert ends == ENDS
        self.calls.append("read")
        if self.error is not None:
            raise self.error
        rows, self.rows = self.rows, []
        return rows, self.is_complete

    def pass_over(self, ends: Mapping[str, LogOffset]) -> None:
        assert ends == ENDS
        self.calls.append("pass over")
        self.error = None

    def forget_loaded(self) -> None:
        self.calls.append("forget")


class Loader:
    """Records that it is called, or raises."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.error: Exception | None = None

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        assert ends == ENDS
        self._reader.calls.append("load")
        if self.error is not None:
            raise self.error
        return "loaded"


async def run_exclusive(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


class Harness:
    """A tail that looks at the log every millisecond."""

    def __init__(self, run_exclusive: RunExclusive = run_exclusive) -> None:
        self.reader = Reader()
        self.loader = Loader(self.reader)
        self.tailed = TailedLoader(self.loader, self.reader, log=get_logger())
        self.clock = FixedClock(0)
        epochs = itertools.count(1)
        self.tail = LiveTail(
            self.tailed,
            run_exclusive=run_exclusive,
            durable_offsets=lambda: ENDS,
            new_epoch=lambda: f"e{next(epochs)}",
            clock=self.clock,
            poll_s=0.001,
            linger_s=60,
        )


def events(*bodies: bytes) -> tuple[LiveItem, ...]:
    return tuple(LiveItem("event", body) for body in bodies)


async def test_a_follower_gets_what_is_kept_and_waits_for_the_next_row() -> None:
    harness = Harness()
    assert await harness.tail.follow("a", "", 0) == LiveItems("e1", 0, ())
    harness.reader.rows = [("a", b"1"), ("b", b"2"), ("a", b"3")]
    assert await harness.tail.follow("a", "e1", 0) == LiveItems("e1", 0, events(b"1", b"3"))
    assert await harness.tail.follow("a", "e1", 1) == LiveItems("e1", 1, events(b"3"))
    assert await harness.tail.follow("a", "other", 9) == LiveItems("e1", 0, events(b"1", b"3"))
    await harness.tail.close()


async def test_a_website_is_watched_although_its_first_follower_has_left() -> None:
    """The first one leaves while the thread of the loader is busy; the second one waits for it."""
    loop = asyncio.get_running_loop()
    is_free = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(is_free.wait, 10)
        harness = Harness(lambda work: loop.run_in_executor(thread, work))
        first, second = (asyncio.create_task(harness.tail.follow("a", "", 0)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.wait((first,))
        assert not second.done()
        is_free.set()
        assert await second == LiveItems("e1", 0, ())
        assert harness.reader.watched == [("a",)]
        await harness.tail.close()


async def test_a_website_that_could_not_be_watched_is_tried_again() -> None:
    failures = [RuntimeError("the load loop is closed")]

    async def fail_once(work: Callable[[], None]) -> None:
        if failures:
            raise failures.pop()
        await run_exclusive(work)

    harness = Harness(fail_once)
    with pytest.raises(RuntimeError, match="closed"):
        await harness.tail.follow("a", "", 0)
    assert await harness.tail.follow("a", "", 0) == LiveItems("e2", 0, ())
    assert harness.reader.watched == [("a",)]
    await harness.tail.close()


@pytest.mark.parametrize(
    "failure",
    [OSError("too many open files"), StoreUnavailable("the ledger is full")],
    ids=["log", "ledger"],
)
async def test_a_look_at_the_logs_that_fails_is_not_the_last_one(failure: Exception) -> None:
    failures: list[Exception] = []

    async def fail_once(work: Callable[[], None]) -> None:
        if failures:
            raise failures.pop()
        await run_exclusive(work)

    harness = Harness(fail_once)
    await harness.tail.follow("a", "", 0)
    failures.append(failure)
    async with asyncio.timeout(10):
        while failures:  # noqa: ASYNC110 - the tail notifies nobody
            await asyncio.sleep(0.001)

    harness.reader.rows = [("a", b"1")]

    assert await harness.tail.follow("a", "e1", 0) == LiveItems("e1", 0, events(b"1"))
    await harness.tail.close()


async def test_nothing_is_read_while_nobody_watches() -> None:
    harness = Harness()
    harness.tailed.load_until(ENDS)
    await asyncio.sleep(0.02)
    assert harness.reader.calls == ["read", "load", "forget"]
    assert harness.reader.watched == []


async def test_only_the_newest_items_are_kept() -> None:
    harness = Harness()
    await harness.tail.follow("a", "", 0)
    harness.reader.rows = [("a", b"%d" % number) for number in range(KEPT_ITEMS + 2)]
    kept = await harness.tail.follow("a", "e1", 0)
    assert (kept.first, len(kept.items), kept.items[0]) == (2, KEPT_ITEMS, LiveItem("event", b"2"))
    await harness.tail.close()


async def test_rows_that_were_passed_over_begin_another_epoch() -> None:
    harness = Harness()
    await harness.tail.follow("a", "", 0)
    harness.reader.is_complete = False
    found = await harness.tail.follow("a", "e1", 0)
    assert found.epoch != "e1"
    await harness.tail.close()


async def test_rows_that_can_never_be_read_are_passed_over_and_begin_another_epoch() -> None:
    harness = Harness()
    assert await harness.tail.follow("a", "", 0) == LiveItems("e1", 0, ())
    harness.reader.error = ValueError("year 292278994 is out of range")
    assert await harness.tail.follow("a", "e1", 0) == LiveItems("e2", 0, ())
    harness.reader.rows = [("a", b"1")]
    assert await harness.tail.follow("a", "e2", 0) == LiveItems("e2", 0, events(b"1"))
    assert harness.reader.calls.count("pass over") == 1
    await harness.tail.close()


async def test_items_that_were_forgotten_are_not_read_and_begin_another_epoch() -> None:
    harness = Harness()
    for website in ("a", "b"):
        await harness.tail.follow(website, "", 0)
    harness.reader.rows = [("a", b"1"), ("b", b"2")]
    await harness.tail.follow("a", "e1", 0)

    harness.tail.forget("a")

    assert await harness.tail.follow("a", "e1", 1) == LiveItems("e3", 0, ())
    assert await harness.tail.follow("b", "e2", 0) == LiveItems("e2", 0, events(b"2"))
    await harness.tail.close()


async def test_a_website_is_watched_for_a_minute_after_its_last_follower() -> None:
    harness = Harness()
    await harness.tail.follow("a", "", 0)
    harness.clock.advance(59_000)
    await asyncio.sleep(0.02)
    assert harness.reader.watched == [("a",)]
    harness.clock.advance(2_000)
    async with asyncio.timeout(10):
        while harness.reader.watched[-1] != ():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.001)
    reads = len(harness.reader.calls)
    await asyncio.sleep(0.02)
    assert len(harness.reader.calls) <= reads + 1
    assert await harness.tail.follow("a", "e1", 0) == LiveItems("e2", 0, ())
    await harness.tail.close()


async def test_each_load_is_read_first_and_a_failed_one_forgets_nothing() -> None:
    harness = Harness()
    harness.loader.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        harness.tailed.load_until(ENDS)
    assert harness.reader.calls == ["read", "load"]


@pytest.mark.parametrize(
    "error", [OSError("disk"), StoreUnavailable("ledger"), ValueError("a fault of ours")]
)
async def test_rows_that_cannot_be_read_stop_no_load(error: Exception) -> None:
    harness = Harness()
    harness.reader.error = error
    with capture_logs() as lines:
        assert harness.tailed.load_until(ENDS) == "loaded"
    assert [line["event"] for line in lines] == ["live_rows_not_read"]


async def test_an_item_is_published_where_somebody_watches() -> None:
    harness = Harness()
    item = LiveItem("refused", b"{}")
    harness.tail.publish("a", item)
    assert await harness.tail.follow("a", "", 0) == LiveItems("e1", 0, ())
    harness.tail.publish("a", item)
    assert await harness.tail.follow("a", "e1", 0) == LiveItems("e1", 0, (item,))
    await harness.tail.close()


async def test_streams_of_a_caller_are_counted_until_they_end() -> None:
    tail = Harness().tail
    with contextlib.ExitStack() as stack:
        allowed = [
            stack.enter_context(tail.count_stream("a")) for _ in range(MAX_STREAMS_PER_CALLER + 1)
        ]
        assert allowed == [True] * MAX_STREAMS_PER_CALLER + [False]
        assert stack.enter_context(tail.count_stream("b"))
    with tail.count_stream("a") as is_allowed:
        assert is_allowed
