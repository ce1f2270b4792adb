"""Loading at intervals, on demand, and through failures, with a loader that is told what to do."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from headrace.adapters.engine.load_loop import LoadLoop, spacing_s
from headrace.base.clock import FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import get_logger
from headrace.ports.event_log import LogChunk, LogPosition

pytestmark = pytest.mark.asyncio


class Log:
    """A log reader of which only the ends are asked."""

    def __init__(self) -> None:
        self.end = 0
        self.cannot_be_read: Sequence[str] = ()

    def durable_ends(self) -> Mapping[str, LogPosition]:
        return {"log": LogPosition(0, self.end)}

    def unreadable(self) -> Sequence[str]:
        return self.cannot_be_read

    def bytes_between(self, log: str, *, after: LogPosition, until: LogPosition) -> int:
        raise NotImplementedError

    def read(self, log: str, *, after: LogPosition, until: LogPosition, max_bytes: int) -> LogChunk:
        raise NotImplementedError

    def remove_before(self, log: str, position: LogPosition) -> None:
        raise NotImplementedError


class Loader:
    """Notes how far it was told to load; waits while it is held, fails while it is broken."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.takes_ms = 0
        self.loaded: list[int] = []
        self.started = threading.Event()
        self.held = threading.Event()
        self.held.set()
        self.failures: list[Exception] = []

    def load_until(self, ends: Mapping[str, LogPosition]) -> None:
        self.started.set()
        assert self.held.wait(30)
        self.clock.advance(self.takes_ms)
        if self.failures:
            raise self.failures.pop(0)
        self.loaded.append(ends["log"].offset)


class Case:
    """A loop with its log and loader, running until the test ends."""

    def __init__(self, interval_s: float, rest_s: Callable[[float], float] = spacing_s) -> None:
        self.log = Log()
        clock = FixedClock(0)
        self.loader = Loader(clock)
        self.loop = LoadLoop(
            loader=self.loader,
            log_reader=self.log,
            interval_s=interval_s,
            log=get_logger(),
            rest_s=rest_s,
            clock=clock,
        )
        self.running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.running = asyncio.create_task(self.loop.run())

    async def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.running
        self.loader.held.set()
        self.loop.close()


@pytest_asyncio.fixture
async def on_demand() -> AsyncIterator[Case]:
    """A loop that loads only when it is asked."""
    case = Case(interval_s=3600)
    yield case
    await case.stop()


@pytest_asyncio.fixture
async def often() -> AsyncIterator[Case]:
    case = Case(interval_s=0.06)
    yield case
    await case.stop()


async def until_loaded(case: Case, end: int) -> None:
    async with asyncio.timeout(30):
        while case.loader.loaded[-1:] != [end]:  # noqa: ASYNC110 - it cannot tell
            await asyncio.sleep(0.005)


async def test_what_is_durable_is_loaded_without_being_asked(often: Case) -> None:
    often.start()
    for end in (10, 20, 30):
        often.log.end = end
        await until_loaded(often, end)


async def test_after_a_load_that_took_the_whole_interval_the_next_one_does_not_wait() -> None:
    case = Case(interval_s=3600, rest_s=lambda _: 0)
    case.loader.takes_ms = 3_600_000
    case.loader.held.clear()
    case.start()
    await asyncio.to_thread(case.loader.started.wait, 30)
    case.log.end = 10  # the running load has looked before
    case.loader.held.set()
    await until_loaded(case, 10)
    await case.stop()


async def test_a_barrier_waits_until_all_that_was_durable_is_loaded(on_demand: Case) -> None:
    on_demand.start()
    for end in (10, 20):
        on_demand.log.end = end
        await on_demand.loop.barrier()
        assert on_demand.loader.loaded[-1] == end


async def test_where_nothing_is_new_nothing_is_loaded(on_demand: Case) -> None:
    on_demand.start()
    for _ in range(3):
        await on_demand.loop.barrier()
    assert on_demand.loader.loaded == [0]


