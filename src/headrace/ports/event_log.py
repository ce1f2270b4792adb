"""The durable log: the border between accepting and storing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from headrace.base.errors import HeadraceError


class LogOffset(Struct, frozen=True, order=True, gc=False):
    """A place between two records of one log: the next record begins here."""

    segment: int
    offset: int


LOG_START = LogOffset(segment=0, offset=0)


class LoggedRecord(Struct, frozen=True, gc=False):
    """One record as it was appended, and the place right behind it."""

    payload: bytes
    start: LogOffset
    end: LogOffset


class LogChunk(Struct, frozen=True):
    """What one read found: whole records, and the place to read on from.

    `end` may lie behind the last record's end, where damage was set aside or a segment ended.
    `damaged_bytes` counts what was set aside.
    """

    records: Sequence[LoggedRecord]
    end: LogOffset
    damaged_bytes: int = 0


OnDurable = Callable[[HeadraceError | None], None]
"""Is told once what became of a record: None is what returning from `append` promises, and an
error what it would raise. Must not raise itself."""


class EventLog(Protocol):
    """The writing side. One log has one writer; used from one event loop."""

    async def append(self, record: bytes) -> None:
        """Make a record durable.

        Returns when it is on disk (fsync; many calls share one). Raises `LogUnavailable`, and
        then nothing of the record will ever be read, now or after a restart; `DurabilityUnknown`
        where the disk fails so that it may be read after a crash. Cancelling the caller does not
        take the record back. Safe to call from many tasks.
        """
        ...

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Do what `append` does, and tell at its end instead of being waited for.

        Does not block. Tells from the event loop, after this has returned. Raises
        `LogUnavailable` where the record is refused at once; then nobody is told.
        """
        ...

    async def is_ready(self) -> bool:
        """Tell whether an append would succeed now, as far as can be known. Never raises."""
        ...

    async def close(self) -> None:
        """Make everything that was appended durable and release the log. May be called twice."""
        ...


class LogReader(Protocol):
    """The reading side of all logs of a data directory; blocking, used from one thread.

    Sees only what is durable: a record whose append has not returned is not read while its
    writer lives.
    """

    def durable_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the place behind its last durable record.

        A log of which a part cannot be read ends where that begins, until it can be.
        """
        ...

    def unreadable(self) -> Sequence[str]:
        """Return the names of the logs of which a part could not be read at the last look."""
        ...

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        """Read whole records between two places, in order; at least one where there is one.

        The same arguments give the same records for as long as they are not removed. Raises
        `OSError` where they cannot be read; `durable_offsets` then tells how far the log can be.
        """
        ...

    def size_between(self, log: str, *, after: LogOffset, until: LogOffset) -> int:
        """Return how many bytes lie between two places, for the backlog's gauge."""
        ...

    def truncate_before(self, log: str, offset: LogOffset) -> None:
        """Delete what lies wholly before a position. Safe to call twice."""
        ...
