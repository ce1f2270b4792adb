"""The writer of a durable log: segment files, and one fsync for a group of appends."""

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
    FileOps,
    LogDirectory,
    create_directory,
    is_deleted,
)
from headrace.adapters.event_log.segment_format import (
    FRAME_SIZE,
    SegmentHeader,
    frame_header,
    pack_header,
)
from headrace.base.clock import Clock
from headrace.base.errors import DurabilityUnknown, HeadraceError, LogUnavailable, OperatorError
from headrace.base.log_throttle import LogThrottle
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.event_log import LogOffset, OnDurable

SEGMENT_BYTES = 64 * 1024 * 1024
_MAX_GROUP_BYTES = 8 * 1024 * 1024
_MAX_QUEUED_BYTES = 256 * 1024 * 1024
_LOCK_RETRY_S = 0.02

_Failure = LogUnavailable | DurabilityUnknown


class _Group:
    """The records that one write and one fsync make durable, and their callbacks."""

    __slots__ = ("callbacks", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.callbacks: list[OnDurable] = []
        self.size = 0


class SegmentLog:
    """An `EventLog` in `<root>/<name>`, in the format of `segment_format`.

    Group commit: while the log's thread writes and syncs one group of records, appends collect in
    the next. A failed group is truncated and rejected as a whole. The next one begins a new
    segment, whose header is written and synced first, so the log recovers when the disk does.
    """

    def __init__(self, files: "_SegmentFiles") -> None:
        self._files = files
        self._groups: deque[_Group] = deque()
        self._queued_bytes = 0
        self._is_writing = False
        self._is_closed = False
        self._is_failing = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._write_queue: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Group] | None] = (
            SimpleQueue()
        )
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
        lock_timeout_s: float = 10.0,
        file_ops: FileOps | None = None,
    ) -> "SegmentLog":
        """Lock and recover the log; blocking. Raises `OperatorError`.

        Waits for the lock: the loader takes that of a log without a writer for a short time.
        """
        file_ops = file_ops or FileOps()
        try:
            create_directory(root / name, file_ops=file_ops)
            directory = LogDirectory(root / name, file_ops=file_ops)
            with _closing_on_failure(directory):
                lock_log(directory, lock_timeout_s)
                end = directory.recover()
                directory.set_recovered()
        except OSError as error:
            raise OperatorError(f"cannot open the log {root / name}: {error}") from error
        files = _SegmentFiles(
            directory,
            end=end,
            metrics=metrics,
            clock=clock,
            segment_bytes=segment_bytes,
            file_ops=file_ops,
        )
        return cls(files)

    async def append(self, record: bytes) -> None:
        """Make a record durable; see `ports.event_log.EventLog`."""
        waiter = asyncio.get_running_loop().create_future()
        self.append_nowait(record, partial(_resolve_waiter, waiter))
        await waiter

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Append without waiting; see `ports.event_log.EventLog`."""
        self._enqueue((frame_header(record), record), FRAME_SIZE + len(record), on_durable)

    async def is_ready(self) -> bool:
        """Return whether the disk takes records; probes it where the last group failed."""
        if self._is_failing:
            with suppress(LogUnavailable):
                await self._probe_disk()
        return not (self._is_failing or self._is_closed)

    async def _probe_disk(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._enqueue((), 0, partial(_resolve_waiter, waiter))  # a segment's header, and no record
        await waiter

    def _enqueue(self, pieces: tuple[bytes, ...], size: int, on_durable: OnDurable) -> None:
        if self._is_closed:
            raise LogUnavailable("The log is closed.")
        if self._queued_bytes + size > _MAX_QUEUED_BYTES and self._queued_bytes:
            raise LogUnavailable("The disk is slower than the events arrive.")
        if not self._groups or self._groups[-1].size > _MAX_GROUP_BYTES:
            self._groups.append(_Group())
        group = self._groups[-1]
        group.pieces += pieces
        group.callbacks.append(on_durable)
        group.size += size
        self._queued_bytes += size
        if not self._is_writing:
            self._is_writing = True
            self._idle.clear()
            loop = asyncio.get_running_loop()
            loop.call_soon(self._submit_next_group, loop)  # after all appends of this iteration

    async def close(self) -> None:
        """Write the pending records and release the log; see `ports.event_log.EventLog`."""
        self._is_closed = True
        await self._idle.wait()
        if self._thread.is_alive():
            self._write_queue.put(None)
            await asyncio.to_thread(self._thread.join)
        self._files.close()

    def _submit_next_group(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._groups:
            self._write_queue.put((loop, self._groups.popleft()))
        else:
            self._is_writing = False
            self._idle.set()

    def _write_groups(self) -> None:
        while (queued := self._write_queue.get()) is not None:
            loop, group = queued
            failure = self._files.append(group.pieces)
            loop.call_soon_threadsafe(self._complete_group, loop, group, failure)
            del queued, group  # frees the records now, not when the next group arrives

    def _complete_group(
        self, loop: asyncio.AbstractEventLoop, group: _Group, failure: _Failure | None
    ) -> None:
        self._queued_bytes -= group.size
        self._is_failing = failure is not None
        self._submit_next_group(loop)  # first, so that the disk works during the callbacks
        for on_durable in group.callbacks:
            on_durable(None if failure is None else type(failure)(*failure.args))


def _resolve_waiter(waiter: asyncio.Future[None], failure: HeadraceError | None) -> None:
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


def lock_log(directory: LogDirectory, timeout_s: float) -> None:
    """Acquire a log's lock; blocking. Raises `OperatorError` after `timeout_s`."""
    retries = int(timeout_s / _LOCK_RETRY_S)
    while not directory.try_lock():
        if retries <= 0:
            raise OperatorError(f"the log {directory.path} is in use by another process")
        retries -= 1
        time.sleep(_LOCK_RETRY_S)


