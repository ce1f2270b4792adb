"""The writer of a durable log: segment files, and one fsync for a group of appends."""

import asyncio
import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from headrace.adapters.event_log.file_ops import FileOps, create_directory
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_files import Failure, SegmentFiles, closing_on_failure
from headrace.adapters.event_log.segment_format import FRAME_SIZE, frame_header
from headrace.base.clock import Clock
from headrace.base.errors import HeadraceError, LogUnavailable, OperatorError
from headrace.base.metrics import Metrics
from headrace.ports.event_log import OnDurable

SEGMENT_BYTES = 64 * 1024 * 1024
_MAX_GROUP_BYTES = 8 * 1024 * 1024
_MAX_QUEUED_BYTES = 256 * 1024 * 1024
_LOCK_RETRY_S = 0.02


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

    def __init__(self, files: SegmentFiles) -> None:
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
            with closing_on_failure(directory):
                lock_log(directory, lock_timeout_s)
                end = directory.recover()
                directory.set_recovered()
        except OSError as error:
            raise OperatorError(f"cannot open the log {root / name}: {error}") from error
        files = SegmentFiles(
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
        self, loop: asyncio.AbstractEventLoop, group: _Group, failure: Failure | None
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


def lock_log(directory: LogDirectory, timeout_s: float) -> None:
    """Acquire a log's lock; blocking. Raises `OperatorError` after `timeout_s`."""
    retries = int(timeout_s / _LOCK_RETRY_S)
    while not directory.try_lock():
        if retries <= 0:
            raise OperatorError(f"the log {directory.path} is in use by another process")
        retries -= 1
        time.sleep(_LOCK_RETRY_S)
