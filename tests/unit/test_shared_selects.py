"""Which selects are run, shared, kept and ended, with runs that are told when to end."""

import asyncio
from collections.abc import Callable

import pytest

from headrace.adapters.query_scheduler.coalescing_executor import (
    NoVersions,
    SharedSelects,
    TellsVersions,
)
from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces, PlaceBounds
from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.query_scheduler.result_cache import AnswerCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.telemetry import Metrics
from headrace.ports.store import QueryGuards

pytestmark = pytest.mark.asyncio

Asked = asyncio.Task[bytes]


class Desk:
    """Answers "1", "2" and so on: the number of the run."""

    def __init__(
        self,
        *,
        places: int = 2,
        wait_timeout_s: float = 60,
        cache_bytes: int = 10**6,
        versions: TellsVersions | None = None,
    ) -> None:
        self.metrics = Metrics()
        self.versions = DataVersions()
        self.loads_at_once = asyncio.Event()
        self.loads_at_once.set()
        self.selects = SharedSelects[bytes](
            places=FairPlaces(PlaceBounds(places, 100, 100), metrics=self.metrics),
            load_barrier=self._load,
            versions=versions or self.versions,
            cache=AnswerCache(cache_bytes),
            wait_timeout_s=wait_timeout_s,
            metrics=self.metrics,
        )
        self.runs: list[QueryGuards] = []
        self.endings: list[asyncio.Future[None]] = []
        self.ended_early = 0

    async def ask(
        self, sql: str = "SELECT 1", *, website: str = "a", timeout_s: float = 60
    ) -> Asked:
        """Begin to ask, and come as far as that goes by itself."""
        question = Question(website, sql, (), QueryGuards(timeout_s, 10**9))
        asked = asyncio.create_task(self.selects.answer(question, self._run))
        await settled()
        return asked

    def end(self, number: int = -1, error: Exception | None = None) -> None:
        """Let a run end."""
        if error is None:
            self.endings[number].set_result(None)
        else:
            self.endings[number].set_exception(error)

    def sources(self) -> dict[str, float]:
        """Return how many selects were answered from where."""
        start = "headrace_selects_total{source="
        lines = self.metrics.render().decode().splitlines()
        found = (line.removeprefix(start).split("} ") for line in lines if line.startswith(start))
        return {source.strip('"'): float(count) for source, count in found}

    async def _load(self) -> None:
        await self.loads_at_once.wait()

    async def _run(self, guards: QueryGuards) -> bytes:
        self.runs.append(guards)
        self.endings.append(asyncio.get_running_loop().create_future())
        number = len(self.runs)
        try:
            await self.endings[-1]
        except asyncio.CancelledError:
            self.ended_early += 1
            raise
        return b"%d" % number


async def answers(*asked: Asked) -> list[bytes]:
    """Wait for all answers."""
    return [await one for one in asked]


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_equal_questions_under_way_share_one_run() -> None:
    desk = Desk()
    asked = [await desk.ask() for _ in range(5)]
    desk.end()
    assert await answers(*asked) == [b"1"] * 5
    assert desk.sources() == {"run": 1, "shared": 4}


async def test_other_questions_have_runs_of_their_own() -> None:
    desk = Desk(places=5)
    asked = [
        await desk.ask("SELECT 1"),
        await desk.ask("SELECT 2"),
        await desk.ask("SELECT 1", website="b"),
        await desk.ask("SELECT 1", timeout_s=61),
    ]
    for number in range(4):
        desk.end(number)
    assert await answers(*asked) == [b"1", b"2", b"3", b"4"]


async def test_run_that_began_before_rows_were_stored_is_not_shared() -> None:
    desk = Desk(places=4)
    before = await desk.ask()
    with desk.versions.changing({"a"}):
        within = await desk.ask()
    after = await desk.ask()
    for number in range(3):
        desk.end(number)
    assert await answers(before, within, after) == [b"1", b"2", b"3"]


async def test_run_that_has_not_begun_is_shared_whatever_was_stored() -> None:
    desk = Desk(places=1)
    other = await desk.ask("SELECT 2")
    before = await desk.ask()
    with desk.versions.changing({"a"}):
        within = await desk.ask()
    after = await desk.ask()
    desk.end()
    await other
    await settled()
    desk.end()
    assert await answers(before, within, after) == [b"2"] * 3


async def test_rows_of_another_website_keep_nobody_from_sharing() -> None:
    desk = Desk()
    first = await desk.ask()
    with desk.versions.changing({"b"}):
        second = await desk.ask()
    desk.end()
    assert await answers(first, second) == [b"1", b"1"]


async def test_question_shares_only_after_what_came_before_it_is_stored() -> None:
    desk = Desk(places=3)
    first = await desk.ask()
    desk.loads_at_once.clear()
    second = await desk.ask()
    with desk.versions.changing({"a"}):
        pass
    desk.loads_at_once.set()
    await settled()
    desk.end(0)
    desk.end(1)
    assert await answers(first, second) == [b"1", b"2"]


async def test_answer_is_kept_until_rows_of_its_website_are_stored() -> None:
    desk = Desk()
    asked = await desk.ask()
    desk.end()
    await asked
    with desk.versions.changing({"b"}):
        pass
    assert await (await desk.ask()) == b"1"
    with desk.versions.changing({"a"}):
        pass
    again = await desk.ask()
    desk.end()
    assert await again == b"2"
    assert desk.sources() == {"run": 2, "cached": 1}


async def test_answer_of_a_run_during_which_rows_were_stored_is_not_kept() -> None:
    desk = Desk()
    first = await desk.ask()
    with desk.versions.changing({"a"}):
        pass
    desk.end()
    await first
    second = await desk.ask()
    desk.end()
    assert await second == b"2"


