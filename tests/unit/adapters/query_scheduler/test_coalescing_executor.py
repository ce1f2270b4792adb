"""Selects that run, share a run, come from the cache or are cancelled; the test ends each run."""

import asyncio
import time
from collections.abc import Callable

import pytest

from headrace.adapters.query_scheduler.coalescing_executor import (
    CoalescingExecutor,
    NoVersions,
    VersionSource,
)
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SlotLimits
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.result_cache import ResultCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.ports.store import QueryLimits

pytestmark = pytest.mark.asyncio

RunningQuery = asyncio.Task[bytes]


class Harness:
    """Returns the number of the run as its result: "1", "2" and so on."""

    def __init__(
        self,
        *,
        slots: int = 2,
        wait_timeout_s: float = 60,
        cache_bytes: int = 10**6,
        versions: VersionSource | None = None,
    ) -> None:
        self.metrics = Metrics()
        self.versions = DataVersions()
        self.can_load = asyncio.Event()
        self.can_load.set()
        self.selects = CoalescingExecutor[bytes](
            slots=FairSemaphore(SlotLimits(slots, 100, 100), metrics=self.metrics),
            load_barrier=self._load,
            versions=versions or self.versions,
            cache=ResultCache(cache_bytes),
            wait_timeout_s=wait_timeout_s,
            metrics=self.metrics,
        )
        self.runs: list[QueryLimits] = []
        self.endings: list[asyncio.Future[None]] = []
        self.cancelled_runs = 0
        self.cached: list[bool] = []

    async def begin(
        self, sql: str = "SELECT 1", *, website: str = "a", timeout_s: float = 60
    ) -> RunningQuery:
        """Start a query and wait until it blocks."""
        key = QueryKey(website, sql, (), QueryLimits(timeout_s, 10**9))
        sent_query = asyncio.create_task(self._execute(key))
        await settled()
        return sent_query

    async def _execute(self, key: QueryKey) -> bytes:
        executed = await self.selects.execute(key, self._run)
        self.cached.append(executed.cached)
        return executed.result

    def end(self, number: int = -1, error: Exception | None = None) -> None:
        """End a run, with a result or an error."""
        if error is None:
            self.endings[number].set_result(None)
        else:
            self.endings[number].set_exception(error)

    def sources(self) -> dict[str, float]:
        """Return the number of selects for each source of their results."""
        start = "headrace_selects_total{source="
        lines = self.metrics.render().decode().splitlines()
        found = (line.removeprefix(start).split("} ") for line in lines if line.startswith(start))
        return {source.strip('"'): float(count) for source, count in found}

    async def _load(self) -> None:
        await self.can_load.wait()

    async def _run(self, limits: QueryLimits) -> bytes:
        self.runs.append(limits)
        self.endings.append(asyncio.get_running_loop().create_future())
        number = len(self.runs)
        try:
            await self.endings[-1]
        except asyncio.CancelledError:
            self.cancelled_runs += 1
            raise
        return b"%d" % number


async def results(*sent_query: RunningQuery) -> list[bytes]:
    """Wait for all results."""
    return [await one for one in sent_query]


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_equal_running_queries_share_one_run() -> None:
    harness = Harness()
    sent_query = [await harness.begin() for _ in range(5)]
    harness.end()
    assert await results(*sent_query) == [b"1"] * 5
    assert harness.sources() == {"run": 1, "shared": 4}


async def test_different_queries_have_separate_runs() -> None:
    harness = Harness(slots=5)
    sent_query = [
        await harness.begin("SELECT 1"),
        await harness.begin("SELECT 2"),
        await harness.begin("SELECT 1", website="b"),
        await harness.begin("SELECT 1", timeout_s=61),
    ]
    for number in range(4):
        harness.end(number)
    assert await results(*sent_query) == [b"1", b"2", b"3", b"4"]


