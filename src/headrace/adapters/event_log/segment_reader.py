"""The reader of durable logs: all logs of one directory, for the loader."""

import errno
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from headrace.adapters.data_dir.files import remove_durably
from headrace.adapters.data_dir.paths import UNFINISHED_SUFFIX, log_folders
from headrace.adapters.event_log.file_ops import FileOps, create_directory, read_exactly
from headrace.adapters.event_log.loaded_marker import write_loaded_offset
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    declared_frame_size,
    find_record,
    parse_header,
    parse_records,
)
from headrace.adapters.event_log.unreadable_logs import UnreadableLogs
from headrace.base.clock import Clock, SystemClock
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START, LogChunk, LoggedRecord, LogOffset

_RECOVERY_POLL_S = 0.005
_RECOVERY_POLLS = 400
"""Two seconds: a segment is read and synced. The loader waits, so that no log is left out."""

_MIN_READ_BYTES = 4096
_PROBE_BYTES = 1024 * 1024


class _SegmentRange(Struct, frozen=True):
    """The part of one segment to read."""

    log: str
    start: LogOffset
    end: int


class SegmentReader:
    """A `LogReader` over every log in `root`; damaged bytes are copied into `damaged`.

    A log without a live writer (it crashed, or the number of workers was reduced) is recovered
    under the writer's lock, as its writer would. A log with an unreadable part ends before that
    part and is retried with a backoff; the other logs are not affected.
    """

    def __init__(
        self,
        root: Path,
        *,
        damaged: Path,
        file_ops: FileOps | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._root = root
        self._damaged = damaged
        self._file_ops = file_ops or FileOps()
        self._directories: dict[str, LogDirectory] = {}
        self._unreadable = UnreadableLogs(clock=clock or SystemClock(), metrics=metrics)

    def durable_offsets(self) -> Mapping[str, LogOffset]:
        """Return the durable end of every log; see `ports.event_log.LogReader`."""
        names = [path.name for path in log_folders(self._root)]
        ends = ((name, self._readable_end(name)) for name in names)
        return {name: end for name, end in ends if end is not None}

    def unreadable(self) -> Sequence[str]:
        """Return the logs that cannot be read now; see `ports.event_log.LogReader`."""
        return self._unreadable.names()

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        """Read complete records; see `ports.event_log.LogReader`."""
        try:
            return self._read(log, after, until, max_bytes)
        except OSError as error:
            self._unreadable.record_failure(log, error, offset=after)
            raise

    def find_unreadable(self, *, after: Mapping[str, LogOffset]) -> None:
        """Read every log from an offset on, so that `unreadable` has those that cannot be read."""
        for log, end in self.durable_offsets().items():
            offset = after.get(log, LOG_START)
            with suppress(OSError):
                while offset < end:
                    offset = self.read(log, after=offset, until=end, max_bytes=_PROBE_BYTES).end

    def newest_segment(self, log: str) -> int:
        """Return the highest number of a log's segments; see `ports.event_log.LogReader`."""
        return max(self._directory(log).sequences(), default=0)

    def size_between(self, log: str, *, after: LogOffset, until: LogOffset) -> int:
        """Return the number of bytes between two offsets; see `ports.event_log.LogReader`."""
        try:
            ranges = self._segment_ranges(log, after, until)
        except OSError:  # `read` reports it
            return 0
        return sum(
            max(segment_range.end - segment_range.start.offset, 0) for segment_range in ranges
        )

    def has_whole_history(self, log: str) -> bool:
        """Return whether no segment of a log was deleted yet. Raises `OSError`."""
        return (self._root / log).is_dir() and self._directory(log).sequences()[:1] == [1]

    def truncate_before(self, log: str, offset: LogOffset) -> None:
        """Delete the segments before that of `offset`; see `ports.event_log.LogReader`.

        Never deletes the last segment: its number determines the next one. Writes the offset into
        the log's directory, where `read_disk_usage` measures the backlog from it.
        """
        directory = self._directory(log)
        loaded = [number for number in directory.sequences() if number < offset.segment]
        remove_durably(directory.path, map(directory.segment_path, loaded))
        write_loaded_offset(directory.path, offset)

    def publish_loaded_offsets(self, offsets: Mapping[str, LogOffset]) -> None:
        """Truncate every log to what is loaded, which a crash may have prevented.

        An error of the disk is logged: the next batch does it again.
        """
        try:
            for log, end in self.durable_offsets().items():
                if offsets.get(log, LOG_START) <= end:
                    self.truncate_before(log, offsets.get(log, LOG_START))
        except OSError as error:
            get_logger().warning("loaded_not_noted", reason=error.strerror)

    def close(self) -> None:
        """Close the logs. May be called twice."""
        for directory in self._directories.values():
            directory.close()
        self._directories.clear()

    def _directory(self, log: str) -> LogDirectory:
        known = self._directories.get(log)
        if known is not None and known.is_deleted():  # its writer creates it again
            known.close()
            del self._directories[log]
        if log not in self._directories:
            self._directories[log] = LogDirectory(self._root / log, file_ops=self._file_ops)
        return self._directories[log]

    def _readable_end(self, log: str) -> LogOffset | None:
        """Return the end of a log, or of its readable part; None where neither is known."""
        known = self._unreadable.readable_end(log)
        if self._unreadable.is_backing_off(log):
            return known
        try:
            end = self._durable_end(self._directory(log))
            if known is not None and known < end:
                self._read(log, known, end, _MIN_READ_BYTES)
        except OSError as error:
            self._unreadable.record_failure(log, error, offset=known)
            return known
        self._unreadable.record_recovery(log)
        return end

    def _read(self, log: str, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        damaged_bytes = 0
        for segment_range in self._segment_ranges(log, after, until):
            chunk = self._read_range(segment_range, max_bytes)
            damaged_bytes += chunk.damaged_bytes
            if chunk.records:
                return LogChunk(chunk.records, chunk.end, damaged_bytes)
        return LogChunk((), max(after, until), damaged_bytes)

    def _durable_end(self, directory: LogDirectory) -> LogOffset:
        """Return the durable end of a log; recovers one that has no writer.

        While its writer recovers it, the marker may be from before a power cut: waits for that, and
        raises `OSError` where it takes long.
        """
        for _ in range(_RECOVERY_POLLS):
            if directory.try_lock():
                try:
                    return directory.recover()
                finally:
                    directory.unlock()
            if directory.is_recovered():
                return directory.durable_offset()
            time.sleep(_RECOVERY_POLL_S)
        raise TimeoutError(errno.ETIMEDOUT, "its writer has not recovered it yet")

    def _segment_ranges(
        self, log: str, after: LogOffset, until: LogOffset
    ) -> Sequence[_SegmentRange]:
        directory = self._directory(log)
        sequences = [n for n in directory.sequences() if after.segment <= n <= until.segment]
        return [
            _SegmentRange(
                log=log,
                start=after if n == after.segment else LogOffset(n, 0),
                end=until.offset if n == until.segment else end_of_segment(directory, n),
            )
            for n in sequences
        ]

    def _read_range(self, segment_range: _SegmentRange, max_bytes: int) -> LogChunk:
        path = self._directory(segment_range.log).segment_path(segment_range.start.segment)
        start, damaged_bytes = segment_range.start, 0
        with path.open("rb", buffering=0) as opened:
            file = opened.fileno()
            if start.offset == 0 and parse_header(read_exactly(file, HEADER_SIZE, 0)) is not None:
                start = LogOffset(start.segment, HEADER_SIZE)
            while start.offset < segment_range.end:
                records = _read_records(file, start, segment_range.end, max_bytes)
                if records:
                    return LogChunk(records, records[-1].end, damaged_bytes)
                next_start = self._save_damaged_bytes(file, segment_range, start)
                damaged_bytes += next_start.offset - start.offset
                start = next_start
        return LogChunk((), start, damaged_bytes)

    def _save_damaged_bytes(
        self, file: int, segment_range: _SegmentRange, start: LogOffset
    ) -> LogOffset:
        """Copy damaged bytes to a file, and return where the next complete record begins."""
        remaining = segment_range.end - start.offset
        rest = read_exactly(file, remaining, start.offset)
        next_start = find_record(rest, 1)
        size = next_start if next_start < len(rest) else remaining
        name = f"{segment_range.log}-{start.segment:020}-{start.offset:010}.bin"
        self._keep_durably(name, rest[:size])
        get_logger().error("log_damaged", log=segment_range.log, damaged_bytes=size, kept_as=name)
        return LogOffset(start.segment, start.offset + size)

    def _keep_durably(self, name: str, content: bytes) -> None:
        """Write a file in `damaged`. Synced, because the segment with these bytes is deleted."""
        create_directory(self._damaged, file_ops=self._file_ops)
        unfinished = self._damaged / f"{name}{UNFINISHED_SUFFIX}"
        file = self._file_ops.create(unfinished)
        try:
            self._file_ops.write(file, content, 0)
            self._file_ops.sync(file)
        finally:
            os.close(file)
        unfinished.rename(self._damaged / name)
        self._file_ops.sync_directory(self._damaged)


def end_of_segment(directory: LogDirectory, sequence: int) -> int:
    """Return the end of a segment from the header of the next one, else its size."""
    size = directory.valid_size(sequence)
    with suppress(FileNotFoundError):
        with directory.segment_path(sequence + 1).open("rb", buffering=0) as next_segment:
            header = parse_header(next_segment.read(HEADER_SIZE))
        if header is not None:
            return min(header.previous_end, size)
    return size


def _read_records(file: int, start: LogOffset, end: int, max_bytes: int) -> list[LoggedRecord]:
    available = end - start.offset
    data = read_exactly(file, min(max(max_bytes, _MIN_READ_BYTES), available), start.offset)
    records = parse_records(data, start)
    if records or len(data) == available:
        return records
    size = declared_frame_size(data, 0)  # the first record may be longer than max_bytes
    if size is None or size > available:
        return []
    return parse_records(read_exactly(file, size, start.offset), start)
