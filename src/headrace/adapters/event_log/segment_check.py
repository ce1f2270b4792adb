"""Checks the segments of one log and changes none of them; its writer must not run."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from headrace.adapters.event_log.segment_directory import Disk, LogDirectory
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    find_record,
    last_record_end,
    parse_header,
    parse_records,
)
from headrace.adapters.event_log.segment_reader import end_of_segment
from headrace.ports.event_log import LOG_START, LoggedRecord, LogPosition


class LogReport(Struct, frozen=True):
    """What is wrong with a log, its end, and how many records were read."""

    faults: tuple[str, ...]
    end: LogPosition
    records: int


class _Segment(Struct, frozen=True):
    """A segment's file and the place up to which it must be whole."""

    path: Path
    sequence: int
    end: int


class _Stretch(Struct, frozen=True):
    """Whole records up to a place, and damage from there to another."""

    records: list[LoggedRecord]
    end: int
    damaged_until: int


def check_log(path: Path, *, loaded: LogPosition | None) -> LogReport:
    """Check a log of which the ledger says that it is stored up to a place. Raises `OSError`.

    What lies behind the durable end is what a crash left unfinished, and no fault.
    """
    directory = LogDirectory(path, disk=Disk())
    try:
        mark = directory.durable_end()
        segments = [_segment(directory, sequence, mark) for sequence in directory.sequences()]
    finally:
        directory.close()
    faults = list(_gaps(segments, mark, loaded or LOG_START))
    records = 0
    for segment in segments:
        damage, count = _read(segment, loaded or LOG_START)
        faults += damage
        records += count
    last = segments[-1] if segments else None
    end = LOG_START if last is None else LogPosition(last.sequence, last.end)
    return LogReport(tuple(faults), max(end, mark), records)


def loaded_records(path: Path, loaded: LogPosition) -> Iterator[LoggedRecord]:
    """Return those records of a log that are in the store and still in the log, too."""
    directory = LogDirectory(path, disk=Disk())
    sequences = directory.sequences()
    directory.close()
    for sequence in sequences:
        data = directory.segment_path(sequence).read_bytes()
        for stretch in _stretches(data, sequence):
            yield from (record for record in stretch.records if record.end <= loaded)


def _segment(directory: LogDirectory, sequence: int, mark: LogPosition) -> _Segment:
    path = directory.segment_path(sequence)
    if sequence == mark.segment:
        end = mark.offset
    elif sequence < mark.segment:
        end = end_of_segment(directory, sequence)
    else:  # the mark is old, as after a power cut: a tail that is not whole was not acknowledged
        end = last_record_end(path.read_bytes(), HEADER_SIZE)
    return _Segment(path, sequence, end)


def _gaps(segments: list[_Segment], mark: LogPosition, loaded: LogPosition) -> Iterator[str]:
    there = {segment.sequence for segment in segments}
    newest = max((*there, mark.segment))
    for sequence in range(max(loaded.segment, 1), newest + 1):
        if sequence not in there:
            yield f"its segment {sequence} is missing, with all that was acknowledged into it"


def _read(segment: _Segment, loaded: LogPosition) -> tuple[list[str], int]:
    data = segment.path.read_bytes()
    faults: list[str] = []
    if len(data) < segment.end:
        faults.append(
            f"its segment {segment.sequence} ends at byte {len(data)}, and what was acknowledged "
            f"went up to byte {segment.end}"
        )
    data = data[: segment.end]
    if data and parse_header(data) is None:
        faults.append(f"the header of its segment {segment.sequence} is damaged")
    records = 0
    for stretch in _stretches(data, segment.sequence):
        records += len(stretch.records)
        if stretch.damaged_until > stretch.end:
            begin = LogPosition(segment.sequence, stretch.end)
            faults.append(_damage(begin, stretch.damaged_until, loaded))
    return faults, records


def _stretches(data: bytes, sequence: int) -> Iterator[_Stretch]:
    """Read a segment: whole records, and the damage behind them if there is any."""
    index = HEADER_SIZE
    while index < len(data):
        records = parse_records(data[index:], LogPosition(sequence, index))
        end = records[-1].end.offset if records else index
        index = end if end == len(data) else find_record(data, end + 1)
        yield _Stretch(records, end, index)


def _damage(begin: LogPosition, end: int, loaded: LogPosition) -> str:
    place = f"the bytes {begin.offset} to {end} of its segment {begin.segment} are damaged"
    if begin < loaded:
        return f"{place}; what was in them is in the store"
    return f"{place}, and what was in them is lost"
