"""The durable log: the border between accepting and storing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from headrace.base.errors import HeadraceError


class LogPosition(Struct, frozen=True, order=True, gc=False):
    """A place between two records of one log: the next record begins here."""

    segment: int
    offset: int


LOG_START = LogPosition(segment=0, offset=0)


class LoggedRecord(Struct, frozen=True, gc=False):
    """One record as it was appended, and the place right behind it."""

    payload: bytes
    start: LogPosition
    end: LogPosition


class LogChunk(Struct, frozen=True):
    """What one read found: whole records, and the place to read on from.

    `end` may lie behind the last record's end, where damage was set aside or a segment ended.
    `damaged_bytes` counts what was set aside.
    """

    records: Sequence[LoggedRecord]
    end: LogPosition
    damaged_bytes: int = 0


Told = Callable[[HeadraceError | None], None]
"""Is told once what became of a record: None is what returning from `append` promises, and an
error what it would raise. Must not raise itself."""


class EventLog(Protocol):
    """The writing side. One log has one writer; used from one event loop."""

    async def append(self, record: bytes) -> None:
        """Make a record durable.

        Returns when it is on disk (fsync; many calls share one). Raises `LogUnavailable`, and
        then nothing of the record will ever be read, now or after a restart; `LogUncertain` where
        the disk fails so that it may be read after a crash. Cancelling the caller does not take
        the record back. Safe to call from many tasks.
        """
        ...

    def hand_in(self, record: bytes, told: Told) -> None:
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

    def durable_ends(self) -> Mapping[str, LogPosition]:
        """Return, by the log's name, the place behind its last durable record.

        A log of which a part cannot be read ends where that begins, until it can be.
        """
        ...

    def unreadable(self) -> Sequence[str]:
        """Return the names of the logs of which a part could not be read at the last look."""
        ...

    def read(self, log: str, *, after: LogPosition, until: LogPosition, max_bytes: int) -> LogChunk:
        """Read whole records between two places, in order; at least one where there is one.

        The same arguments give the same records for as long as they are not removed. Raises
        `OSError` where they cannot be read; `durable_ends` then tells how far the log can be.
        """
        ...

    def bytes_between(self, log: str, *, after: LogPosition, until: LogPosition) -> int:
        """Return how many bytes lie between two places, for the backlog's gauge."""
        ...

    def remove_before(self, log: str, position: LogPosition) -> None:
        """Delete what lies wholly before a position. Safe to call twice."""
        ...
