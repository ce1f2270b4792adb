"""Refuses appends while the disk is nearly full or the store is too far behind the log."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from headrace.adapters.event_log.segment_directory import loaded_end
from headrace.adapters.event_log.segment_format import SEGMENT_SUFFIX
from headrace.base.errors import LogUnavailable
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.event_log import LOG_START, EventLog, Told

LOOK_INTERVAL_S = 1.0


class Levels(Struct, frozen=True):
    """How much room the disk has, and how much of the logs is not in the store yet."""

    free_bytes: int
    backlog_bytes: int


class LevelLimits(Struct, frozen=True):
    """Where the gate closes."""

    min_free_bytes: int
    max_backlog_bytes: int


def read_levels(data: Path, log_root: Path) -> Levels:
    """Ask the file system; blocking, a fraction of a millisecond. Raises `OSError`."""
    disk = os.statvfs(data)
    backlog = sum(map(_backlog_of, log_root.glob("*/")))
    return Levels(free_bytes=disk.f_bavail * disk.f_frsize, backlog_bytes=backlog)


def _backlog_of(log: Path) -> int:
    loaded = loaded_end(log) or LOG_START
    size = 0
    for segment in log.glob(f"*{SEGMENT_SUFFIX}"):
        if not segment.stem.isdecimal():
            continue  # not one of ours
        sequence = int(segment.stem)
        skipped = loaded.offset if sequence == loaded.segment else 0
        if sequence >= loaded.segment:
            with suppress(FileNotFoundError):  # loaded and removed meanwhile
                size += max(segment.stat().st_size - skipped, 0)
    return size


class GuardedLog:
    """An `EventLog` in front of another; used from one event loop.

    The levels are read once a second in a thread, never for a request: what comes within that
    second is what the room below the watermark is for.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        read: Callable[[], Levels],
        limits: LevelLimits,
        metrics: Metrics,
        interval_s: float = LOOK_INTERVAL_S,
    ) -> None:
        self._log = log
        self._read = read
        self._limits = limits
        self._metrics = metrics
        self._interval_s = interval_s
        self._disk_is_low = False
        self._store_is_behind = False
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the levels, and from now on again and again."""
        await self._look()
        self._watching = asyncio.create_task(self._watch())

    async def append(self, record: bytes) -> None:
        """Make a record durable; see `ports.log.EventLog`. Refuses it while the gate is closed."""
        self._check_gate()
        await self._log.append(record)

    def hand_in(self, record: bytes, told: Told) -> None:
        """Make a record durable and tell; see `ports.log.EventLog`. Refuses it as `append` does."""
        self._check_gate()
        self._log.hand_in(record, told)

    def _check_gate(self) -> None:
        if self._disk_is_low:
            raise LogUnavailable("The disk is nearly full.")
        if self._store_is_behind:
            raise LogUnavailable("The store is too far behind.")

    async def is_ready(self) -> bool:
        """Tell whether the log takes records; see `ports.log.EventLog`."""
        return await self.disk_has_room() and await self.store_keeps_up() and await self.log_works()

    async def log_works(self) -> bool:
        """Tell whether the log behind the gate takes records."""
        return await self._log.is_ready()

    async def disk_has_room(self) -> bool:
        """Tell whether the disk has more room than the watermark."""
        return not self._disk_is_low

    async def store_keeps_up(self) -> bool:
        """Tell whether the backlog is within its limit."""
        return not self._store_is_behind

    async def close(self) -> None:
        """Stop looking and close the log. May be called twice."""
        if self._watching is not None:
            self._watching.cancel()
        await self._log.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._look()

    async def _look(self) -> None:
        try:
            levels = await asyncio.to_thread(self._read)
        except OSError as error:
            get_logger().error("levels_unknown", reason=error.strerror)
            return
        self._metrics.set("headrace_disk_free_bytes", levels.free_bytes)
        self._metrics.set("headrace_log_backlog_bytes", levels.backlog_bytes)
        was_closed = self._disk_is_low or self._store_is_behind
        self._disk_is_low = levels.free_bytes < self._limits.min_free_bytes
        self._store_is_behind = levels.backlog_bytes > self._limits.max_backlog_bytes
        self._tell(levels, was_closed=was_closed)

    def _tell(self, levels: Levels, *, was_closed: bool) -> None:
        is_closed = self._disk_is_low or self._store_is_behind
        if is_closed == was_closed:
            return
        facts = {"free_bytes": levels.free_bytes, "backlog_bytes": levels.backlog_bytes}
        if is_closed:
            get_logger().error("ingestion_paused", **facts)
        else:
            get_logger().info("ingestion_resumed", **facts)