async def test_run_that_began_before_rows_were_stored_is_not_shared() -> None:
    harness = Harness(slots=4)
    before = await harness.begin()
    with harness.versions.rows_changing({"a"}):
        within = await harness.begin()
    after = await harness.begin()
    for number in range(3):
        harness.end(number)
    assert await results(before, within, after) == [b"1", b"2", b"3"]


async def test_queued_run_is_shared_whatever_was_stored() -> None:
    harness = Harness(slots=1)
    other = await harness.begin("SELECT 2")
    before = await harness.begin()
    with harness.versions.rows_changing({"a"}):
        within = await harness.begin()
    after = await harness.begin()
    harness.end()
    await other
    await settled()
    harness.end()
    assert await results(before, within, after) == [b"2"] * 3


async def test_rows_of_another_website_do_not_prevent_sharing() -> None:
    harness = Harness()
    first = await harness.begin()
    with harness.versions.rows_changing({"b"}):
        second = await harness.begin()
    harness.end()
    assert await results(first, second) == [b"1", b"1"]


async def test_query_joins_a_run_only_after_earlier_records_are_stored() -> None:
    harness = Harness(slots=3)
    first = await harness.begin()
    harness.can_load.clear()
    second = await harness.begin()
    with harness.versions.rows_changing({"a"}):
        pass
    harness.can_load.set()
    await settled()
    harness.end(0)
    harness.end(1)
    assert await results(first, second) == [b"1", b"2"]


async def test_result_is_cached_until_rows_of_its_website_are_stored() -> None:
    harness = Harness()
    sent_query = await harness.begin()
    harness.end()
    await sent_query
    with harness.versions.rows_changing({"b"}):
        pass
    assert await (await harness.begin()) == b"1"
    assert harness.cached == [False, True]
    with harness.versions.rows_changing({"a"}):
        pass
    again = await harness.begin()
    harness.end()
    assert await again == b"2"
    assert harness.sources() == {"run": 2, "cached": 1}


async def test_result_of_a_run_during_which_rows_were_stored_is_not_cached() -> None:
    harness = Harness()
    first = await harness.begin()
    with harness.versions.rows_changing({"a"}):
        pass
    harness.end()
    await first
    second = await harness.begin()
    harness.end()
    assert await second == b"2"


@pytest.mark.parametrize(
    "make",
    [lambda: Harness(cache_bytes=0), lambda: Harness(versions=NoVersions())],
    ids=["no room", "no versions"],
)
async def test_nothing_is_cached_without_space_or_versions(make: Callable[[], Harness]) -> None:
    harness = make()
    for number in (b"1", b"2"):
        sent_query = await harness.begin()
        harness.end()
        assert await sent_query == number


@pytest.mark.parametrize("error", [QueryTooLarge("Query too large"), StoreUnavailable("closed")])
async def test_failure_is_raised_to_all_clients_and_not_cached(error: Exception) -> None:
    harness = Harness()
    sent_query = [await harness.begin() for _ in range(2)]
    harness.end(error=error)
    assert await asyncio.gather(*sent_query, return_exceptions=True) == [error, error]
    again = await harness.begin()
    harness.end()
    assert await again == b"2"


async def test_run_continues_until_its_last_client_is_cancelled() -> None:
    harness = Harness()
    sent_query = [await harness.begin() for _ in range(3)]
    sent_query[0].cancel()
    sent_query[1].cancel()
    await settled()
    assert harness.cancelled_runs == 0
    sent_query[2].cancel()
    await settled()
    assert harness.cancelled_runs == 1


async def test_run_being_cancelled_cannot_be_joined() -> None:
    harness = Harness()
    gone = await harness.begin()
    gone.cancel()
    await asyncio.sleep(0)
    sent_query = await harness.begin()
    harness.end()
    assert await sent_query == b"2"


