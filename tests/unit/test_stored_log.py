"""Acknowledgements that wait for the store."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace.adapters.event_log.ack_after_store_log import StoredLog
from headrace.adapters.memory.log import MemoryLog
from headrace.base.errors import HeadraceError, LogUnavailable, NotYetStored, StoreUnavailable

pytestmark = pytest.mark.asyncio

LONG_S = 60.0
SHORT_S = 0.05


class Store:
    """What a barrier waits for: a test lets it go on, or fail."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.is_away = False
        self.barriers = 0

    async def barrier(self) -> None:
        self.barriers += 1
        await self.open.wait()
        if self.is_away:
            raise StoreUnavailable("what came before cannot be stored now")

    async def is_ready(self) -> bool:
        return self.open.is_set() and not self.is_away


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
def memory() -> MemoryLog:
    return MemoryLog()


def stored_log(memory: MemoryLog, store: Store, *, timeout_s: float = LONG_S) -> StoredLog:
    return StoredLog(
        memory,
        barrier=store.barrier,
        is_store_ready=store.is_ready,
        timeout_s=timeout_s,
        look_interval_s=0.01,
    )


@pytest.fixture
async def log(memory: MemoryLog, store: Store) -> AsyncIterator[StoredLog]:
    made = stored_log(memory, store)
    yield made
    store.open.set()
    await made.close()


async def until_ready(log: StoredLog) -> None:
    async with asyncio.timeout(10):
        while not await log.is_ready():  # noqa: ASYNC110 - it looks by itself
            await asyncio.sleep(0.01)


def told_by(log: StoredLog, record: bytes) -> "asyncio.Future[HeadraceError | None]":
    """Hand a record in and return what will be told of it."""
    heard: asyncio.Future[HeadraceError | None] = asyncio.get_running_loop().create_future()
    log.hand_in(record, heard.set_result)
    return heard


async def test_append_returns_once_the_store_has_the_record(
    log: StoredLog, memory: MemoryLog, store: Store
) -> None:
    store.open.clear()
    appending = asyncio.create_task(log.append(b"one"))
    done, _ = await asyncio.wait({appending}, timeout=SHORT_S)
    assert (done, memory.records) == (set(), [b"one"])
    store.open.set()
    await appending


async def test_records_that_come_while_the_store_is_asked_share_the_next_question(
    log: StoredLog, memory: MemoryLog, store: Store
) -> None:
    store.open.clear()
    first = asyncio.create_task(log.append(b"first"))
    await asyncio.sleep(0.01)
    later = [asyncio.create_task(log.append(b"later")) for _ in range(50)]
    await asyncio.sleep(0.01)
    store.open.set()
    await asyncio.gather(first, *later)
    assert (len(memory.records), store.barriers) == (51, 2)


async def test_record_that_the_log_refuses_is_refused(
    log: StoredLog, memory: MemoryLog, store: Store
) -> None:
    memory.is_broken = True
    with pytest.raises(LogUnavailable):
        await log.append(b"one")
    with pytest.raises(LogUnavailable):
        told_by(log, b"two")
    assert store.barriers == 0


async def test_record_that_could_not_be_stored_is_neither_accepted_nor_refused(
    log: StoredLog, memory: MemoryLog, store: Store
) -> None:
    store.is_away = True
    with pytest.raises(NotYetStored):
        await log.append(b"one")
    assert memory.records == [b"one"]


async def test_record_that_is_not_stored_in_time_is_neither_accepted_nor_refused(
    memory: MemoryLog, store: Store
) -> None:
    log = stored_log(memory, store, timeout_s=SHORT_S)
    store.open.clear()
    with pytest.raises(NotYetStored):
        await log.append(b"one")
    await log.close()


async def test_records_are_refused_before_the_log_has_them_until_the_store_is_back(
    log: StoredLog, memory: MemoryLog, store: Store
) -> None:
    store.is_away = True
    with pytest.raises(NotYetStored):
        await log.append(b"one")
    with pytest.raises(LogUnavailable, match="The store is away"):
        await log.append(b"two")
    with pytest.raises(LogUnavailable):
        told_by(log, b"three")
    assert (await log.is_ready(), memory.records) == (False, [b"one"])
    store.is_away = False
    await until_ready(log)
    await log.append(b"four")
    assert memory.records == [b"one", b"four"]


async def test_handing_in_tells_once_the_store_has_the_record(log: StoredLog, store: Store) -> None:
    store.open.clear()
    heard = told_by(log, b"one")
    await asyncio.wait({heard}, timeout=SHORT_S)
    assert not heard.done()
    store.open.set()
    assert await heard is None


async def test_handing_in_tells_what_could_not_be_stored(log: StoredLog, store: Store) -> None:
    store.is_away = True
    assert type(await told_by(log, b"one")) is NotYetStored


async def test_end_of_the_service_tells_that_nobody_knows(log: StoredLog, store: Store) -> None:
    store.open.clear()
    heard = told_by(log, b"one")
    await asyncio.sleep(0.01)
    await log.close()
    assert type(await heard) is NotYetStored


async def test_caller_that_leaves_does_not_end_the_question_of_others(
    log: StoredLog, store: Store
) -> None:
    store.open.clear()
    leaving, staying = (asyncio.create_task(log.append(name)) for name in (b"one", b"two"))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.sleep(0.01)
    store.open.set()
    await staying
