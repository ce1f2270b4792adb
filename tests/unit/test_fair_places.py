"""Turns of websites, with selects that hold their places until they are told to end."""

import asyncio

import pytest

from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces, PlaceBounds
from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import Metrics

pytestmark = pytest.mark.asyncio


class Selects:
    """Selects by name, such as `a1`: the first of website `a`."""

    def __init__(
        self, places: int, *, max_waiting: int = 100, max_waiting_of_website: int = 100
    ) -> None:
        self.metrics = Metrics()
        self._places = FairPlaces(
            PlaceBounds(places, max_waiting, max_waiting_of_website), metrics=self.metrics
        )
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.begun: list[str] = []

    async def ask(self, *names: str) -> None:
        """Ask for places, in this order."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._select(name))
            await _settled()

    async def end(self, *names: str) -> list[str]:
        """End selects; return who got the places."""
        before = len(self.begun)
        for name in names:
            self.ends[name].set()
        await _settled()
        return self.begun[before:]

    def figures(self) -> tuple[float, float]:
        """Return how many run and wait, as the metrics tell."""
        lines = self.metrics.render().decode().splitlines()
        values = dict(line.split(" ") for line in lines if not line.startswith("#"))
        return (
            float(values["headrace_selects_running"]),
            float(values["headrace_selects_waiting"]),
        )

    async def _select(self, name: str) -> None:
        async with self._places.held(name[0]):
            self.begun.append(name)
            await self.ends[name].wait()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_runs_or_waits_at_the_start() -> None:
    assert Selects(1).figures() == (0, 0)


async def test_website_of_one_select_does_not_wait_behind_the_fifty_of_another() -> None:
    selects = Selects(3)
    await selects.ask(*(f"a{number}" for number in range(50)), "b0")
    assert selects.begun == ["a0", "a1", "b0"]


async def test_last_place_is_kept_for_a_website_that_holds_none() -> None:
    selects = Selects(4)
    await selects.ask("a0", "a1", "a2", "a3")
    assert selects.begun == ["a0", "a1", "a2"]
    await selects.ask("b0", "b1", "c0")
    assert selects.begun == ["a0", "a1", "a2", "b0"]
    assert await selects.end("a0") == ["c0"]
    assert await selects.end("a1") == []
    assert await selects.end("b0") == ["b1"]


async def test_websites_take_turns_where_there_is_one_place() -> None:
    selects = Selects(1)
    await selects.ask("a0", "a1", "a2", "b0", "b1", "c0")
    for _ in range(5):
        await selects.end(selects.begun[-1])
    assert selects.begun == ["a0", "a1", "b0", "c0", "a2", "b1"]


async def test_website_that_holds_fewer_places_is_next() -> None:
    selects = Selects(5)
    await selects.ask("a0", "a1", "a2", "b0", "c0")
    await selects.ask("a3", "b1")
    assert await selects.end("c0") == []  # the last free one is kept
    assert await selects.end("a0") == ["b1"]
    assert await selects.end("b0") == ["a3"]


@pytest.mark.parametrize(
    ("max_waiting", "max_waiting_of_website", "refused"),
    [(100, 2, ["a3", "b2"]), (2, 100, ["a2", "a3", "b1", "b2"])],
    ids=["of one website", "of all"],
)
async def test_last_of_the_website_that_waits_most_is_turned_away_where_too_many_wait(
    max_waiting: int, max_waiting_of_website: int, refused: list[str]
) -> None:
    selects = Selects(1, max_waiting=max_waiting, max_waiting_of_website=max_waiting_of_website)
    await selects.ask("a0", "a1", "a2", "a3", "b0", "b1", "b2")
    done = {name: task.exception() for name, task in selects.tasks.items() if task.done()}
    assert list(done) == refused
    assert all(isinstance(error, StoreUnavailable) for error in done.values())
    assert selects.figures() == (1, 6 - len(refused))


async def test_newcomer_finds_room_where_several_websites_have_filled_the_queue() -> None:
    selects = Selects(2, max_waiting=6, max_waiting_of_website=3)
    await selects.ask("a0", "b0", *(f"{name}{number}" for number in (1, 2, 3) for name in "ab"))
    await selects.ask("c0")
    turned_away = [name for name, task in selects.tasks.items() if task.done()]
    assert turned_away == ["a3"]
    assert selects.figures() == (2, 6)
    assert await selects.end("a0", "b0") == ["a1", "b1"]
    assert await selects.end("a1") == ["c0"]


async def test_who_goes_away_while_waiting_leaves_the_queue() -> None:
    selects = Selects(1)
    await selects.ask("a0", "a1", "a2")
    selects.tasks["a1"].cancel()
    assert await selects.end("a0") == ["a2"]
    assert await selects.end("a2") == []
    assert selects.figures() == (0, 0)


async def test_place_is_free_again_when_its_holder_goes_away_as_it_gets_it() -> None:
    selects = Selects(1)
    await selects.ask("a0", "a1", "a2")
    selects.ends["a0"].set()
    await asyncio.sleep(0)  # a1 has the place and does not know
    selects.tasks["a1"].cancel()
    await _settled()
    assert selects.begun == ["a0", "a2"]
    await selects.end("a2")
    assert selects.figures() == (0, 0)
