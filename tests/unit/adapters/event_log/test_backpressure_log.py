"""Backpressure, for disk usage that a test sets and for that of a real directory."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.event_log.backpressure_log import (
    BackpressureLog,
    DiskUsage,
    Thresholds,
    read_disk_usage,
)
from headrace.adapters.memory.log import MemoryLog
from headrace.base.errors import LogUnavailable
from headrace.base.metrics import Metrics
from testing.event_logs import open_log, reader_of

GOOD = DiskUsage(free_bytes=1000, backlog_bytes=50)
LIMITS = Thresholds(min_free_bytes=1000, max_backlog_bytes=50)


class Gauge:
    """Disk usage that a test sets; counts how often it is read."""

    def __init__(self) -> None:
        self.usage = GOOD
        self.is_broken = False
        self.readings = 0
        self.was_measured = threading.Semaphore(0)

    def read(self) -> DiskUsage:
        self.readings += 1
        self.was_measured.release()
        if self.is_broken:
            raise OSError(5, "Input/output error")
        return self.usage


def guard(log: MemoryLog, gauge: Gauge, *, interval_s: float = 0.005) -> BackpressureLog:
    return BackpressureLog(
        log, read=gauge.read, limits=LIMITS, metrics=Metrics(), interval_s=interval_s
    )


async def rejection_of(log: BackpressureLog) -> str | None:
    try:
        await log.append(b"more")
    except LogUnavailable as error:
        return str(error)
    return None


async def until_read_again(gauge: Gauge) -> None:
    """Wait until the log has applied the current usage of the gauge."""
    while gauge.was_measured.acquire(blocking=False):
        continue
    for _ in range(2):
        assert await asyncio.to_thread(gauge.was_measured.acquire, timeout=30)


PAUSED = {
    "disk nearly full": (DiskUsage(999, 0), "the disk is nearly full", (False, True)),
    "store too far behind": (DiskUsage(1000, 51), "the store is too far behind", (True, False)),
    "both": (DiskUsage(0, 99), "the disk is nearly full", (False, False)),
}


@pytest.mark.parametrize(("usage", "message", "parts"), PAUSED.values(), ids=list(PAUSED))
async def test_backpressure_engages_and_clears_automatically(
    usage: DiskUsage, message: str, parts: tuple[bool, bool]
) -> None:
    memory, gauge = MemoryLog(), Gauge()
    log = guard(memory, gauge)
    await log.start()
    assert await rejection_of(log) is None

    gauge.usage = usage
    await until_read_again(gauge)
    rejected = await rejection_of(log)
    state = (await log.has_free_disk_space(), await log.is_backlog_within_limit())
    ready = await log.is_ready()
    gauge.usage = GOOD
    await until_read_again(gauge)

    assert (rejected, state, ready) == (message, parts, False)
    assert (await rejection_of(log), await log.is_ready()) == (None, True)
    assert memory.records == [b"more", b"more"]
    await log.close()
    assert memory.is_closed


async def test_backpressure_is_engaged_at_startup_if_needed() -> None:
    memory, gauge = MemoryLog(), Gauge()
    gauge.usage = DiskUsage(0, 0)
    log = guard(memory, gauge)
    await log.start()

    assert await rejection_of(log) == "the disk is nearly full"
    assert memory.records == []
    await log.close()


async def test_disk_usage_is_not_read_per_request() -> None:
    gauge = Gauge()
    log = guard(MemoryLog(), gauge, interval_s=3600)
    await log.start()
    for _ in range(100):
        await log.append(b"a")
    assert gauge.readings == 1
    await log.close()


async def test_backpressure_is_unchanged_while_disk_usage_cannot_be_read() -> None:
    gauge = Gauge()
    log = guard(MemoryLog(), gauge)
    await log.start()
    gauge.is_broken = True
    await until_read_again(gauge)
    assert await rejection_of(log) is None
    await log.close()


async def test_failing_log_without_backpressure_is_not_ready() -> None:
    memory = MemoryLog()
    log = guard(memory, Gauge())
    await log.start()
    memory.is_broken = True
    assert (await log.is_ready(), await log.is_log_ready(), await log.has_free_disk_space()) == (
        False,
        False,
        True,
    )
    await log.close()


async def test_backlog_is_the_durable_unloaded_size(tmp_path: Path) -> None:
    root = tmp_path / "log"

    def backlog() -> int:
        return read_disk_usage(tmp_path, root).backlog_bytes

    before = backlog()
    logs = [open_log(root, name, segment_bytes=1500) for name in ("worker-0", "worker-1")]
    for log in logs:
        for _ in range(3):
            await log.append(b"x" * 1000)  # a segment is too small for two
    full = backlog()
    with closing(reader_of(root)) as reader:
        ends = reader.durable_offsets()
        reader.truncate_before("worker-0", ends["worker-0"])
        half = backlog()
        reader.publish_loaded_offsets(ends)
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
    assert read_disk_usage(tmp_path, tmp_path / "log").free_bytes > 1_000_000