@pytest.mark.parametrize(
    "make",
    [lambda: Desk(cache_bytes=0), lambda: Desk(versions=NoVersions())],
    ids=["no room", "no versions"],
)
async def test_nothing_is_kept_without_room_or_versions(make: Callable[[], Desk]) -> None:
    desk = make()
    for number in (b"1", b"2"):
        asked = await desk.ask()
        desk.end()
        assert await asked == number


@pytest.mark.parametrize("error", [QueryTooLarge("Query too large"), StoreUnavailable("closed")])
async def test_failure_is_told_to_all_who_share_and_not_kept(error: Exception) -> None:
    desk = Desk()
    asked = [await desk.ask() for _ in range(2)]
    desk.end(error=error)
    assert await asyncio.gather(*asked, return_exceptions=True) == [error, error]
    again = await desk.ask()
    desk.end()
    assert await again == b"2"


async def test_run_goes_on_for_those_who_stay_and_ends_with_the_last() -> None:
    desk = Desk()
    asked = [await desk.ask() for _ in range(3)]
    asked[0].cancel()
    asked[1].cancel()
    await settled()
    assert desk.ended_early == 0
    asked[2].cancel()
    await settled()
    assert desk.ended_early == 1


async def test_nobody_joins_a_run_that_is_being_ended() -> None:
    desk = Desk()
    gone = await desk.ask()
    gone.cancel()
    await asyncio.sleep(0)
    asked = await desk.ask()
    desk.end()
    assert await asked == b"2"


async def test_question_whose_asker_goes_away_while_waiting_is_never_run() -> None:
    desk = Desk(places=1)
    first = await desk.ask("SELECT 1")
    (await desk.ask("SELECT 2")).cancel()
    third = await desk.ask("SELECT 3")
    desk.end()
    await settled()
    desk.end()
    assert await answers(first, third) == [b"1", b"2"]


async def test_who_waits_too_long_for_a_turn_is_turned_away() -> None:
    desk = Desk(places=1, wait_timeout_s=0.02)
    first = await desk.ask("SELECT 1")
    second = await desk.ask("SELECT 2")
    with pytest.raises(StoreUnavailable, match="too many queries are running"):
        await second
    desk.end()
    assert await first == b"1"
    assert len(desk.runs) == 1


async def test_who_waits_too_long_for_loading_is_turned_away() -> None:
    desk = Desk(wait_timeout_s=0.02)
    desk.loads_at_once.clear()
    with pytest.raises(StoreUnavailable, match="still storing what came before"):
        await (await desk.ask())
    assert desk.runs == []


@pytest.mark.parametrize("is_loading", [True, False], ids=["loading", "turn"])
async def test_deadline_is_told_where_it_comes_first(is_loading: bool) -> None:
    desk = Desk(places=1)
    await desk.ask("SELECT 1")
    if is_loading:
        desk.loads_at_once.clear()
    with pytest.raises(QueryTimedOut):
        await (await desk.ask("SELECT 2", timeout_s=0.02))
    assert len(desk.runs) == 1
    await desk.selects.close()


async def test_who_comes_later_has_time_of_its_own_where_a_run_had_waited_for_its_turn() -> None:
    desk = Desk(places=1)
    other = await desk.ask("SELECT 2")
    first = await desk.ask(timeout_s=30)
    await asyncio.sleep(0.8)
    desk.end()
    await other
    await settled()
    later = await desk.ask(timeout_s=30)
    desk.end(error=QueryTimedOut("Query timed out"))
    with pytest.raises(QueryTimedOut):
        await first
    await settled()
    desk.end()
    assert await later == b"3"
    assert desk.runs[1].timeout_s < desk.runs[2].timeout_s


async def test_who_comes_later_is_not_kept_where_a_run_had_all_the_time_there_is() -> None:
    desk = Desk()
    asked = [await desk.ask(), await desk.ask()]
    desk.end(error=QueryTimedOut("Query timed out"))
    for each in asked:
        with pytest.raises(QueryTimedOut):
            await each
    assert desk.sources() == {"run": 1, "shared": 1}


async def test_deadline_ends_the_run() -> None:
    desk = Desk()
    with pytest.raises(QueryTimedOut):
        await (await desk.ask(timeout_s=0.02))
    await settled()
    assert desk.ended_early == 1


async def test_time_of_waiting_counts_for_the_deadline() -> None:
    desk = Desk(places=1)
    await desk.ask("SELECT 1")
    second = await desk.ask("SELECT 2", timeout_s=30)
    await asyncio.sleep(0.05)
    desk.end()
    await settled()
    assert 0 < desk.runs[1].timeout_s <= 30 - 0.04
    desk.end()
    assert await second == b"2"


async def test_run_may_take_as_long_as_the_last_of_those_who_share_it() -> None:
    desk = Desk(places=1)
    await desk.ask("SELECT 1")
    early = await desk.ask("SELECT 2", timeout_s=30)
    await asyncio.sleep(0.05)
    late = await desk.ask("SELECT 2", timeout_s=30)
    desk.end()
    await settled()
    assert 30 - 0.04 < desk.runs[1].timeout_s <= 30
    desk.end()
    assert await answers(early, late) == [b"2", b"2"]


async def test_closing_ends_all_runs() -> None:
    desk = Desk(places=3)
    asked = [await desk.ask(f"SELECT {number}") for number in range(5)]
    await desk.selects.close()
    await settled()
    assert all(one.done() for one in asked)
    assert desk.ended_early == 2