async def test_query_cancelled_while_queued_is_never_run() -> None:
    harness = Harness(slots=1)
    first = await harness.begin("SELECT 1")
    (await harness.begin("SELECT 2")).cancel()
    third = await harness.begin("SELECT 3")
    harness.end()
    await settled()
    harness.end()
    assert await results(first, third) == [b"1", b"2"]


async def test_query_times_out_in_the_queue() -> None:
    harness = Harness(slots=1, wait_timeout_s=0.3)
    first = await harness.begin("SELECT 1")
    second = await harness.begin("SELECT 2")
    with pytest.raises(StoreUnavailable, match="too many queries are running"):
        await second
    harness.end()
    assert await first == b"1"
    assert len(harness.runs) == 1


async def test_query_times_out_while_loading() -> None:
    harness = Harness(wait_timeout_s=0.02)
    harness.can_load.clear()
    with pytest.raises(StoreUnavailable, match="still loading earlier events"):
        await (await harness.begin())
    assert harness.runs == []


@pytest.mark.parametrize("is_loading", [True, False], ids=["loading", "turn"])
async def test_deadline_error_wins_if_it_comes_first(is_loading: bool) -> None:
    harness = Harness(slots=1)
    await harness.begin("SELECT 1")
    if is_loading:
        harness.can_load.clear()
    with pytest.raises(QueryTimedOut):
        await (await harness.begin("SELECT 2", timeout_s=0.02))
    assert len(harness.runs) == 1
    await harness.selects.close()


async def test_later_client_has_its_own_deadline_when_the_run_was_queued() -> None:
    harness = Harness(slots=1)
    other = await harness.begin("SELECT 2")
    first = await harness.begin(timeout_s=30)
    await asyncio.sleep(1.5)  # the new run needs 0.5 s more time: 1 s is left for a busy machine
    harness.end()
    await other
    await settled()
    later = await harness.begin(timeout_s=30)
    harness.end(error=QueryTimedOut("Query timed out"))
    with pytest.raises(QueryTimedOut):
        await first
    await settled()
    harness.end()
    assert await later == b"3"
    assert harness.runs[1].timeout_s < harness.runs[2].timeout_s


async def test_later_client_gets_a_new_run_when_the_run_spent_its_budget() -> None:
    harness = Harness()
    sent_query = [await harness.begin(), await harness.begin()]
    harness.end(error=QueryTimedOut("Query timed out"))
    for each in sent_query:
        with pytest.raises(QueryTimedOut):
            await each
    assert harness.sources() == {"run": 1, "shared": 1}


async def test_deadline_cancels_the_run() -> None:
    harness = Harness()
    with pytest.raises(QueryTimedOut):
        await (await harness.begin(timeout_s=0.5))
    await settled()
    assert harness.cancelled_runs == 1


async def test_time_of_waiting_counts_for_the_deadline() -> None:
    harness = Harness(slots=1)
    await harness.begin("SELECT 1")
    second = await harness.begin("SELECT 2", timeout_s=30)
    await asyncio.sleep(0.05)
    harness.end()
    await settled()
    assert 0 < harness.runs[1].timeout_s <= 30 - 0.04
    harness.end()
    assert await second == b"2"


async def test_run_may_take_as_long_as_its_last_client() -> None:
    harness = Harness(slots=1)
    await harness.begin("SELECT 1")
    early = await harness.begin("SELECT 2", timeout_s=30)
    await asyncio.sleep(0.5)
    began_s = time.monotonic()
    late = await harness.begin("SELECT 2", timeout_s=30)
    harness.end()
    await settled()
    elapsed_s = time.monotonic() - began_s
    assert 30 - elapsed_s <= harness.runs[1].timeout_s <= 30
    harness.end()
    assert await results(early, late) == [b"2", b"2"]


async def test_closing_cancels_all_runs() -> None:
    harness = Harness(slots=3)
    sent_query = [await harness.begin(f"SELECT {number}") for number in range(5)]
    await harness.selects.close()
    await settled()
    assert all(one.done() for one in sent_query)
    assert harness.cancelled_runs == 2
