"""Checks the segments of one log and changes none of them; its writer must not run."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from millrace.adapters.segment_directory import Disk, LogDirectory
from millrace.adapters.segment_format import (
    HEADER_SIZE,
    find_record,
    last_record_end,
    parse_header,
    parse_records,
)
from millrace.adapters.segment_reader import end_of_segment
from millrace.ports.log import LOG_START, LogPosition


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
    index, records = HEADER_SIZE, 0
    while index < len(data):
        found = parse_records(data[index:], LogPosition(segment.sequence, index))
        records += len(found)
        end = found[-1].end.offset if found else index
        index = end if end == len(data) else find_record(data, end + 1)
        if index > end:
            faults.append(_damage(LogPosition(segment.sequence, end), index, loaded))
    return faults, records


def _damage(begin: LogPosition, end: int, loaded: LogPosition) -> str:
    place = f"the bytes {begin.offset} to {end} of its segment {begin.segment} are damaged"
    if begin < loaded:
        return f"{place}; what was in them is in the store"
    return f"{place}, and what was in them is lost"
