"""A disk image that knows which writes were flushed.

Two files have the content of the disk: `current` with all writes, and `durable` with the writes up
to the last flush. The writes in between are in memory, and in a file as soon as the power is cut.
"""

import ctypes
import os
from enum import StrEnum
from pathlib import Path
from threading import Condition

import msgspec
from msgspec import Struct

_PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None, use_errno=True)


class Write(Struct, frozen=True, array_like=True):
    """One write since the last flush. The content is None where zeroes were written."""

    offset: int
    length: int
    content: bytes | None

    def part(self, begin: int, end: int) -> "Write":
        """Return the write of some of the bytes, counted from its offset."""
        content = None if self.content is None else self.content[begin:end]
        return Write(self.offset + begin, end - begin, content)

    def apply(self, descriptor: int) -> None:
        """Write to an image. Raises `OSError`."""
        if self.content is None:
            if self.length:
                _punch_hole(descriptor, self.offset, self.length)
            return
        written = os.pwrite(descriptor, self.content, self.offset)
        if written != self.length:
            raise OSError(f"{written} bytes of {self.length} were written")


class CutPoint(StrEnum):
    """What the power cut comes before: the next write, or the next flush, after a count."""

    WRITE = "write"
    FLUSH = "flush"


class Pending(Struct, frozen=True):
    """What was not flushed when the power was cut."""

    writes: int
    bytes: int


class RecordingImage:
    """A `BlockDevice` whose power can be cut.

    From the cut on, no write and no flush returns until `resume`. What is written then reaches
    `current` alone. One thread reads and writes; another one may cut and resume.
    """

    def __init__(self, *, current: Path, durable: Path) -> None:
        self._current = os.open(current, os.O_RDWR)
        self._durable = os.open(durable, os.O_RDWR)
        self._record = pending_file(durable)
        self._ignores_flushes = False
        self._condition = Condition()
        self._pending: list[Write] = []
        self._cut_point: CutPoint | None = None
        self._left = 0
        self._is_recording = True
        self._is_frozen = False
        self.size = os.fstat(self._current).st_size

    def read(self, size: int, offset: int) -> bytes:
        """Return the bytes at an offset, as written last."""
        return os.pread(self._current, size, offset)

    def write(self, content: bytes, offset: int) -> None:
        """Write bytes; they are durable after the next flush."""
        self._write(Write(offset, len(content), content))

    def zero(self, length: int, offset: int) -> None:
        """Write zeroes; they are durable after the next flush."""
        self._write(Write(offset, length, None))

    def flush(self) -> None:
        """Make everything durable that was written before."""
        with self._condition:
            self._pass(CutPoint.FLUSH)
            if self._is_recording and not self._ignores_flushes:
                for write in self._pending:
                    write.apply(self._durable)
                self._pending.clear()

    def ignore_flushes(self) -> None:
        """Make nothing durable any more, as a disk that confirms what is in its cache."""
        with self._condition:
            self._ignores_flushes = True

    def cut_at(self, point: CutPoint, count: int) -> None:
        """Cut the power before the write or flush that comes after `count` others."""
        with self._condition:
            self._cut_point, self._left = point, count

    def cut(self) -> None:
        """Cut the power between two requests, unless it is cut already."""
        with self._condition:
            if self._is_recording:
                self._cut()

    def wait_for_cut(self) -> Pending:
        """Wait until the power is cut and the record is written; return what is in it."""
        with self._condition:
            self._condition.wait_for(lambda: not self._is_recording)
            return Pending(len(self._pending), sum(write.length for write in self._pending))

    def resume(self) -> None:
        """Let writes and flushes return again, so that their processes can end."""
        with self._condition:
            self._is_frozen = False
            self._condition.notify_all()

    def _write(self, write: Write) -> None:
        with self._condition:
            self._pass(CutPoint.WRITE)
            write.apply(self._current)
            if self._is_recording:
                self._pending.append(write)

    def _pass(self, point: CutPoint) -> None:
        if self._is_recording and self._cut_point is point:
            if self._left == 0:
                self._cut()
            self._left -= 1
        self._condition.wait_for(lambda: not self._is_frozen)

    def _cut(self) -> None:
        self._record.write_bytes(msgspec.msgpack.encode(self._pending))
        self._is_recording, self._is_frozen = False, True
        self._condition.notify_all()


def read_pending(durable: Path) -> list[Write]:
    """Return the writes that were not flushed when the power of an image was cut, in order."""
    return msgspec.msgpack.decode(pending_file(durable).read_bytes(), type=list[Write])


def pending_file(durable: Path) -> Path:
    """Return the file beside an image with the writes that were not flushed."""
    return durable.with_suffix(".pending")


def _punch_hole(descriptor: int, offset: int, length: int) -> None:
    arguments = (ctypes.c_long(offset), ctypes.c_long(length))
    if _libc.fallocate(descriptor, _PUNCH_HOLE_KEEP_SIZE, *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