class _SegmentFiles:
    """The blocking part: has the durable end and the open segment. Used by the log's thread."""

    def __init__(
        self,
        directory: LogDirectory,
        *,
        end: LogOffset,
        metrics: Metrics,
        clock: Clock,
        segment_bytes: int,
        file_ops: FileOps,
    ) -> None:
        self._directory = directory
        self._end = end
        self._metrics = metrics
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._capacity = segment_bytes  # of the open segment, which ends with its reserved space
        self._file_ops = file_ops
        self._file: int | None = None
        self._is_failing = False
        self._has_logged_failure = False
        self._log_throttle = LogThrottle(lines=1, window_s=10.0, monotonic_s=clock.monotonic_s)

    def append(self, pieces: list[bytes]) -> _Failure | None:
        """Write, sync and publish a group; return the failure, or None.

        After a failure the disk is first probed with the header of a new segment. When the probe
        fails, the group was never written, so it is certain that it is never read.
        """
        failure = self._append([]) if self._is_failing and pieces else None
        return failure or self._append(pieces)

    def _append(self, pieces: list[bytes]) -> _Failure | None:
        target = self._end
        try:
            if self._is_failing and self._directory.is_deleted():
                self._directory = self._recreate(self._directory)
            content = b"".join(pieces)
            if target.offset + len(content) > self._capacity:
                self._finish_segment()
            if self._file is None:
                target = LogOffset(self._end.segment + 1, 0)
                header = SegmentHeader(target.segment, previous_end=self._end.offset)
                content = pack_header(header) + content
            self._end = self._write(target, content)
        except (OSError, MemoryError) as error:
            self._record_failure(error)
            is_truncated = self._discard_failed_group(target, has_records=bool(pieces))
            error_type = LogUnavailable if is_truncated else DurabilityUnknown
            return error_type(f"cannot write events to disk: {error}")
        self._record_success(has_records=bool(pieces))
        return None

    def close(self) -> None:
        """Close the files and release the lock."""
        self._finish_segment()
        self._directory.close()

    def _write(self, target: LogOffset, content: bytes) -> LogOffset:
        end = LogOffset(target.segment, target.offset + len(content))
        is_new_segment = self._file is None
        if self._file is None:
            self._file = self._file_ops.create(self._directory.segment_path(target.segment))
            reserved = self._file_ops.reserve(self._file, self._segment_bytes)
            self._capacity = reserved or self._segment_bytes
        self._file_ops.write(self._file, content, target.offset)
        started_s = self._clock.monotonic_s()
        self._file_ops.sync(self._file)
        self._metrics.observe("headrace_log_fsync_seconds", self._clock.monotonic_s() - started_s)
        if is_new_segment:
            self._file_ops.sync_directory(self._directory.path)
        if self._directory.is_deleted() or is_deleted(self._file):
            raise FileNotFoundError(errno.ENOENT, "the log was deleted")
        self._metrics.count("headrace_log_appended_bytes_total", len(content))
        self._directory.publish(end)
        return end

    def _discard_failed_group(self, target: LogOffset, *, has_records: bool) -> bool:
        """Truncate a failed group; return whether it is certain that it is never read.

        After a failed fsync the kernel may have dropped dirty pages, so the segment is not used
        again. Where the truncation fails too, the valid end of the segment is recorded in the
        marker file and in the header of the next segment.
        """
        if self._file is None:
            return True
        is_truncated = self._truncate(self._file, target.offset)
        self._close_segment()
        if is_truncated or not has_records:
            return True
        self._end = target  # also of a segment that was just created: its number is not reused
        return self._directory.record_discarded_tail(target)

    def _recreate(self, deleted: LogDirectory) -> LogDirectory:
        """Create a deleted directory again; segment numbers continue. Raises `OSError`."""
        create_directory(deleted.path, file_ops=self._file_ops)
        recreated = LogDirectory(deleted.path, file_ops=self._file_ops)
        with _closing_on_failure(recreated):
            if not recreated.try_lock():
                raise BlockingIOError(errno.EAGAIN, "the log is in use by another process")
            recreated.publish(self._end)
            recreated.set_recovered()
        deleted.close()
        return recreated

    def _truncate(self, file: int, size: int) -> bool:
        try:
            self._file_ops.truncate(file, size)
            self._file_ops.sync(file)
        except OSError as error:
            get_logger().error("log_cut_failed", log=self._directory.path.name, reason=str(error))
            return False
        return True

    def _record_failure(self, error: BaseException) -> None:
        self._is_failing = True
        suppressed = self._log_throttle.admit("log_write_failed")
        if suppressed is not None:
            self._has_logged_failure = True
            fields = {"left_out": suppressed} if suppressed else {}
            name = self._directory.path.name
            get_logger().error("log_write_failed", log=name, reason=str(error), **fields)

    def _record_success(self, *, has_records: bool) -> None:
        self._is_failing = False
        if has_records and self._has_logged_failure:
            self._has_logged_failure = False
            get_logger().info("log_write_resumed", log=self._directory.path.name)

    def _finish_segment(self) -> None:
        """Close a segment, whose reserved space would otherwise be freed with it."""
        if self._file is not None:
            with suppress(OSError):
                self._file_ops.free_reserved(self._file)
        self._close_segment()

    def _close_segment(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # everything acknowledged was synced before
                os.close(file)
