"""Acknowledgements that wait for the store."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from headrace.adapters.event_log.ack_after_store_log import AckAfterStoreLog
from headrace.adapters.memory.log import MemoryLog
from headrace.base.errors import HeadraceError, LogUnavailable, StoreAckTimeout, StoreUnavailable

pytestmark = pytest.mark.asyncio

LONG_S = 60.0
SHORT_S = 0.05


class Store:
    """The store behind the barrier; a test blocks it or makes it fail."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.is_unavailable = False
        self.barriers = 0

    async def barrier(self) -> None:
        self.barriers += 1
        await self.open.wait()
        if self.is_unavailable:
            raise StoreUnavailable("what came before cannot be stored now")

    async def is_ready(self) -> bool:
        return self.open.is_set() and not self.is_unavailable


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
def memory() -> MemoryLog:
    return MemoryLog()


def stored_log(memory: MemoryLog, store: Store, *, timeout_s: float = LONG_S) -> AckAfterStoreLog:
    return AckAfterStoreLog(
        memory,
        barrier=store.barrier,
        is_store_ready=store.is_ready,
        timeout_s=timeout_s,
        poll_interval_s=0.01,
    )


@pytest.fixture
async def log(memory: MemoryLog, store: Store) -> AsyncIterator[AckAfterStoreLog]:
    made = stored_log(memory, store)
    yield made
    store.open.set()
    await made.close()


async def until_ready(log: AckAfterStoreLog) -> None:
    async with asyncio.timeout(10):
        while not await log.is_ready():  # noqa: ASYNC110 - it sends no event
            await asyncio.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the log has no event for it
            await asyncio.sleep(0)


def append_nowait(log: AckAfterStoreLog, record: bytes) -> "asyncio.Future[HeadraceError | None]":
    """Append a record and return a future for the argument of its callback."""
    outcome: asyncio.Future[HeadraceError | None] = asyncio.get_running_loop().create_future()
    log.append_nowait(record, outcome.set_result)
    return outcome


async def test_append_returns_once_the_store_has_the_record(
    log: AckAfterStoreLog, memory: MemoryLog, store: Store
) -> None:
    store.open.clear()
    appending = asyncio.create_task(log.append(b"one"))
    done, _ = await asyncio.wait({appending}, timeout=SHORT_S)
    assert (done, memory.records) == (set(), [b"one"])
    store.open.set()
    await appending


async def test_records_during_a_barrier_share_the_next_barrier(
    log: AckAfterStoreLog, memory: MemoryLog, store: Store
) -> None:
    store.open.clear()
    first = asyncio.create_task(log.append(b"first"))
    await until(lambda: store.barriers == 1)
    later = [asyncio.create_task(log.append(b"later")) for _ in range(50)]
    await until(lambda: len(memory.records) == 51)
    store.open.set()
    await asyncio.gather(first, *later)
    assert (len(memory.records), store.barriers) == (51, 2)


async def test_record_rejected_by_the_log_is_rejected(
    log: AckAfterStoreLog, memory: MemoryLog, store: Store
) -> None:
    memory.is_broken = True
    with pytest.raises(LogUnavailable):
        await log.append(b"one")
    with pytest.raises(LogUnavailable):
        append_nowait(log, b"two")
    assert store.barriers == 0


async def test_record_that_could_not_be_stored_has_unknown_outcome(
    log: AckAfterStoreLog, memory: MemoryLog, store: Store
) -> None:
    store.is_unavailable = True
    with pytest.raises(StoreAckTimeout):
        await log.append(b"one")
    assert memory.records == [b"one"]


async def test_record_not_stored_in_time_has_unknown_outcome(
    memory: MemoryLog, store: Store
) -> None:
    log = stored_log(memory, store, timeout_s=SHORT_S)
    store.open.clear()
    with pytest.raises(StoreAckTimeout):
        await log.append(b"one")
    await log.close()


async def test_records_are_rejected_before_appending_until_the_store_is_back(
    log: AckAfterStoreLog, memory: MemoryLog, store: Store
) -> None:
    store.is_unavailable = True
    with pytest.raises(StoreAckTimeout):
        await log.append(b"one")
    with pytest.raises(LogUnavailable, match="The store is unavailable"):
        await log.append(b"two")
    with pytest.raises(LogUnavailable):
        append_nowait(log, b"three")
    assert (await log.is_ready(), memory.records) == (False, [b"one"])
    store.is_unavailable = False
    await until_ready(log)
    await log.append(b"four")
    assert memory.records == [b"one", b"four"]


async def test_append_nowait_reports_once_the_store_has_the_record(
    log: AckAfterStoreLog, store: Store
) -> None:
    store.open.clear()
    outcome = append_nowait(log, b"one")
    await asyncio.wait({outcome}, timeout=SHORT_S)
    assert not outcome.done()
    store.open.set()
    assert await outcome is None


async def test_append_nowait_reports_what_could_not_be_stored(
    log: AckAfterStoreLog, store: Store
) -> None:
    store.is_unavailable = True
    assert type(await append_nowait(log, b"one")) is StoreAckTimeout


async def test_shutdown_reports_unknown_durability(log: AckAfterStoreLog, store: Store) -> None:
    store.open.clear()
    outcome = append_nowait(log, b"one")
    await until(lambda: store.barriers == 1)
    await log.close()
    assert type(await outcome) is StoreAckTimeout


async def test_record_that_becomes_durable_during_shutdown_is_reported_and_leaves_no_task(
    log: AckAfterStoreLog, store: Store
) -> None:
    store.open.clear()
    outcome = append_nowait(log, b"one")
    before = asyncio.all_tasks()
    await log.close()
    assert outcome.done()
    assert type(outcome.result()) is StoreAckTimeout
    assert asyncio.all_tasks() == before


async def test_cancelled_caller_does_not_cancel_the_shared_barrier(
    log: AckAfterStoreLog, store: Store
) -> None:
    store.open.clear()
    cancelled_append, other_append = (
        asyncio.create_task(log.append(name)) for name in (b"one", b"two")
    )
    await until(lambda: store.barriers == 1)
    cancelled_append.cancel()
    await asyncio.wait({cancelled_append})
    store.open.set()
    await other_append
    assert (cancelled_append.cancelled(), store.barriers) == (True, 1)
    assert await log.is_ready()
