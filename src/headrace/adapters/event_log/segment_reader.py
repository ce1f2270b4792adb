"""The durable log's reading side: all logs below one directory, for the loader."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from headrace.adapters.event_log.segment_directory import (
    Disk,
    LogDirectory,
    create_directory,
    note_loaded,
    read_exactly,
)
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    find_record,
    parse_header,
    parse_records,
    promised_size,
)
from headrace.adapters.event_log.unreadable_logs import UnreadableLogs
from headrace.base.clock import Clock, SystemClock
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.event_log import LOG_START, LogChunk, LoggedRecord, LogPosition

_LEAST_BYTES = 4096


class _Stretch(Struct, frozen=True):
    """A part of one segment that is to be read."""

    log: str
    start: LogPosition
    end: int


class SegmentReader:
    """A `LogReader` over every log in `root`; damaged bytes are copied into `damaged`.

    A log without a living writer (a crashed one, or one of more workers than there are now) is
    recovered as its writer would, under the writer's lock. One that cannot be read ends for its
    reader where that begins, and is tried again after a pause: the others go on.
    """

    def __init__(
        self,
        root: Path,
        *,
        damaged: Path,
        disk: Disk | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._root = root
        self._damaged = damaged
        self._disk = disk or Disk()
        self._directories: dict[str, LogDirectory] = {}
        self._unreadable = UnreadableLogs(clock=clock or SystemClock(), metrics=metrics)

    def durable_ends(self) -> Mapping[str, LogPosition]:
        """Return the durable end of every log; see `ports.log.LogReader`."""
        names = sorted(path.name for path in self._root.glob("*/"))
        ends = ((name, self._readable_end(name)) for name in names)
        return {name: end for name, end in ends if end is not None}

    def unreadable(self) -> Sequence[str]:
        """Return the logs that cannot be read now; see `ports.log.LogReader`."""
        return self._unreadable.names()

    def read(self, log: str, *, after: LogPosition, until: LogPosition, max_bytes: int) -> LogChunk:
        """Read whole records; see `ports.log.LogReader`."""
        try:
            return self._read(log, after, until, max_bytes)
        except OSError as error:
            self._unreadable.note(log, error, place=after)
            raise

    def bytes_between(self, log: str, *, after: LogPosition, until: LogPosition) -> int:
        """Return how many bytes lie between two places; see `ports.log.LogReader`."""
        try:
            stretches = self._stretches(log, after, until)
        except OSError:  # to read them says more
            return 0
        return sum(max(stretch.end - stretch.start.offset, 0) for stretch in stretches)

    def remove_before(self, log: str, position: LogPosition) -> None:
        """Delete segments before the position's; see `ports.log.LogReader`.

        The last segment always stays: its number is what the next one is counted from. Word of
        the position is left for those who measure the backlog.
        """
        directory = self._directory(log)
        for sequence in directory.sequences():
            if sequence < position.segment:
                directory.segment_path(sequence).unlink(missing_ok=True)
        note_loaded(directory.path, position)

    def note_loaded(self, positions: Mapping[str, LogPosition]) -> None:
        """Leave word again of what is loaded: what a crash kept from being told or removed.

        Where the disk does not let it, the next batch does.
        """
        try:
            for log, end in self.durable_ends().items():
                if positions.get(log, LOG_START) <= end:
                    self.remove_before(log, positions.get(log, LOG_START))
        except OSError as error:
            get_logger().warning("loaded_not_noted", reason=error.strerror)

    def close(self) -> None:
        """Close the logs. May be called twice."""
        for directory in self._directories.values():
            directory.close()
        self._directories.clear()

    def _directory(self, log: str) -> LogDirectory:
        known = self._directories.get(log)
        if known is not None and known.is_deleted():  # its writer makes it again
            known.close()
            del self._directories[log]
        if log not in self._directories:
            self._directories[log] = LogDirectory(self._root / log, disk=self._disk)
        return self._directories[log]

    def _readable_end(self, log: str) -> LogPosition | None:
        """Return where a log ends, or how far it can be read; None where even that is not known."""
        known = self._unreadable.readable_end(log)
        if self._unreadable.is_resting(log):
            return known
        try:
            end = self._durable_end(self._directory(log))
            if known is not None and known < end:
                self._read(log, known, end, _LEAST_BYTES)
        except OSError as error:
            self._unreadable.note(log, error, place=known)
            return known
        self._unreadable.forget(log)
        return end

    def _read(self, log: str, after: LogPosition, until: LogPosition, max_bytes: int) -> LogChunk:
        damaged_bytes = 0
        for stretch in self._stretches(log, after, until):
            chunk = self._read_stretch(stretch, max_bytes)
            damaged_bytes += chunk.damaged_bytes
            if chunk.records:
                return LogChunk(chunk.records, chunk.end, damaged_bytes)
        return LogChunk((), max(after, until), damaged_bytes)

    def _durable_end(self, directory: LogDirectory) -> LogPosition:
        if not directory.try_lock():
            return directory.durable_end()
        try:
            return directory.recover()
        finally:
            directory.unlock()

    def _stretches(self, log: str, after: LogPosition, until: LogPosition) -> Sequence[_Stretch]:
        directory = self._directory(log)
        sequences = [n for n in directory.sequences() if after.segment <= n <= until.segment]
        return [
            _Stretch(
                log=log,
                start=after if n == after.segment else LogPosition(n, 0),
                end=until.offset if n == until.segment else end_of_segment(directory, n),
            )
            for n in sequences
        ]

    def _read_stretch(self, stretch: _Stretch, max_bytes: int) -> LogChunk:
        path = self._directory(stretch.log).segment_path(stretch.start.segment)
        start, damaged_bytes = stretch.start, 0
        with path.open("rb", buffering=0) as opened:
            file = opened.fileno()
            if start.offset == 0 and parse_header(read_exactly(file, HEADER_SIZE, 0)) is not None:
                start = LogPosition(start.segment, HEADER_SIZE)
            while start.offset < stretch.end:
                records = _read_records(file, start, stretch.end, max_bytes)
                if records:
                    return LogChunk(records, records[-1].end, damaged_bytes)
                behind = self._set_damage_aside(file, stretch, start)
                damaged_bytes += behind.offset - start.offset
                start = behind
        return LogChunk((), start, damaged_bytes)

    def _set_damage_aside(self, file: int, stretch: _Stretch, start: LogPosition) -> LogPosition:
        """Copy what cannot be read and return where the next whole record begins."""
        remaining = stretch.end - start.offset
        rest = read_exactly(file, remaining, start.offset)
        behind = find_record(rest, 1)
        size = behind if behind < len(rest) else remaining
        name = f"{stretch.log}-{start.segment:020}-{start.offset:010}.bin"
        create_directory(self._damaged, disk=self._disk)
        (self._damaged / name).write_bytes(rest[:size])
        get_logger().error("log_damaged", log=stretch.log, damaged_bytes=size, kept_as=name)
        return LogPosition(start.segment, start.offset + size)


def end_of_segment(directory: LogDirectory, sequence: int) -> int:
    """Return where a segment that is not the last ends: as the next one says, else its size."""
    size = directory.size_of(sequence)
    with suppress(FileNotFoundError):
        with directory.segment_path(sequence + 1).open("rb", buffering=0) as following:
            header = parse_header(following.read(HEADER_SIZE))
        if header is not None:
            return min(header.previous_end, size)
    return size


def _read_records(file: int, start: LogPosition, end: int, max_bytes: int) -> list[LoggedRecord]:
    available = end - start.offset
    data = read_exactly(file, min(max(max_bytes, _LEAST_BYTES), available), start.offset)
    records = parse_records(data, start)
    if records or len(data) == available:
        return records
    size = promised_size(data, 0)  # the first record may be longer than what was asked for
    if size is None or size > available:
        return []
    return parse_records(read_exactly(file, size, start.offset), start)
