"""Loading at intervals, on demand, and after failures, with a controllable loader."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from headrace.adapters.engine.load_loop import LoadLoop, cooldown_s
from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.ports.event_log import LogChunk, LogOffset

pytestmark = pytest.mark.asyncio

QUERY_WAIT_MS = 5_000
A_BUG = ValueError("a bug")
MEMORY_RETURNED = -1
"""Among the loaded offsets: the memory of a load was returned."""


class Log:
    """A `LogReader` that implements only what the load loop calls."""

    def __init__(self) -> None:
        self.end = 0
        self.is_unreadable: Sequence[str] = ()

    def durable_offsets(self) -> Mapping[str, LogOffset]:
        return {"log": LogOffset(0, self.end)}

    def unreadable(self) -> Sequence[str]:
        return self.is_unreadable

    def newest_segment(self, log: str) -> int:
        raise NotImplementedError

    def size_between(self, log: str, *, after: LogOffset, until: LogOffset) -> int:
        raise NotImplementedError

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        raise NotImplementedError

    def truncate_before(self, log: str, offset: LogOffset) -> None:
        raise NotImplementedError


class Loader:
    """Records the loaded offsets; waits for `may_load` and raises the errors in `failures`."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.load_duration_ms = 0
        self.loaded: list[int] = []
        self.started = threading.Event()
        self.may_load = threading.Event()
        self.may_load.set()
        self.failures: list[Exception] = []

    def load_until(self, ends: Mapping[str, LogOffset]) -> None:
        self.started.set()
        assert self.may_load.wait(30)
        self.clock.advance(self.load_duration_ms)
        if self.failures:
            raise self.failures.pop(0)
        self.loaded.append(ends["log"].offset)


class Harness:
    """A load loop that runs until the test ends, with its log and loader."""

    def __init__(self, interval_s: float, cooldown: Callable[[float], float] = cooldown_s) -> None:
        self.log = Log()
        self.clock = FixedClock(0)
        self.loader = Loader(self.clock)
        self.loop = LoadLoop(
            loader=self.loader,
            log_reader=self.log,
            interval_s=interval_s,
            query_wait_s=QUERY_WAIT_MS / 1000,
            log=get_logger(),
            cooldown=cooldown,
            clock=self.clock,
            return_memory=lambda: self.loader.loaded.append(MEMORY_RETURNED),
        )
        self.running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.running = asyncio.create_task(self.loop.run())

    async def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.running
        self.loader.may_load.set()
        self.loop.close()


@pytest_asyncio.fixture
async def on_demand() -> AsyncIterator[Harness]:
    """A load loop that loads on demand only."""
    harness = Harness(interval_s=3600)
    yield harness
    await harness.stop()


@pytest_asyncio.fixture
async def frequent() -> AsyncIterator[Harness]:
    harness = Harness(interval_s=0.06)
    yield harness
    await harness.stop()


async def until_loaded(harness: Harness, end: int) -> None:
    async with asyncio.timeout(30):
        while end not in harness.loader.loaded:  # noqa: ASYNC110 - it sends no event
            await asyncio.sleep(0.005)


async def test_durable_records_are_loaded_automatically(frequent: Harness) -> None:
    frequent.start()
    for end in (10, 20, 30):
        frequent.log.end = end
        await until_loaded(frequent, end)


async def test_load_longer_than_the_interval_is_followed_immediately() -> None:
    harness = Harness(interval_s=3600, cooldown=lambda _: 0)
    harness.loader.load_duration_ms = 3_600_000
    harness.loader.may_load.clear()
    harness.start()
    await asyncio.to_thread(harness.loader.started.wait, 30)
    harness.log.end = 10  # the running load has already read the offsets
    harness.loader.may_load.set()
    await until_loaded(harness, 10)
    await harness.stop()


