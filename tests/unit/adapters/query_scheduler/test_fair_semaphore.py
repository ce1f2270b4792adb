"""Fair scheduling across websites, with selects that keep their slots until the test ends them."""

import asyncio

import pytest

from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SlotLimits
from headrace.base.errors import StoreUnavailable
from headrace.base.metrics import Metrics

pytestmark = pytest.mark.asyncio


class Selects:
    """Selects by name, such as `a1`: the first of website `a`."""

    def __init__(
        self, slots: int, *, max_queued: int = 100, max_queued_per_website: int = 100
    ) -> None:
        self.metrics = Metrics()
        self._semaphore = FairSemaphore(
            SlotLimits(slots, max_queued, max_queued_per_website), metrics=self.metrics
        )
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.begun: list[str] = []

    async def start(self, *names: str) -> None:
        """Request slots in this order."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self.select(name))
            await _settled()

    async def end(self, *names: str) -> list[str]:
        """End selects; return the selects that then acquired a slot."""
        before = len(self.begun)
        for name in names:
            self.ends[name].set()
        await _settled()
        return self.begun[before:]

    def running_and_waiting(self) -> tuple[float, float]:
        """Return the number of running and of waiting selects, from the metrics."""
        lines = self.metrics.render().decode().splitlines()
        values = dict(line.split(" ") for line in lines if not line.startswith("#"))
        return (
            float(values["headrace_selects_running"]),
            float(values["headrace_selects_waiting"]),
        )

    async def select(self, name: str) -> None:
        """Acquire a slot and keep it until the test ends the select."""
        async with self._semaphore.acquire(name[0]):
            self.begun.append(name)
            await self.ends[name].wait()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_runs_or_waits_at_the_start() -> None:
    assert Selects(1).running_and_waiting() == (0, 0)


async def test_light_website_does_not_queue_behind_fifty_selects_of_another() -> None:
    selects = Selects(3)
    await selects.start(*(f"a{number}" for number in range(50)), "b0")
    assert selects.begun == ["a0", "a1", "b0"]


async def test_last_slot_is_reserved_for_a_website_without_slots() -> None:
    selects = Selects(4)
    await selects.start("a0", "a1", "a2", "a3")
    assert selects.begun == ["a0", "a1", "a2"]
    await selects.start("b0", "b1", "c0")
    assert selects.begun == ["a0", "a1", "a2", "b0"]
    assert await selects.end("a0") == ["c0"]
    assert await selects.end("a1") == []
    assert await selects.end("b0") == ["b1"]


async def test_websites_alternate_on_a_single_slot() -> None:
    selects = Selects(1)
    await selects.start("a0", "a1", "a2", "b0", "b1", "c0")
    for _ in range(5):
        await selects.end(selects.begun[-1])
    assert selects.begun == ["a0", "a1", "b0", "c0", "a2", "b1"]


async def test_website_with_fewer_slots_is_next() -> None:
    selects = Selects(5)
    await selects.start("a0", "a1", "a2", "b0", "c0")
    await selects.start("a3", "b1")
    assert await selects.end("c0") == []  # the last free slot is kept
    assert await selects.end("a0") == ["b1"]
    assert await selects.end("b0") == ["a3"]


@pytest.mark.parametrize(
    ("max_queued", "max_queued_per_website", "rejected"),
    [(100, 2, ["a3", "b2"]), (2, 100, ["a2", "a3", "b1", "b2"])],
    ids=["of one website", "of all"],
)
async def test_full_queue_sheds_the_last_of_the_longest_website_queue(
    max_queued: int, max_queued_per_website: int, rejected: list[str]
) -> None:
    selects = Selects(1, max_queued=max_queued, max_queued_per_website=max_queued_per_website)
    await selects.start("a0", "a1", "a2", "a3", "b0", "b1", "b2")
    done = {name: task.exception() for name, task in selects.tasks.items() if task.done()}
    assert list(done) == rejected
    assert all(isinstance(error, StoreUnavailable) for error in done.values())
    assert selects.running_and_waiting() == (1, 6 - len(rejected))


async def test_new_website_is_queued_when_several_websites_filled_the_queue() -> None:
    selects = Selects(2, max_queued=6, max_queued_per_website=3)
    await selects.start("a0", "b0", *(f"{name}{number}" for number in (1, 2, 3) for name in "ab"))
    await selects.start("c0")
    shed = [name for name, task in selects.tasks.items() if task.done()]
    assert shed == ["a3"]
    assert selects.running_and_waiting() == (2, 6)
    assert await selects.end("a0", "b0") == ["a1", "b1"]
    assert await selects.end("a1") == ["c0"]


async def test_cancelled_waiter_leaves_the_queue() -> None:
    selects = Selects(1)
    await selects.start("a0", "a1", "a2")
    selects.tasks["a1"].cancel()
    assert await selects.end("a0") == ["a2"]
    assert await selects.end("a2") == []
    assert selects.running_and_waiting() == (0, 0)


async def test_slot_is_released_when_its_waiter_is_cancelled_on_acquire() -> None:
    selects = Selects(1)
    await selects.start("a0", "a1", "a2")
    selects.ends["a0"].set()
    await asyncio.sleep(0)  # a1 owns the slot, but its task has not resumed
    selects.tasks["a1"].cancel()
    await _settled()
    assert selects.begun == ["a0", "a2"]
    await selects.end("a2")
    assert selects.running_and_waiting() == (0, 0)


async def test_select_that_is_shed_and_cancelled_at_once_releases_no_slot() -> None:
    selects = Selects(1, max_queued=2)
    await selects.start("a0", "a1", "a2")
    selects.ends["b0"] = asyncio.Event()
    newcomer = asyncio.create_task(selects.select("b0"))
    await asyncio.sleep(0)  # b0 has taken the place of a2, whose task has not resumed
    selects.tasks["a2"].cancel()
    await _settled()
    assert selects.tasks["a2"].cancelled()
    assert selects.begun == ["a0"]
    assert selects.running_and_waiting() == (1, 2)
    assert await selects.end("a0") == ["a1"]
    assert await selects.end("a1") == ["b0"]
    assert await selects.end("b0") == []
    assert selects.running_and_waiting() == (0, 0)
    assert newcomer.done()
