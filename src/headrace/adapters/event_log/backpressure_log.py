"""Rejects appends while the disk is nearly full or the store is too far behind the log."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from headrace.adapters.data_dir.paths import SEGMENT_SUFFIX, log_folders
from headrace.adapters.event_log.loaded_marker import read_loaded_offset
from headrace.adapters.event_log.segment_directory import read_durable_offset
from headrace.base.errors import LogUnavailable
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START, EventLog, OnDurable

POLL_INTERVAL_S = 1.0


class DiskUsage(Struct, frozen=True):
    """The free space of the disk, and the size of the records that are not in the store yet."""

    free_bytes: int
    backlog_bytes: int


class Thresholds(Struct, frozen=True):
    """Appends are rejected below the one and above the other."""

    min_free_bytes: int
    max_backlog_bytes: int


def read_disk_usage(data: Path, log_root: Path) -> DiskUsage:
    """Query the file system; blocks for a fraction of a millisecond. Raises `OSError`."""
    filesystem = os.statvfs(data)
    backlog = sum(map(_unloaded_bytes, log_folders(log_root)))
    return DiskUsage(free_bytes=filesystem.f_bavail * filesystem.f_frsize, backlog_bytes=backlog)


def _unloaded_bytes(log: Path) -> int:
    loaded = read_loaded_offset(log) or LOG_START
    durable = read_durable_offset(log) or LOG_START
    size = 0
    for segment in log.glob(f"*{SEGMENT_SUFFIX}"):
        if not segment.stem.isdecimal():
            continue  # not a segment of this log
        sequence = int(segment.stem)
        if sequence < loaded.segment:
            continue
        skipped = loaded.offset if sequence == loaded.segment else 0
        with suppress(FileNotFoundError):  # the engine removed it: it is loaded
            end = segment.stat().st_size
            if sequence == durable.segment:
                end = min(end, durable.offset)  # zeros follow
            size += max(end - skipped, 0)
    return size


class BackpressureLog:
    """An `EventLog` that wraps another; used from one event loop.

    Reads the disk usage once a second in a thread, never for a request. `min_free_bytes` leaves
    room for what arrives between two readings.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        read: Callable[[], DiskUsage],
        limits: Thresholds,
        metrics: Metrics,
        interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._log = log
        self._read = read
        self._thresholds = limits
        self._metrics = metrics
        self._interval_s = interval_s
        self._disk_is_low = False
        self._store_is_behind = False
        self._poll_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the disk usage, and start the task that polls it."""
        await self._poll()
        self._poll_task = asyncio.create_task(self._poll_forever())

    async def append(self, record: bytes) -> None:
        """Append; see `ports.event_log.EventLog`. Raises `LogUnavailable` under backpressure."""
        self._check_not_paused()
        await self._log.append(record)

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Append without waiting; see `ports.event_log.EventLog`. Rejects what `append` rejects."""
        if self._disk_is_low or self._store_is_behind:  # a call less for each request
            self._check_not_paused()
        self._log.append_nowait(record, on_durable)

    def _check_not_paused(self) -> None:
        if self._disk_is_low:
            raise LogUnavailable("the disk is nearly full")
        if self._store_is_behind:
            raise LogUnavailable("the store is too far behind")

    async def is_ready(self) -> bool:
        """Return whether the log takes records; see `ports.event_log.EventLog`."""
        return (
            await self.has_free_disk_space()
            and await self.is_backlog_within_limit()
            and await self.is_log_ready()
        )

    async def is_log_ready(self) -> bool:
        """Return whether the wrapped log takes records."""
        return await self._log.is_ready()

    async def has_free_disk_space(self) -> bool:
        """Return whether the disk has at least `min_free_bytes` free."""
        return not self._disk_is_low

    async def is_backlog_within_limit(self) -> bool:
        """Return whether the backlog is at most `max_backlog_bytes`."""
        return not self._store_is_behind

    async def close(self) -> None:
        """Stop polling and close the log. May be called twice."""
        if self._poll_task is not None:
            self._poll_task.cancel()
        await self._log.close()

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._poll()

    async def _poll(self) -> None:
        try:
            usage = await asyncio.to_thread(self._read)
        except OSError as error:
            get_logger().error("levels_unknown", reason=error.strerror)
            return
        self._metrics.set("headrace_disk_free_bytes", usage.free_bytes)
        self._metrics.set("headrace_log_backlog_bytes", usage.backlog_bytes)
        was_paused = self._disk_is_low or self._store_is_behind
        self._disk_is_low = usage.free_bytes < self._thresholds.min_free_bytes
        self._store_is_behind = usage.backlog_bytes > self._thresholds.max_backlog_bytes
        self._log_transition(usage, was_paused=was_paused)

    def _log_transition(self, usage: DiskUsage, *, was_paused: bool) -> None:
        is_paused = self._disk_is_low or self._store_is_behind
        if is_paused == was_paused:
            return
        fields = {"free_bytes": usage.free_bytes, "backlog_bytes": usage.backlog_bytes}
        if is_paused:
            get_logger().error("ingestion_paused", **fields)
        else:
            get_logger().info("ingestion_resumed", **fields)
