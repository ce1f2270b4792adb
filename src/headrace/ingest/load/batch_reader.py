"""Reads what makes up one batch: the records of all logs, merged by the time of their receipt."""

import heapq
import sys
from collections.abc import Iterator, Mapping
from operator import attrgetter

import msgspec
from msgspec import Struct

from headrace.model.log_records import LogRecord, decode_record
from headrace.ports.event_log import LoggedRecord, LogPosition, LogReader
from headrace.ports.ledger import LogRange

_READ_BYTES = 1024 * 1024


class BatchBounds(Struct, frozen=True):
    """A batch ends with the record that reaches one of these.

    Each batch is a part of its table, and merging parts costs the store more than taking them: 13
    batches of 40,000 rows were merged at once for 8 microseconds a row, 5 of 100,000 not at all.
    """

    max_rows: int = 100_000
    max_bytes: int = 24 * 1024 * 1024


class GatheredRecord(Struct, frozen=True, gc=False):
    """One record with the log it came from. `content` is None where it cannot be decoded."""

    log: str
    logged: LoggedRecord
    received_ms: int
    content: LogRecord | None
    fault: str = ""


class Gathering:
    """The records of a batch in the order of their receipt: what it is made of, and how far.

    Iterating reads the ranges up to the bounds, all of them without bounds. Reading the ranges of
    a gathering again gives the same records in the same order: an item that repeats another is
    told by it.
    """

    def __init__(
        self, reader: LogReader, ranges: Mapping[str, LogRange], bounds: BatchBounds | None = None
    ) -> None:
        self._reader = reader
        self._wanted = ranges
        self._bounds = bounds
        self._ends: dict[str, LogPosition] = {}
        self._is_cut = False

    def __iter__(self) -> Iterator[GatheredRecord]:
        """Read the records; once."""
        streams = [_read(self._reader, log, self._wanted[log]) for log in sorted(self._wanted)]
        rows_left = self._bounds.max_rows if self._bounds else sys.maxsize
        bytes_left = self._bounds.max_bytes if self._bounds else sys.maxsize
        ends = self._ends
        for record in _merged(streams):
            ends[record.log] = record.logged.end
            rows_left -= 1 if record.content is None else len(record.content.items)
            bytes_left -= len(record.logged.payload)
            self._is_cut = rows_left <= 0 or bytes_left <= 0
            yield record
            if self._is_cut:
                return

    @property
    def ranges(self) -> Mapping[str, LogRange]:
        """The exact ranges that the records are from, once all were read."""
        if not self._is_cut:
            return dict(self._wanted)
        return {log: LogRange(self._wanted[log].start, end) for log, end in self._ends.items()}


def _merged(streams: list[Iterator[GatheredRecord]]) -> Iterator[GatheredRecord]:
    if len(streams) == 1:
        return streams[0]
    return heapq.merge(*streams, key=attrgetter("received_ms"))


def _read(reader: LogReader, log: str, wanted: LogRange) -> Iterator[GatheredRecord]:
    place: LogPosition = wanted.start
    received_ms = 0
    while place < wanted.end:
        chunk = reader.read(log, after=place, until=wanted.end, max_bytes=_READ_BYTES)
        for logged in chunk.records:
            try:
                content = decode_record(logged.payload)
            except msgspec.MsgspecError as error:  # stands where the record before it stands
                yield GatheredRecord(log, logged, received_ms, None, str(error))
            else:
                received_ms = content.received_ms
                yield GatheredRecord(log, logged, received_ms, content)
        place = chunk.end
