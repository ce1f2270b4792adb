"""The gate in front of the log, with levels that are told to it, and levels that are real."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.event_log.backpressure_log import (
    GuardedLog,
    LevelLimits,
    Levels,
    read_levels,
)
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.memory.log import MemoryLog
from headrace.base.clock import FixedClock
from headrace.base.errors import LogUnavailable
from headrace.base.telemetry import Metrics

GOOD = Levels(free_bytes=1000, backlog_bytes=50)
LIMITS = LevelLimits(min_free_bytes=1000, max_backlog_bytes=50)


class Gauge:
    """Levels that a test sets; counts how often they were read."""

    def __init__(self) -> None:
        self.levels = GOOD
        self.is_broken = False
        self.readings = 0
        self.was_read = threading.Semaphore(0)

    def read(self) -> Levels:
        self.readings += 1
        self.was_read.release()
        if self.is_broken:
            raise OSError(5, "Input/output error")
        return self.levels


def guard(log: MemoryLog, gauge: Gauge, *, interval_s: float = 0.005) -> GuardedLog:
    return GuardedLog(log, read=gauge.read, limits=LIMITS, metrics=Metrics(), interval_s=interval_s)


async def refusal_of(log: GuardedLog) -> str | None:
    try:
        await log.append(b"more")
    except LogUnavailable as error:
        return str(error)
    return None


async def until_read_again(gauge: Gauge) -> None:
    """Return when the gate has drawn its conclusions from what the gauge shows now."""
    while gauge.was_read.acquire(blocking=False):
        continue
    for _ in range(2):
        assert await asyncio.to_thread(gauge.was_read.acquire, timeout=30)


CLOSED = {
    "disk nearly full": (Levels(999, 0), "The disk is nearly full.", (False, True)),
    "store too far behind": (Levels(1000, 51), "The store is too far behind.", (True, False)),
    "both": (Levels(0, 99), "The disk is nearly full.", (False, False)),
}


@pytest.mark.parametrize(("levels", "words", "parts"), CLOSED.values(), ids=list(CLOSED))
async def test_gate_closes_and_opens_again_by_itself(
    levels: Levels, words: str, parts: tuple[bool, bool]
) -> None:
    memory, gauge = MemoryLog(), Gauge()
    log = guard(memory, gauge)
    await log.start()
    assert await refusal_of(log) is None

    gauge.levels = levels
    await until_read_again(gauge)
    refused = await refusal_of(log)
    state = (await log.disk_has_room(), await log.store_keeps_up())
    ready = await log.is_ready()
    gauge.levels = GOOD
    await until_read_again(gauge)

    assert (refused, state, ready) == (words, parts, False)
    assert (await refusal_of(log), await log.is_ready()) == (None, True)
    assert memory.records == [b"more", b"more"]
    await log.close()
    assert memory.is_closed


async def test_gate_is_closed_from_the_start_where_it_must_be() -> None:
    memory, gauge = MemoryLog(), Gauge()
    gauge.levels = Levels(0, 0)
    log = guard(memory, gauge)
    await log.start()

    assert await refusal_of(log) == "The disk is nearly full."
    assert memory.records == []
    await log.close()


async def test_levels_are_not_read_for_requests() -> None:
    gauge = Gauge()
    log = guard(MemoryLog(), gauge, interval_s=3600)
    await log.start()
    for _ in range(100):
        await log.append(b"a")
    assert gauge.readings == 1
    await log.close()


async def test_gate_stays_as_it_was_while_levels_cannot_be_read() -> None:
    gauge = Gauge()
    log = guard(MemoryLog(), gauge)
    await log.start()
    gauge.is_broken = True
    await until_read_again(gauge)
    assert await refusal_of(log) is None
    await log.close()


async def test_broken_log_behind_an_open_gate_is_not_ready() -> None:
    memory = MemoryLog()
    log = guard(memory, Gauge())
    await log.start()
    memory.is_broken = True
    assert (await log.is_ready(), await log.log_works(), await log.disk_has_room()) == (
        False,
        False,
        True,
    )
    await log.close()


OpenLog = Callable[[str], SegmentLog]


async def test_backlog_is_what_is_durable_and_not_loaded(tmp_path: Path) -> None:
    root = tmp_path / "log"

    def backlog() -> int:
        return read_levels(tmp_path, root).backlog_bytes

    def open_log(name: str) -> SegmentLog:
        return SegmentLog.open(
            root, name, metrics=Metrics(), clock=FixedClock(0), segment_bytes=1500
        )

    before = backlog()
    logs = [open_log("worker-0"), open_log("worker-1")]
    for log in logs:
        for _ in range(3):
            await log.append(b"x" * 1000)  # two do not fit into one segment
    full = backlog()
    with closing(SegmentReader(root, damaged=tmp_path / "damaged")) as reader:
        ends = reader.durable_ends()
        reader.remove_before("worker-0", ends["worker-0"])
        half = backlog()
        reader.note_loaded(ends)
        loaded = backlog()
    await logs[0].append(b"x" * 10)
    after = backlog()
    for log in logs:
        await log.close()

    assert before == loaded == 0
    assert full == 2 * half
    assert 3000 < half < 3300
    assert 10 < after < 100


def test_free_bytes_are_those_of_the_file_system(tmp_path: Path) -> None:
    assert read_levels(tmp_path, tmp_path / "log").free_bytes > 1_000_000
