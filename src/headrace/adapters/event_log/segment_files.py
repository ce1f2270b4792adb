"""Writes groups of records to the segments of one log, and recovers from failures of the disk."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from headrace.adapters.event_log.file_ops import FileOps, create_directory, is_deleted
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import HEADER_SIZE, SegmentHeader, pack_header
from headrace.base.clock import Clock
from headrace.base.errors import DurabilityUnknown, LogUnavailable, system_reason
from headrace.base.log_throttle import LogThrottle
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LogOffset

Failure = LogUnavailable | DurabilityUnknown

_ZEROED_BYTES = 256 * 1024
"""How far a segment is ahead with zeros, which the next groups overwrite; see `zeroed_space`."""

_LARGE_GROUP_BYTES = 64 * 1024
"""A group of more bytes is appended without zeros, which would cost more than they save."""


class SegmentFiles:
    """The durable end and the open segment. Every method blocks; used by the log's thread."""

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
        self._is_zeroed_ahead = False
        self._zeroed_until = 0
        self._file: int | None = None
        self._is_failing = False
        self._has_logged_failure = False
        self._log_throttle = LogThrottle(lines=1, window_s=10.0, monotonic_s=clock.monotonic_s)

    def append(self, pieces: list[bytes]) -> Failure | None:
        """Write, sync and publish a group; return the failure, or None.

        After a failure the disk is first probed with the header of a new segment. When the probe
        fails, the group was never written, so it is certain that it is never read.
        """
        failure = self._append([]) if self._is_failing and pieces else None
        return failure or self._append(pieces)

    def _append(self, pieces: list[bytes]) -> Failure | None:
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
            return error_type(f"cannot write events to disk: {system_reason(error)}")
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
            self._is_zeroed_ahead = self._file_ops.is_zeroing_worthwhile(
                self._file, self._segment_bytes
            )
            self._zeroed_until = 0
        self._file_ops.write(self._file, content, target.offset)
        self._write_zeros(self._file, end.offset, size=len(content))
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

    def _write_zeros(self, file: int, end: int, *, size: int) -> None:
        """Write zeros after a group of a size that ends beyond those of before.

        A segment without records gets none: nothing that reads sizes must take it for a used one.
        """
        is_ahead = end <= self._zeroed_until
        if is_ahead or end == HEADER_SIZE or size > _LARGE_GROUP_BYTES or not self._is_zeroed_ahead:
            return
        until = min(end + _ZEROED_BYTES, self._capacity)
        try:
            self._file_ops.write(file, bytes(max(until - end, 0)), end)
        except OSError:  # a quota can have room for the group alone
            self._is_zeroed_ahead = False
            with suppress(OSError):
                self._file_ops.truncate(file, end)
        else:
            self._zeroed_until = until

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
        with closing_on_failure(recreated):
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
            get_logger().error(
                "log_cut_failed", log=self._directory.path.name, reason=system_reason(error)
            )
            return False
        return True

    def _record_failure(self, error: Exception) -> None:
        self._is_failing = True
        suppressed = self._log_throttle.admit("log_write_failed")
        if suppressed is not None:
            self._has_logged_failure = True
            fields = {"left_out": suppressed} if suppressed else {}
            name = self._directory.path.name
            get_logger().error("log_write_failed", log=name, reason=system_reason(error), **fields)

    def _record_success(self, *, has_records: bool) -> None:
        self._is_failing = False
        if has_records and self._has_logged_failure:
            self._has_logged_failure = False
            get_logger().info("log_write_resumed", log=self._directory.path.name)

    def _finish_segment(self) -> None:
        """Cut off the zeros and free the reserved space after the last record, and close."""
        if self._file is not None:
            with suppress(OSError):
                self._file_ops.free_after(self._file, self._end.offset)
        self._close_segment()

    def _close_segment(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # everything acknowledged was synced before
                os.close(file)


@contextmanager
def closing_on_failure(directory: LogDirectory) -> Generator[None]:
    """Close a directory if the block raises."""
    try:
        yield
    except BaseException:
        directory.close()
        raise
