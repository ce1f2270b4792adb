"""The engine process loads a log that this process writes as a worker does."""

import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.store_client import EngineStore
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.base.clock import SystemClock
from headrace.base.errors import StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventRecord, encode_record
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits, StoreStatus
from testing.chdb import ENDLESS, LIMITS

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "engine_program.py"
COUNT = "SELECT count(), uniqExact(id), uniqExact(event_name) FROM events"


class Machine:
    """A data directory with one log, and an engine that tests can kill and start."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.socket = directory / "engine.sock"
        self.connections = EngineConnections(self.socket)
        self.store = EngineStore(self.connections)
        self.accepted = 0

    async def open(self) -> None:
        self.log = await asyncio.to_thread(
            lambda: SegmentLog.open(
                self.data / "log", "worker-0", metrics=Metrics(), clock=SystemClock()
            )
        )
        self.start()
        await self.until_ready()

    def start(self) -> None:
        self.engine = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(self.data), str(self.socket)],
            stderr=subprocess.PIPE,
            text=True,
        )

    async def until_ready(self) -> None:
        async with asyncio.timeout(60):
            while await self.store.status() is not StoreStatus.READY:  # noqa: ASYNC110 - the store has no event to wait for
                await asyncio.sleep(0.02)

    async def accept(self, items: int = 1) -> None:
        """Append one record, as an ingestion request does."""
        events = [
            Event(website_id="web_1", time_ms=1_700_000_000_000, name=f"event {self.accepted + n}")
            for n in range(items)
        ]
        record = EventRecord(received_ms=1_700_000_000_000, visitor=UNKNOWN_VISITOR, items=events)
        await self.log.append(encode_record(record))
        self.accepted += items

    async def select(self, sql: str, limits: QueryLimits = LIMITS) -> list[list[object]]:
        query = CompiledQuery(sql=sql, parameters={}, outputs=())
        return [list(row) for row in (await self.store.select(query, limits)).rows]

    async def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal; return the exit code and the lines on standard error."""
        self.engine.send_signal(number)
        _, lines = await asyncio.to_thread(self.engine.communicate, timeout=60)
        return self.engine.returncode, lines

    async def close(self) -> None:
        if self.engine.returncode is None:
            await self.end(signal.SIGKILL)
        await self.connections.close()
        await self.log.close()


@pytest_asyncio.fixture
async def machine() -> AsyncIterator[Machine]:
    directory = Path(tempfile.mkdtemp(prefix="headrace-test-"))  # short enough for a socket
    one = Machine(directory)
    await one.open()
    yield one
    await one.close()
    shutil.rmtree(directory)


async def test_a_select_reads_every_event_accepted_before_it(machine: Machine) -> None:
    for number in range(1, 31):
        await machine.accept()
        assert await machine.select(COUNT) == [[number, number, number]]


async def test_kills_at_any_time_lose_and_duplicate_nothing(machine: Machine) -> None:
    for killed_after_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        for _ in range(20):
            await machine.accept(50)
        await asyncio.sleep(killed_after_s)
        await machine.end(signal.SIGKILL)
        await machine.accept(50)
        machine.start()
        await machine.until_ready()
    assert await machine.select(COUNT) == [[machine.accepted] * 3]


async def test_a_stopped_engine_has_stored_everything_and_left_no_process(
    machine: Machine,
) -> None:
    endless = asyncio.create_task(
        machine.select(ENDLESS, QueryLimits(timeout_s=60, max_memory_bytes=10**9))
    )
    await machine.accept(1000)
    await machine.select(COUNT)  # on return, the endless select is running
    await machine.accept(1000)
    code, lines = await machine.end(signal.SIGTERM)
    assert (code, "engine_closed" in lines, "left_in_the_log" in lines) == (0, True, False)
    with pytest.raises(StoreUnavailable):
        await endless
    assert not machine.socket.exists()
