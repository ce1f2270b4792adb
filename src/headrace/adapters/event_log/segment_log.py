"""The durable log's writing side: plain segment files, one fsync for all appends of a moment."""

import asyncio
import errno
import os
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from headrace.adapters.event_log.segment_directory import (
    Disk,
    LogDirectory,
    create_directory,
    is_deleted,
)
from headrace.adapters.event_log.segment_format import (
    FRAME_SIZE,
    SegmentHeader,
    frame_head,
    pack_header,
)
from headrace.base.clock import Clock
from headrace.base.errors import HeadraceError, LogUnavailable, LogUncertain, OperatorError
from headrace.base.log_throttle import LineBudget
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.event_log import LogPosition, Told

SEGMENT_BYTES = 64 * 1024 * 1024
_GROUP_BYTES = 8 * 1024 * 1024
_WAITING_BYTES = 256 * 1024 * 1024
_LOCK_PAUSE_S = 0.02

_Failure = LogUnavailable | LogUncertain


class _Group:
    """What one write and one fsync make durable, and who waits for it."""

    __slots__ = ("pieces", "size", "waiters")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.waiters: list[Told] = []
        self.size = 0


class SegmentLog:
    """An `EventLog` in `<root>/<name>`; see `segment_format` for what lies there.

    While one group of records is being written and synced in the log's thread, the next gathers.
    A failed group is cut off again and refused as a whole; the next one tries a new segment, so
    the log recovers by itself when the disk does. Nothing of it is written before that is there.
    """

    def __init__(self, files: "_SegmentFiles") -> None:
        self._files = files
        self._groups: deque[_Group] = deque()
        self._waiting_bytes = 0
        self._is_writing = False
        self._is_closed = False
        self._is_failing = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._handed: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Group] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_groups, name="log", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        root: Path,
        name: str,
        *,
        metrics: Metrics,
        clock: Clock,
        segment_bytes: int = SEGMENT_BYTES,
        lock_patience_s: float = 10.0,
        disk: Disk | None = None,
    ) -> "SegmentLog":
        """Lock and recover the log; blocking. Raises `OperatorError` where that cannot be done.

        The loader holds the lock of a log without a writer for moments, hence the patience.
        """
        disk = disk or Disk()
        try:
            create_directory(root / name, disk=disk)
            directory = LogDirectory(root / name, disk=disk)
            with _closing_on_failure(directory):
                lock_log(directory, lock_patience_s)
                end = directory.recover()
        except OSError as error:
            raise OperatorError(f"The log {root / name} cannot be opened: {error}.") from error
        files = _SegmentFiles(
            directory,
            end=end,
            metrics=metrics,
            clock=clock,
            segment_bytes=segment_bytes,
            disk=disk,
        )
        return cls(files)

    async def append(self, record: bytes) -> None:
        """Make a record durable; see `ports.log.EventLog`."""
        waiter = asyncio.get_running_loop().create_future()
        self.hand_in(record, partial(_settle, waiter))
        await waiter

    def hand_in(self, record: bytes, told: Told) -> None:
        """Make a record durable and tell; see `ports.log.EventLog`."""
        self._gather((frame_head(record), record), FRAME_SIZE + len(record), told)

    async def is_ready(self) -> bool:
        """Tell whether the disk takes records; tries it where the last group failed."""
        if self._is_failing:
            with suppress(LogUnavailable):
                await self._try_disk()
        return not (self._is_failing or self._is_closed)

    async def _try_disk(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._gather((), 0, partial(_settle, waiter))  # a segment's header, and no record
        await waiter

    def _gather(self, pieces: tuple[bytes, ...], size: int, told: Told) -> None:
        if self._is_closed:
            raise LogUnavailable("The log is closed.")
        if self._waiting_bytes + size > _WAITING_BYTES and self._waiting_bytes:
            raise LogUnavailable("The disk is slower than what comes in.")
        if not self._groups or self._groups[-1].size > _GROUP_BYTES:
            self._groups.append(_Group())
        group = self._groups[-1]
        group.pieces += pieces
        group.waiters.append(told)
        group.size += size
        self._waiting_bytes += size
        if not self._is_writing:
            self._is_writing = True
            self._idle.clear()
            loop = asyncio.get_running_loop()
            loop.call_soon(self._hand_over, loop)  # after all that is appended in this turn

    async def close(self) -> None:
        """Write what waits and release the log; see `ports.log.EventLog`."""
        self._is_closed = True
        await self._idle.wait()
        if self._thread.is_alive():
            self._handed.put(None)
            await asyncio.to_thread(self._thread.join)
        self._files.close()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._groups:
            self._handed.put((loop, self._groups.popleft()))
        else:
            self._is_writing = False
            self._idle.set()

    def _write_groups(self) -> None:
        while (handed := self._handed.get()) is not None:
            loop, group = handed
            failure = self._files.append(group.pieces)
            loop.call_soon_threadsafe(self._finish, loop, group, failure)
            del handed, group  # what callers hold is not to wait for the next group

    def _finish(
        self, loop: asyncio.AbstractEventLoop, group: _Group, failure: _Failure | None
    ) -> None:
        self._waiting_bytes -= group.size
        self._is_failing = failure is not None
        self._hand_over(loop)  # first, so that the disk works while callers are told
        for told in group.waiters:
            told(None if failure is None else type(failure)(*failure.args))


def _settle(waiter: asyncio.Future[None], failure: HeadraceError | None) -> None:
    if waiter.done():  # its caller was cancelled
        return
    if failure is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(failure)


@contextmanager
def _closing_on_failure(directory: LogDirectory) -> Generator[None]:
    try:
        yield
    except BaseException:
        directory.close()
        raise


def lock_log(directory: LogDirectory, patience_s: float) -> None:
    """Take a log's lock; blocking. Raises `OperatorError` when it does not come free in time."""
    pauses = int(patience_s / _LOCK_PAUSE_S)
    while not directory.try_lock():
        if pauses <= 0:
            raise OperatorError(f"The log {directory.path} is in use by another process.")
        pauses -= 1
        time.sleep(_LOCK_PAUSE_S)


class _SegmentFiles:
    """The blocking part: knows the durable end and the open segment. Used by the log's thread."""

    def __init__(
        self,
        directory: LogDirectory,
        *,
        end: LogPosition,
        metrics: Metrics,
        clock: Clock,
        segment_bytes: int,
        disk: Disk,
    ) -> None:
        self._directory = directory
        self._end = end
        self._metrics = metrics
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._disk = disk
        self._file: int | None = None
        self._is_failing = False
        self._has_told = False
        self._lines = LineBudget(lines=1, window_s=10.0, monotonic_s=clock.monotonic_s)

    def append(self, pieces: list[bytes]) -> _Failure | None:
        """Write, sync and publish; return why it failed, or None.

        After a failure the disk is first tried with a new segment's header: of what is refused
        then, nothing was written that could be read one day.
        """
        failure = self._append([]) if self._is_failing and pieces else None
        return failure or self._append(pieces)

    def _append(self, pieces: list[bytes]) -> _Failure | None:
        target = self._end
        try:
            if self._is_failing and self._directory.is_deleted():
                self._directory = self._made_anew(self._directory)
            content = b"".join(pieces)
            if target.offset + len(content) > self._segment_bytes:
                self._close_segment()
            if self._file is None:
                target = LogPosition(self._end.segment + 1, 0)
                header = SegmentHeader(target.segment, previous_end=self._end.offset)
                content = pack_header(header) + content
            self._end = self._write(target, content)
        except (OSError, MemoryError) as error:
            self._note_failure(error)
            is_gone = self._abandon(target, holds_records=bool(pieces))
            refused = LogUnavailable if is_gone else LogUncertain
            return refused(f"Events cannot be written to disk: {error}.")
        self._note_success(has_stored=bool(pieces))
        return None

    def close(self) -> None:
        """Close the files and give the lock back."""
        self._close_segment()
        self._directory.close()

    def _write(self, target: LogPosition, content: bytes) -> LogPosition:
        end = LogPosition(target.segment, target.offset + len(content))
        is_new = self._file is None
        if self._file is None:
            self._file = self._disk.create(self._directory.segment_path(target.segment))
        self._disk.write(self._file, content, target.offset)
        started_s = self._clock.monotonic_s()
        self._disk.sync(self._file)
        self._metrics.observe("headrace_log_fsync_seconds", self._clock.monotonic_s() - started_s)
        if is_new:
            self._disk.sync_directory(self._directory.path)
        if self._directory.is_deleted() or is_deleted(self._file):
            raise FileNotFoundError(errno.ENOENT, "the log was deleted")
        self._metrics.count("headrace_log_appended_bytes_total", len(content))
        self._directory.publish(end)
        return end

    def _abandon(self, target: LogPosition, *, holds_records: bool) -> bool:
        """Cut a failed group off; tell whether it is certain that nothing of it is ever read.

        After a failed fsync the kernel may have dropped what it could not write, so the segment is
        not used again. Where even the cut fails, a note and the next segment's header tell the end.
        """
        if self._file is None:
            return True
        is_gone = self._cut(self._file, target.offset)
        self._close_segment()
        if is_gone or not holds_records:
            return True
        self._end = target  # also of a segment that has just begun: its number is not used again
        return self._directory.note_refused(target)

    def _made_anew(self, deleted: LogDirectory) -> LogDirectory:
        """Make a directory again that somebody deleted; its numbers go on. Raises `OSError`."""
        create_directory(deleted.path, disk=self._disk)
        made = LogDirectory(deleted.path, disk=self._disk)
        with _closing_on_failure(made):
            if not made.try_lock():
                raise BlockingIOError(errno.EAGAIN, "the log is in use by another process")
            made.publish(self._end)
        deleted.close()
        return made

    def _cut(self, file: int, size: int) -> bool:
        try:
            self._disk.truncate(file, size)
            self._disk.sync(file)
        except OSError as error:
            get_logger().error("log_cut_failed", log=self._directory.path.name, reason=str(error))
            return False
        return True

    def _note_failure(self, error: BaseException) -> None:
        self._is_failing = True
        left_out = self._lines.take("log_write_failed")
        if left_out is not None:
            self._has_told = True
            facts = {"left_out": left_out} if left_out else {}
            name = self._directory.path.name
            get_logger().error("log_write_failed", log=name, reason=str(error), **facts)

    def _note_success(self, *, has_stored: bool) -> None:
        self._is_failing = False
        if has_stored and self._has_told:
            self._has_told = False
            get_logger().info("log_write_resumed", log=self._directory.path.name)

    def _close_segment(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # all that counts was synced before
                os.close(file)
