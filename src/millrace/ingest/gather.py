"""Reads what makes up one batch: the records of all logs, merged by the time of their receipt."""

import heapq
from collections.abc import Iterator, Mapping
from operator import attrgetter

import msgspec
from msgspec import Struct

from millrace.model.event import LogRecord, decode_record
from millrace.ports.ledger import LogRange
from millrace.ports.log import LoggedRecord, LogPosition, LogReader

_READ_BYTES = 1024 * 1024


class BatchBounds(Struct, frozen=True):
    """A batch ends with the record that reaches one of these."""

    max_rows: int = 100_000
    max_bytes: int = 32 * 1024 * 1024


class GatheredRecord(Struct, frozen=True, gc=False):
    """One record with the log it came from. `content` is None where it cannot be decoded."""

    log: str
    logged: LoggedRecord
    received_ms: int
    content: LogRecord | None
    fault: str = ""


class Gathering(Struct, frozen=True):
    """The records of a batch in the order of their receipt, and the exact ranges they are from."""

    records: list[GatheredRecord]
    ranges: dict[str, LogRange]


def gather(
    reader: LogReader, ranges: Mapping[str, LogRange], bounds: BatchBounds | None = None
) -> Gathering:
    """Read the ranges up to the bounds, all of them without bounds.

    Reading the ranges of a gathering again gives the same records in the same order: an item that
    repeats another is told by it.
    """
    streams = [_read(reader, log, ranges[log]) for log in sorted(ranges)]
    records: list[GatheredRecord] = []
    rows = size = 0
    for record in heapq.merge(*streams, key=attrgetter("received_ms")):
        records.append(record)
        rows += 1 if record.content is None else len(record.content.items)
        size += len(record.logged.payload)
        if bounds is not None and (rows >= bounds.max_rows or size >= bounds.max_bytes):
            return Gathering(records, _covered(records, ranges))
    return Gathering(records, dict(ranges))


def _covered(records: list[GatheredRecord], ranges: Mapping[str, LogRange]) -> dict[str, LogRange]:
    ends = {record.log: record.logged.end for record in records}  # the last of each log stays
    return {log: LogRange(ranges[log].start, end) for log, end in ends.items()}


def _read(reader: LogReader, log: str, wanted: LogRange) -> Iterator[GatheredRecord]:
    place: LogPosition = wanted.start
    received_ms = 0
    while place < wanted.end:
        chunk = reader.read(log, after=place, until=wanted.end, max_bytes=_READ_BYTES)
        for logged in chunk.records:
            record = _decode(log, logged, received_ms)
            received_ms = record.received_ms
            yield record
        place = chunk.end


def _decode(log: str, logged: LoggedRecord, received_ms: int) -> GatheredRecord:
    try:
        content = decode_record(logged.payload)
    except msgspec.MsgspecError as error:  # stands where the record before it stands
        return GatheredRecord(log, logged, received_ms, None, str(error))
    return GatheredRecord(log, logged, content.received_ms, content)