async def test_barriers_that_come_while_a_load_runs_share_the_next_one(on_demand: Case) -> None:
    on_demand.loader.held.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.log.end = 10  # the running load has looked before
    barriers = [asyncio.create_task(on_demand.loop.barrier()) for _ in range(5)]
    await asyncio.sleep(0)
    on_demand.loader.held.set()
    await asyncio.gather(*barriers)
    assert on_demand.loader.loaded == [0, 10]


async def test_a_barrier_with_nothing_to_load_does_not_wait_for_the_rest_after_a_load() -> None:
    case = Case(interval_s=3600, rest_s=lambda _: 3600)
    case.start()
    await case.loop.barrier()
    for _ in range(3):
        await case.loop.barrier()
    case.log.end = 10
    late = asyncio.create_task(case.loop.barrier())
    await asyncio.sleep(0.05)
    assert (case.loader.loaded, late.done()) == ([0], False)
    late.cancel()
    await case.stop()


async def test_a_barrier_that_comes_within_the_rest_is_served_after_it() -> None:
    case = Case(interval_s=3600, rest_s=lambda _: 0.05)
    case.start()
    for end in (10, 20, 30):
        case.log.end = end
        await case.loop.barrier()
    assert case.loader.loaded[-1] == 30
    await case.stop()


async def test_a_barrier_whose_caller_goes_away_disturbs_no_other(on_demand: Case) -> None:
    on_demand.loader.held.clear()
    on_demand.start()
    gone, stays = (asyncio.create_task(on_demand.loop.barrier()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    on_demand.loader.held.set()
    await stays
    assert gone.cancelled()


@pytest.mark.parametrize(
    "error", [StoreUnavailable("the disk is full"), ValueError("a bug")], ids=["passing", "bug"]
)
async def test_a_failure_is_told_and_loading_goes_on(error: Exception, on_demand: Case) -> None:
    on_demand.loader.failures = [error, error]
    with capture_logs() as lines:
        barrier = asyncio.create_task(on_demand.loop.barrier())
        await asyncio.sleep(0)
        on_demand.start()
        with pytest.raises(StoreUnavailable, match="cannot be stored now"):
            await barrier
        assert not on_demand.loop.is_current
        await until_loaded(on_demand, 0)
    assert [(line["event"], line["exc_info"]) for line in lines] == [("load_failed", error)] * 2
    assert on_demand.loop.is_current


async def test_the_store_is_not_current_before_the_first_load(on_demand: Case) -> None:
    on_demand.loader.held.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    assert not on_demand.loop.is_current
    on_demand.loader.held.set()
    await on_demand.loop.barrier()
    assert on_demand.loop.is_current


async def test_finishing_waits_for_the_running_load_and_loads_the_rest(on_demand: Case) -> None:
    on_demand.loader.held.clear()
    on_demand.start()
    await asyncio.to_thread(on_demand.loader.started.wait, 30)
    on_demand.log.end = 10
    assert on_demand.running is not None
    on_demand.running.cancel()
    await asyncio.sleep(0)
    on_demand.loader.held.set()
    assert await on_demand.loop.finish(timeout_s=30)
    assert on_demand.loader.loaded == [0, 10]


async def test_finishing_gives_up_in_time(on_demand: Case) -> None:
    on_demand.loader.held.clear()
    assert not await on_demand.loop.finish(timeout_s=0.05)


async def test_what_is_loaded_is_not_current_while_a_log_cannot_be_read(on_demand: Case) -> None:
    on_demand.log.end = 10
    on_demand.start()
    await on_demand.loop.barrier()
    assert on_demand.loop.is_current
    on_demand.log.cannot_be_read = ("worker-0",)
    assert not on_demand.loop.is_current
    await on_demand.loop.barrier()


@pytest.mark.parametrize(
    ("load_s", "spacing"),
    [(0.001, 0.02), (0.03, 0.03), (2.0, 0.05)],
    ids=["short", "usual", "of a backlog"],
)
async def test_loads_on_demand_leave_the_loader_free_for_half_of_the_time(
    load_s: float, spacing: float
) -> None:
    assert spacing_s(load_s) == spacing
