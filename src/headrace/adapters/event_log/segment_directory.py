"""The directory of one log: its segment files, locks and durable marker, and its recovery."""

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from headrace.adapters.data_dir.paths import DURABLE_MARKER, SEGMENT_SUFFIX
from headrace.adapters.event_log.file_ops import FileOps, is_deleted, read_exactly
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    last_record_end,
    parse_header,
    segment_name,
)
from headrace.base.errors import system_reason
from headrace.base.logs import get_logger
from headrace.ports.event_log import LOG_START, LogOffset

_SLOT = struct.Struct(">QQQI")
_SLOTS = 2


class LogDirectory:
    """The directory of one log, with its locks and its durable marker.

    The marker file has the durable end of the log. The writer updates it after each fsync and
    before it acknowledges; readers in other processes follow it. It has two slots, written in
    turn, each with a checksum, so one of them is always valid for a reader. It is not synced: the
    page cache outlives a killed process, and after a power cut the marker may be old, never too
    new. pwrite and not a memory mapping, because a full disk is then an error and not SIGBUS. A
    third slot has the end of the last segment whose discarded tail could not be truncated.

    The writer locks the marker file, and after its recovery the directory, too: until then the
    marker may be from before a power cut.
    """

    def __init__(self, path: Path, *, file_ops: FileOps) -> None:
        self.path = path
        self._file_ops = file_ops
        self._file = os.open(path / DURABLE_MARKER, os.O_RDWR | os.O_CREAT, 0o600)
        self._directory_file = -1  # open while it is locked
        try:
            self._generation, self._marker = self._read_marker()
        except OSError:
            self.close()  # a reader opens it again and again
            raise
        self._last_freed = 0  # the last segment whose space, reserved by a killed writer, was freed

    def close(self) -> None:
        """Close the files, which releases the locks. May be called twice."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
        self._close_directory_file()

    def try_lock(self) -> bool:
        """Acquire the writer's lock without waiting; return whether that succeeded."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def set_recovered(self) -> None:
        """Tell readers, until this is closed, that the marker is right. The caller has the lock.

        Waits for a reader that is in `is_recovered`, which is short.
        """
        self._close_directory_file()
        self._directory_file = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._directory_file, fcntl.LOCK_EX)

    def is_recovered(self) -> bool:
        """Return whether the process that has the writer's lock has recovered the log."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(directory)
        return False

    def is_deleted(self) -> bool:
        """Return whether the directory, or the marker file in it, was deleted."""
        return is_deleted(self._file)

    def durable_offset(self) -> LogOffset:
        """Read and return the durable end of the log."""
        self._generation, self._marker = self._read_marker()
        return self._marker or LOG_START

    def publish(self, end: LogOffset) -> None:
        """Set the durable end of the log. The caller holds the lock."""
        generation = self._generation + 1
        packed = _SLOT.pack(generation, end.segment, end.offset, 0)[:-4]
        slot = packed + crc32(packed).to_bytes(4, "big")
        os.pwrite(self._file, slot, generation % _SLOTS * _SLOT.size)
        self._generation, self._marker = generation, end

    def record_discarded_tail(self, end: LogOffset) -> bool:
        """Record durably that the bytes of a segment after `end` are void; return whether it did.

        For a rejected group that could not be truncated. The segment must not be appended to
        afterwards. Needs no free space on the disk. The caller holds the lock.
        """
        packed = _SLOT.pack(0, end.segment, end.offset, 0)[:-4]
        try:
            os.pwrite(self._file, packed + crc32(packed).to_bytes(4, "big"), _SLOTS * _SLOT.size)
            self._file_ops.sync(self._file)
        except OSError as error:
            get_logger().error(
                "log_refusal_not_noted", log=self.path.name, reason=system_reason(error)
            )
            return False
        return True

    def valid_size(self, sequence: int) -> int:
        """Return the size of a segment without its discarded tail. Raises `OSError`."""
        size = self.segment_path(sequence).stat().st_size
        return min(size, self._discarded_from(sequence, size))

    def sequences(self) -> list[int]:
        """Return the numbers of the segments, oldest first; none without the directory.

        Raises `OSError` if it cannot be listed. `Path.glob` would return no segments then.
        """
        try:
            files = list(self.path.iterdir())
        except FileNotFoundError:
            return []
        return sorted(
            int(file.stem)
            for file in files
            if file.suffix == SEGMENT_SUFFIX and file.stem.isdecimal()  # not somebody's copy
        )

    def segment_path(self, sequence: int) -> Path:
        """Return the file of a segment."""
        return self.path / segment_name(sequence)

    def recover(self) -> LogOffset:
        """Truncate an incomplete tail, make the rest durable, and return the durable end.

        Damage before the last complete record remains: the reader copies it aside. Cheap where the
        marker is up to date. The caller holds the lock. Raises `OSError`.
        """
        marker, sequences = self.durable_offset(), self.sequences()
        if not sequences or sequences[-1] < marker.segment:
            return marker
        with self.segment_path(sequences[-1]).open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if marker == LogOffset(sequences[-1], size):
                self._free_reserved(sequences[-1], file.fileno(), size)
                return marker
            readable = min(size, self._discarded_from(sequences[-1], size))
            known = min(marker.offset, readable) if marker.segment == sequences[-1] else 0
            end = LogOffset(sequences[-1], _valid_size(file.fileno(), known, readable))
            cut = read_exactly(file.fileno(), size - end.offset, end.offset).rstrip(b"\0")
            self._file_ops.truncate(file.fileno(), end.offset)
            self._file_ops.sync(file.fileno())
        self._file_ops.sync_directory(self.path)
        self.publish(end)
        if cut:  # zeros were written ahead and are no part of an append
            get_logger().warning("log_tail_cut", log=self.path.name, cut_bytes=len(cut))
        return end

    def _free_reserved(self, sequence: int, file: int, size: int) -> None:
        """Free what a killed writer had reserved for its last segment, once."""
        if self._last_freed != sequence:
            self._last_freed = sequence
            with suppress(OSError):  # it is freed with the segment
                self._file_ops.free_after(file, size)

    def _close_directory_file(self) -> None:
        file, self._directory_file = self._directory_file, -1
        if file >= 0:
            os.close(file)

    def _discarded_from(self, sequence: int, size: int) -> int:
        """Return the offset at which the discarded tail of a segment begins; `size` without one."""
        for _, discarded in _parse_slots(os.pread(self._file, _SLOT.size, _SLOTS * _SLOT.size)):
            if discarded is not None and discarded.segment == sequence:
                return discarded.offset
        return size

    def _read_marker(self) -> tuple[int, LogOffset | None]:
        return _newest_marker(os.pread(self._file, _SLOTS * _SLOT.size, 0))


def read_durable_offset(path: Path) -> LogOffset | None:
    """Return the durable end of a log by its marker; None where it has none. Raises `OSError`.

    After a power cut the marker may be old until the log is recovered.
    """
    try:
        slots = (path / DURABLE_MARKER).read_bytes()[: _SLOTS * _SLOT.size]
    except FileNotFoundError:
        return None
    _, end = _newest_marker(slots)
    return end


def _newest_marker(slots: bytes) -> tuple[int, LogOffset | None]:
    return max([(0, None), *_parse_slots(slots)], key=lambda marker: marker[0])


def _parse_slots(data: bytes) -> list[tuple[int, LogOffset | None]]:
    slots = (data[at : at + _SLOT.size] for at in range(0, len(data), _SLOT.size))
    return [
        (generation, LogOffset(segment, offset))
        for slot in slots
        if len(slot) == _SLOT.size
        for generation, segment, offset, checksum in (_SLOT.unpack(slot),)
        if crc32(slot[:-4]) == checksum
    ]


def _valid_size(file: int, known: int, size: int) -> int:
    data = read_exactly(file, size - known, known)
    begin = HEADER_SIZE if known == 0 and parse_header(data) is not None else 0
    return known + last_record_end(data, begin)
