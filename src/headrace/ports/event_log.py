"""The durable log, between acceptance and storage of events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from headrace.base.errors import HeadraceError


class LogOffset(Struct, frozen=True, order=True, gc=False):
    """An offset in one log, at the start of a record or at the end of the log."""

    segment: int
    offset: int


LOG_START = LogOffset(segment=0, offset=0)


class LoggedRecord(Struct, frozen=True, gc=False):
    """One record as it was appended, with its start and end offsets."""

    payload: bytes
    start: LogOffset
    end: LogOffset


class LogChunk(Struct, frozen=True):
    """The result of one read: whole records, and the offset to continue from.

    `end` can be past the last record's end, where damaged bytes were skipped or a segment ended.
    `damaged_bytes` counts the skipped bytes.
    """

    records: Sequence[LoggedRecord]
    end: LogOffset
    damaged_bytes: int = 0


OnDurable = Callable[[HeadraceError | None], None]
"""Called exactly once: with None when the record is durable, else with the error that `append`
would raise. Must not raise."""


class EventLog(Protocol):
    """The writing side. One log has one writer; used from one event loop."""

    async def append(self, record: bytes) -> None:
        """Make a record durable.

        Returns when it is on disk (fsync, shared by many calls). Raises `LogUnavailable`: no part
        of the record will ever be read, now or after a restart; or `DurabilityUnknown`: the disk
        failed, and the record may be read after a crash. Cancelling the call does not withdraw the
        record. Safe to call from many tasks.
        """
        ...

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Append a record without waiting; calls `on_durable` with the result.

        Does not block. `on_durable` is called from the event loop, after this method returned.
        Raises `LogUnavailable` where the record is refused at once; `on_durable` is not called.
        """
        ...

    async def is_ready(self) -> bool:
        """Return whether an append is expected to succeed now. Never raises."""
        ...

    async def close(self) -> None:
        """Make everything that was appended durable and release the log. May be called twice.

        Returns when every `on_durable` was called.
        """
        ...


class LogReader(Protocol):
    """The reading side of all logs of a data directory; blocking, used from one thread.

    Sees only what is durable: a record whose append has not returned is not read while its
    writer lives.
    """

    def durable_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the end offset of its last durable record.

        A log with an unreadable part ends where that begins, until it can be read.
        """
        ...

    def unreadable(self) -> Sequence[str]:
        """Return the names of the logs with a part that the last attempt could not read."""
        ...

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        """Read whole records between two offsets, in order; at least one if there is one.

        The same arguments give the same records until they are removed. Raises `OSError` where
        they cannot be read; `durable_offsets` then ends before the unreadable part.
        """
        ...

    def newest_segment(self, log: str) -> int:
        """Return the highest number of a log's segments by their names; 0 without any.

        Raises `OSError`.
        """
        ...

    def size_between(self, log: str, *, after: LogOffset, until: LogOffset) -> int:
        """Return the number of bytes between two offsets."""
        ...

    def truncate_before(self, log: str, offset: LogOffset) -> None:
        """Delete the segments that end before an offset. Safe to call twice."""
        ...