async def test_memory_is_returned_once_when_a_short_load_follows_a_long_one(
    on_demand: Harness,
) -> None:
    on_demand.start()
    for end, load_duration_ms in ((1, 0), (2, 1000), (3, 1000), (4, 0), (5, 0)):
        on_demand.log.end = end
        on_demand.loader.load_duration_ms = load_duration_ms
        await on_demand.loop.barrier()
    loaded = [end for end in on_demand.loader.loaded if end]  # the first load may come before all
    assert loaded == [1, 2, 3, 4, MEMORY_RETURNED, 5]


async def test_a_barrier_waits_until_all_that_was_durable_is_loaded(on_demand: Harness) -> None:
    on_demand.start()
    for end in (10, 20):
        on_demand.log.end = end
        await on_demand.loop.barrier()
        assert on_demand.loader.loaded[-1] == end


async def test_nothing_is_loaded_without_new_records(on_demand: Harness) -> None:
    on_demand.start()
    for _ in range(3):
        await on_demand.loop.barrier()
    assert on_demand.loader.loaded == [0]


async def test_barriers_during_a_load_share_the_next_one(on_demand: Harness) -> None:
    on_demand.loader.may_load.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.log.end = 10  # the running load has already read the offsets
    barriers = [asyncio.create_task(on_demand.loop.barrier()) for _ in range(5)]
    await asyncio.sleep(0)
    on_demand.loader.may_load.set()
    await asyncio.gather(*barriers)
    assert on_demand.loader.loaded == [0, 10]


async def test_a_barrier_with_nothing_to_load_skips_the_cooldown() -> None:
    harness = Harness(interval_s=3600, cooldown=lambda _: 3600)
    harness.start()
    await harness.loop.barrier()
    for _ in range(3):
        await harness.loop.barrier()
    harness.log.end = 10
    late = asyncio.create_task(harness.loop.barrier())
    await asyncio.sleep(0.05)
    assert (harness.loader.loaded, late.done()) == ([0], False)
    late.cancel()
    await harness.stop()


async def test_a_barrier_during_the_cooldown_is_served_after_it() -> None:
    harness = Harness(interval_s=3600, cooldown=lambda _: 0.05)
    harness.start()
    for end in (10, 20, 30):
        harness.log.end = end
        await harness.loop.barrier()
    assert harness.loader.loaded[-1] == 30
    await harness.stop()


async def test_a_cancelled_barrier_does_not_affect_others(on_demand: Harness) -> None:
    on_demand.loader.may_load.clear()
    on_demand.start()
    cancelled_barrier, stays = (asyncio.create_task(on_demand.loop.barrier()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled_barrier.cancel()
    on_demand.loader.may_load.set()
    await stays
    assert cancelled_barrier.cancelled()


@pytest.mark.parametrize(
    ("error", "message", "logged"),
    [
        (
            StoreUnavailable("the disk is full"),
            "earlier events cannot be stored now: the disk is full",
            {"reason": "the disk is full"},
        ),
        (A_BUG, "earlier events cannot be stored now", {"exc_info": A_BUG}),
    ],
    ids=["passing", "bug"],
)
async def test_a_failure_is_reported_and_loading_continues(
    error: Exception, message: str, logged: Mapping[str, object], on_demand: Harness
) -> None:
    on_demand.loader.failures = [error, error]
    with capture_logs() as lines:
        barrier = asyncio.create_task(on_demand.loop.barrier())
        await asyncio.sleep(0)
        on_demand.start()
        with pytest.raises(StoreUnavailable, match=f"^{message}$"):
            await barrier
        assert not on_demand.loop.is_caught_up
        await until_loaded(on_demand, 0)
    assert lines == [{"event": "load_failed", "log_level": "error", **logged}] * 2
    assert on_demand.loop.is_caught_up


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (StoreUnavailable("the disk is full"), {"reason": "the disk is full"}),
        (A_BUG, {"exc_info": A_BUG}),
    ],
    ids=["passing", "bug"],
)
async def test_a_failure_before_exclusive_work_is_logged_in_the_same_way(
    error: Exception, logged: Mapping[str, object], on_demand: Harness
) -> None:
    on_demand.loader.failures = [error]
    with capture_logs() as lines, pytest.raises(StoreUnavailable, match="cannot be stored now"):
        await on_demand.loop.run_loaded(lambda load_all: load_all())
    assert lines == [{"event": "load_failed", "log_level": "error", **logged}]


