"""All selects of a machine on a real chDB, observed in its process list."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from headrace.adapters.query_scheduler.coalescing_executor import CoalescingExecutor
from headrace.adapters.query_scheduler.fair_semaphore import FairSemaphore, SlotLimits
from headrace.adapters.query_scheduler.key import QueryKey
from headrace.adapters.query_scheduler.result_cache import ResultCache
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.store.chdb.reader import ChdbReader
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.base.errors import QueryTimedOut
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.model.catalog import EVENTS
from headrace.ports.store import QueryLimits
from testing.chdb import ENDLESS, FreshStore, arrow_stream

pytestmark = pytest.mark.asyncio

ANY_ENDLESS = "SELECT count() FROM system.processes WHERE startsWith(query, {sql:String})"
COUNT = "SELECT count() FROM events WHERE website_id = {website:String}"

Rows = list[list[Any]]


class Machine:
    """One store with three select slots and nothing to load."""

    def __init__(self, tables: FreshStore) -> None:
        self.tables = tables
        self.metrics = Metrics()
        self.versions = DataVersions()
        self.writer = ChdbWriter(
            tables.engine, database=tables.database, change_listener=self.versions
        )
        self.reader = ChdbReader(
            tables.engine, threads=3, log=get_logger(), database=tables.database
        )
        self.reader.open()
        self.selects = CoalescingExecutor[bytes](
            slots=FairSemaphore(SlotLimits(3, 100, 100), metrics=self.metrics),
            load_barrier=self._nothing_to_load,
            versions=self.versions,
            cache=ResultCache(10**6),
            wait_timeout_s=60,
            metrics=self.metrics,
        )
        self._number = 0

    async def select(self, website: str, sql: str, *, timeout_s: float = 60) -> Rows:
        """Run a select of a website and return its rows."""
        limits = QueryLimits(timeout_s=timeout_s, max_memory_bytes=10**9)
        texts = {"website": website} if "{website:" in sql else dict[str, str]()
        key = QueryKey(website, sql, tuple(texts.items()), limits)
        self._number += 1
        run = partial(self._run, sql, EncodedParameters(texts), f"{website}-{self._number}")
        return decode_rows((await self.selects.execute(key, run)).result)

    def begin(self, website: str, sql: str, *, timeout_s: float = 60) -> "asyncio.Task[Rows]":
        """Start a select in a task."""
        return asyncio.create_task(self.select(website, sql, timeout_s=timeout_s))

    def running(self) -> int:
        """Return the number of endless selects in chDB's process list."""
        ((count,),) = self.tables.rows(ANY_ENDLESS, {"sql": ENDLESS})
        return int(count)

    async def until_running(self, count: int) -> None:
        """Wait until the process list has this number of endless selects."""
        async with asyncio.timeout(90):
            while self.running() != count:  # noqa: ASYNC110 - it sends no event
                await asyncio.sleep(0.01)

    def cached(self) -> int:
        """Return the number of results served from the cache."""
        lines = self.metrics.render().decode().splitlines()
        start = 'headrace_selects_total{source="cached"}'
        return sum(int(float(line.split(" ")[1])) for line in lines if line.startswith(start))

    async def close(self) -> None:
        await self.selects.close()
        await self.reader.close()
        self.writer.close()

    async def _run(
        self, sql: str, texts: EncodedParameters, query_id: str, limits: QueryLimits
    ) -> bytes:
        return await self.reader.select(sql, texts, limits, query_id)

    async def _nothing_to_load(self) -> None:
        return


@pytest_asyncio.fixture
async def machine(chdb_store: FreshStore) -> AsyncIterator[Machine]:
    one = Machine(chdb_store)
    yield one
    await one.close()


async def test_light_query_finishes_before_fifty_heavy_ones_of_another_website(
    machine: Machine,
) -> None:
    heavy_tasks = [machine.begin("greedy", f"{ENDLESS} AND {n} = {n}") for n in range(50)]
    await machine.until_running(2)
    for number in range(5):
        assert await machine.select("modest", f"SELECT {number}") == [[number]]
    assert not any(one.done() for one in heavy_tasks)
    assert machine.running() == 2
    for one in heavy_tasks:
        one.cancel()
    await machine.until_running(0)


async def test_equal_queries_are_coalesced_and_cancelled_with_the_last_client(
    machine: Machine,
) -> None:
    sent_query = [machine.begin("a", ENDLESS) for _ in range(5)]
    await machine.until_running(1)
    for one in sent_query[:4]:
        one.cancel()
    await asyncio.gather(*sent_query[:4], return_exceptions=True)
    assert machine.running() == 1
    sent_query[4].cancel()
    await machine.until_running(0)


async def test_deadline_that_passes_leaves_nothing_in_the_process_list(machine: Machine) -> None:
    heavy_tasks = [machine.begin("a", f"{ENDLESS} AND {n} = {n}", timeout_s=0.3) for n in range(4)]
    is_ended = await asyncio.gather(*heavy_tasks, return_exceptions=True)
    assert [type(end) for end in is_ended] == [QueryTimedOut] * 4
    await machine.until_running(0)


async def test_closing_leaves_nothing_in_the_process_list(machine: Machine) -> None:
    heavy_tasks = [machine.begin(website, ENDLESS) for website in ("a", "b", "c", "d")]
    await machine.until_running(3)
    await machine.selects.close()
    assert machine.running() == 0
    await asyncio.gather(*heavy_tasks, return_exceptions=True)


async def test_every_result_has_every_row_stored_before(machine: Machine) -> None:
    stored: Counter[str] = Counter()
    random_source = random.Random(3)  # noqa: S311 - not a secret
    for number in range(40):
        website = random_source.choice("abc")
        if random_source.random() < 0.3:
            rows = [{"website_id": website}] * random_source.randint(1, 3)
            stream = arrow_stream(EVENTS, rows)
            await asyncio.to_thread(machine.writer.insert, EVENTS, stream, token=f"t{number}")
            stored[website] += len(rows)
        assert await machine.select(website, COUNT) == [[stored[website]]]
    assert machine.cached() > 10
