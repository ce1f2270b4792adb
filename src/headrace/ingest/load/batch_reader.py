"""Reads the records of one batch from all logs, merged by the time of their receipt."""

import heapq
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec
from msgspec import Struct

from headrace.model.log_records import ErasedItems, LogRecord, decode_record
from headrace.ports.event_log import LoggedRecord, LogOffset, LogReader
from headrace.ports.ledger import LogRange, RequeuedItem

_READ_BYTES = 1024 * 1024


class BatchLimits(Struct, frozen=True):
    """A batch ends with the record that reaches one of these.

    Each batch is a part of its table, and merging parts costs the store more than inserting them:
    13 batches of 40,000 rows were merged at once, at 8 microseconds per row; 5 of 100,000 were not.
    """

    max_rows: int = 100_000
    max_bytes: int = 24 * 1024 * 1024


class ReadRecord(Struct, frozen=True, gc=False):
    """One record and its log. `content` is None where it cannot be decoded."""

    log: str
    logged: LoggedRecord
    received_ms: int
    content: LogRecord | None
    decode_error: str = ""


class BatchReader:
    """The records of a batch in the order of their receipt, and the ranges they come from.

    Iteration reads the ranges up to the limits, or all of them without limits. Reading the ranges
    of a batch again gives the same records in the same order, on which deduplication relies.
    `requeued` items count as erased where they were rejected.
    """

    def __init__(
        self,
        reader: LogReader,
        ranges: Mapping[str, LogRange],
        limits: BatchLimits | None = None,
        *,
        requeued: Iterable[RequeuedItem] = (),
    ) -> None:
        self._reader = reader
        self._requested_ranges = ranges
        self._limits = limits
        self._requeued: Mapping[tuple[str, LogOffset], list[RequeuedItem]] = defaultdict(list)
        for each in requeued:
            self._requeued[each.log, each.offset].append(each)
        self._end_offsets: dict[str, LogOffset] = {}
        self._is_limit_reached = False

    def __iter__(self) -> Iterator[ReadRecord]:
        """Read the records. Iterate only once."""
        iterators = [
            self._read(log, self._requested_ranges[log]) for log in sorted(self._requested_ranges)
        ]
        rows_left = self._limits.max_rows if self._limits else sys.maxsize
        bytes_left = self._limits.max_bytes if self._limits else sys.maxsize
        end_offsets = self._end_offsets
        for record in _merge(iterators):
            end_offsets[record.log] = record.logged.end
            rows_left -= 1 if record.content is None else len(record.content.items)
            bytes_left -= len(record.logged.payload)
            self._is_limit_reached = rows_left <= 0 or bytes_left <= 0
            yield record
            if self._is_limit_reached:
                return

    @property
    def ranges(self) -> Mapping[str, LogRange]:
        """The exact ranges of the records; valid after the iteration."""
        if not self._is_limit_reached:
            return dict(self._requested_ranges)
        return {
            log: LogRange(self._requested_ranges[log].start, end)
            for log, end in self._end_offsets.items()
        }

    def _read(self, log: str, log_range: LogRange) -> Iterator[ReadRecord]:
        offset: LogOffset = log_range.start
        received_ms = 0
        while offset < log_range.end:
            chunk = self._reader.read(log, after=offset, until=log_range.end, max_bytes=_READ_BYTES)
            for logged in chunk.records:
                try:
                    content = decode_record(logged.payload)
                except msgspec.MsgspecError as error:  # keeps the position of the record before it
                    yield ReadRecord(log, logged, received_ms, None, str(error))
                else:
                    received_ms = content.received_ms
                    if self._requeued:
                        content = _without(content, self._requeued.get((log, logged.start), ()))
                    yield ReadRecord(log, logged, received_ms, content)
            offset = chunk.end


def _merge(iterators: list[Iterator[ReadRecord]]) -> Iterator[ReadRecord]:
    if len(iterators) == 1:
        return iterators[0]
    return heapq.merge(*iterators, key=attrgetter("received_ms"))


def _without(content: LogRecord, requeued: Sequence[RequeuedItem]) -> LogRecord:
    """Return a record in which those of the items count as erased that were received with it."""
    received_ms = content.imported.received_ms if content.imported else None
    indexes = {
        each.index
        for each in requeued
        if each.index < len(content.items)
        and each.received_ms == (received_ms[each.index] if received_ms else content.received_ms)
    }
    if not indexes:
        return content
    earlier = content.erased.indexes if content.erased else ()
    return msgspec.structs.replace(content, erased=ErasedItems((*earlier, *indexes)))
