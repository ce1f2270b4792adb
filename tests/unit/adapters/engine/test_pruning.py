"""Pruning within the engine process: on demand, by itself, and what keeps it from beginning."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Self

import pytest
from structlog.testing import capture_logs

from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.engine.pruning import EnginePruning
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from tests.unit.adapters.engine.test_load_loop import Loader, Log

pytestmark = pytest.mark.asyncio

EXPIRED = (
    ExpiredRows(website_id=WebsiteId("web_a"), table="events", rows=3, bytes=300, cutoff_ms=0),
)
HOUR_MS = MILLISECONDS_PER_DAY // 24


class Steps:
    """Steps over no store; what is expired is gone after two looks at a deletion."""

    def __init__(self) -> None:
        self.expired: tuple[ExpiredRows, ...] = EXPIRED
        self.begun: list[Sequence[ExpiredRows]] = []
        self.looks_left = 0
        self.lost, self.loses = 1, 0
        self.failures: list[Exception] = []
        self.is_closed = False
        self.loop = asyncio.get_running_loop()
        self.finding, self.describing = asyncio.Event(), asyncio.Event()
        self.may_find, self.may_describe = threading.Event(), threading.Event()
        self.may_find.set()
        self.is_describing = False

    def find_expired(self) -> tuple[ExpiredRows, ...]:
        self.loop.call_soon_threadsafe(self.finding.set)
        assert self.may_find.wait(30)
        if self.failures:
            raise self.failures.pop(0)
        return self.expired

    def begin(self, expired: Sequence[ExpiredRows]) -> int:
        assert not self.is_describing  # both use the same connections
        self.begun.append(expired)
        self.expired, self.looks_left = (), 2
        lost_before, self.lost = self.lost, self.lost + self.loses
        return lost_before

    def is_deleting(self, lost_before: int | None = None) -> bool:
        if lost_before not in (None, self.lost):
            raise StoreUnavailable("a deletion was lost")
        self.looks_left -= 1
        return self.looks_left > 0

    def describe(self, website_id: WebsiteId | None = None) -> tuple[StoredRows, ...]:
        assert website_id is None
        self.is_describing = True
        self.loop.call_soon_threadsafe(self.describing.set)
        assert self.may_describe.wait(30)
        self.is_describing = False
        return ()

    def close(self) -> None:
        self.is_closed = True


class Harness:
    """Pruning over a load loop; `refusal` is why none may begin."""

    def __init__(self, now_ms: int = 2 * HOUR_MS) -> None:
        self.steps = Steps()
        self.refusal = ""
        self.forgotten = 0
        self.clock = FixedClock(now_ms)
        self.loop = LoadLoop(
            loader=Loader(self.clock),
            log_reader=Log(),
            interval_s=0.01,
            query_wait_s=5,
            log=get_logger(),
        )
        self.pruning = EnginePruning(
            self.steps,
            self.steps,
            load_loop=self.loop,
            check_may_begin=self._check,
            forget_results=self._forget,
            close_store=self.steps.close,
            clock=self.clock,
            log=get_logger(),
            first_prune_s=0,
            interval_s=0.001,
        )

    def _check(self) -> None:
        if self.refusal:
            raise StoreUnavailable(self.refusal)

    def _forget(self) -> None:
        assert self.steps.looks_left <= 0  # the rows are gone
        self.forgotten += 1

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.loop.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.pruning.close()
        self.loop.close()
        assert self.steps.is_closed


async def test_prune_returns_what_it_deleted_when_the_rows_are_gone() -> None:
    async with Harness() as harness:
        assert await harness.pruning.prune() == EXPIRED
        assert (harness.steps.begun, harness.forgotten) == ([EXPIRED], 1)
        assert await harness.pruning.prune() == ()
        assert (harness.steps.begun, harness.forgotten) == ([EXPIRED], 1)


async def test_a_prune_ends_with_an_error_where_its_own_deletion_is_lost() -> None:
    async with Harness() as harness:
        harness.steps.loses = 1
        with pytest.raises(StoreUnavailable, match="a deletion was lost"):
            await harness.pruning.prune()


async def test_dry_run_deletes_nothing() -> None:
    async with Harness() as harness:
        assert await harness.pruning.prune(dry_run=True) == EXPIRED
        assert (harness.steps.begun, harness.forgotten) == ([], 0)


async def test_nothing_is_deleted_while_it_may_not_begin() -> None:
    async with Harness() as harness:
        harness.refusal = "a batch has to be stored first"
        with pytest.raises(StoreUnavailable, match=harness.refusal):
            await harness.pruning.prune()
        harness.refusal = ""
        assert await harness.pruning.prune() == EXPIRED


async def test_concurrent_prunes_delete_once() -> None:
    async with Harness() as harness:
        results = await asyncio.gather(*(harness.pruning.prune() for _ in range(3)))
        assert sorted(results) == [(), (), EXPIRED]
        assert harness.steps.begun == [EXPIRED]


async def test_a_prune_begins_after_a_description_whose_caller_has_left() -> None:
    async with Harness() as harness:
        steps = harness.steps
        steps.may_find.clear()
        pruning = asyncio.create_task(harness.pruning.prune())
        await steps.finding.wait()
        caller = asyncio.create_task(harness.pruning.describe(None))
        await asyncio.sleep(0)
        await harness.loop.barrier()  # that of the description, which now waits for the connections
        steps.may_find.set()
        await steps.describing.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        for _ in range(5):
            await asyncio.sleep(0)
        await harness.loop.run_exclusive(lambda: None)  # behind what the prune has begun, if it has
        steps.may_describe.set()
        assert await pruning == EXPIRED


async def until_begun(harness: Harness, times: int = 1) -> None:
    async with asyncio.timeout(20):
        while len(harness.steps.begun) < times:  # noqa: ASYNC110 - a thread changes it
            await asyncio.sleep(0.001)


async def test_rows_that_expire_later_are_pruned_without_a_call() -> None:
    async with Harness() as harness:
        harness.pruning.start()
        await until_begun(harness)
        harness.steps.expired = EXPIRED
        await until_begun(harness, times=2)


async def test_failures_do_not_end_pruning() -> None:
    async with Harness() as harness:
        harness.steps.failures = [
            StoreUnavailable("the store is away"),
            OperatorError("the directory is away"),
            ValueError("a bug"),
        ]
        with capture_logs() as logs:
            harness.pruning.start()
            await until_begun(harness)
        reasons = [line.get("reason") for line in logs if line["event"] == "prune_failed"]
        assert reasons == ["the store is away", "the directory is away", None]


async def test_pruning_leaves_the_first_hour_of_a_day_to_the_batches_of_the_day_before() -> None:
    async with Harness(now_ms=HOUR_MS - 1) as harness:
        harness.pruning.start()
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert harness.steps.begun == []
        harness.clock.advance(1)
        await until_begun(harness)