async def test_the_store_is_not_current_before_the_first_load(on_demand: Harness) -> None:
    on_demand.loader.may_load.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    assert not on_demand.loop.is_caught_up
    on_demand.loader.may_load.set()
    await on_demand.loop.barrier()
    assert on_demand.loop.is_caught_up


async def test_the_store_is_not_current_while_a_load_takes_longer_than_queries_wait(
    on_demand: Harness,
) -> None:
    on_demand.start()
    await on_demand.loop.barrier()
    on_demand.loader.started.clear()
    on_demand.loader.may_load.clear()
    on_demand.log.end = 10
    barrier = asyncio.create_task(on_demand.loop.barrier())
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.clock.advance(QUERY_WAIT_MS)
    assert on_demand.loop.is_caught_up
    on_demand.clock.advance(1)
    assert not on_demand.loop.is_caught_up
    on_demand.loader.may_load.set()
    await barrier
    assert on_demand.loop.is_caught_up


async def test_finishing_waits_for_the_running_load_and_loads_the_rest(on_demand: Harness) -> None:
    on_demand.loader.may_load.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.log.end = 10
    assert on_demand.running is not None
    on_demand.running.cancel()
    await asyncio.sleep(0)
    on_demand.loader.may_load.set()
    assert await on_demand.loop.finish(timeout_s=30)
    assert on_demand.loader.loaded == [0, 10]


async def test_finishing_gives_up_in_time(on_demand: Harness) -> None:
    on_demand.loader.may_load.clear()
    assert not await on_demand.loop.finish(timeout_s=0.05)


async def test_what_is_loaded_is_not_current_while_a_log_cannot_be_read(on_demand: Harness) -> None:
    on_demand.log.end = 10
    on_demand.start()
    await on_demand.loop.barrier()
    assert on_demand.loop.is_caught_up
    on_demand.log.is_unreadable = ("worker-0",)
    assert not on_demand.loop.is_caught_up
    await on_demand.loop.barrier()


async def test_a_complete_barrier_fails_while_a_log_cannot_be_read(on_demand: Harness) -> None:
    on_demand.log.is_unreadable = ("worker-0", "worker-1")
    on_demand.start()
    for end in (10, 10, 20):
        on_demand.log.end = end
        await on_demand.loop.barrier()
        with pytest.raises(StoreUnavailable, match=r"in the log worker-0, worker-1$"):
            await on_demand.loop.complete_barrier()
    on_demand.log.is_unreadable = ()
    await on_demand.loop.complete_barrier()


async def test_a_complete_barrier_fails_when_the_log_is_readable_only_after_the_load(
    on_demand: Harness,
) -> None:
    on_demand.log.is_unreadable = ("worker-0",)
    on_demand.loader.may_load.clear()
    barrier = asyncio.create_task(on_demand.loop.complete_barrier())
    await asyncio.sleep(0)
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.log.is_unreadable = ()
    on_demand.loader.may_load.set()
    with pytest.raises(StoreUnavailable, match=r"in the log worker-0$"):
        await barrier
    assert not on_demand.loop.is_caught_up
    await on_demand.loop.complete_barrier()
    assert on_demand.loop.is_caught_up


@pytest.mark.parametrize(
    ("load_s", "spacing"),
    [(0.001, 0.02), (0.03, 0.03), (2.0, 0.05)],
    ids=["short", "usual", "of a backlog"],
)
async def test_on_demand_loads_use_at_most_half_of_the_time(load_s: float, spacing: float) -> None:
    assert cooldown_s(load_s) == spacing
