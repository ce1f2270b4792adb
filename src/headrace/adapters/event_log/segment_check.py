"""Checks the segments of one log and changes none of them; its writer must not run."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from headrace.adapters.event_log.segment_directory import FileOps, LogDirectory
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    find_record,
    last_record_end,
    parse_header,
    parse_records,
)
from headrace.adapters.event_log.segment_reader import end_of_segment
from headrace.ports.event_log import LOG_START, LoggedRecord, LogOffset


class LogReport(Struct, frozen=True):
    """What is wrong with a log, its end, and how many records were read."""

    issues: tuple[str, ...]
    end: LogOffset
    records: int


class _Segment(Struct, frozen=True):
    """A segment's file and the place up to which it must be whole."""

    path: Path
    sequence: int
    end: int


class _ScannedRange(Struct, frozen=True):
    """Whole records up to a place, and damage from there to another."""

    records: list[LoggedRecord]
    end: int
    damaged_until: int


def check_log(path: Path, *, loaded: LogOffset | None) -> LogReport:
    """Check a log of which the ledger says that it is stored up to a place. Raises `OSError`.

    What lies behind the durable end is what a crash left unfinished, and no fault.
    """
    directory = LogDirectory(path, file_ops=FileOps())
    try:
        marker = directory.durable_offset()
        segments = [_segment(directory, sequence, marker) for sequence in directory.sequences()]
    finally:
        directory.close()
    issues = list(_missing_segments(segments, marker, loaded or LOG_START))
    records = 0
    for segment in segments:
        damage_issues, count = _check_segment(segment, loaded or LOG_START)
        issues += damage_issues
        records += count
    last = segments[-1] if segments else None
    end = LOG_START if last is None else LogOffset(last.sequence, last.end)
    return LogReport(tuple(issues), max(end, marker), records)


def loaded_records(path: Path, loaded: LogOffset) -> Iterator[LoggedRecord]:
    """Return those records of a log that are in the store and still in the log, too."""
    directory = LogDirectory(path, file_ops=FileOps())
    sequences = directory.sequences()
    directory.close()
    for sequence in sequences:
        data = directory.segment_path(sequence).read_bytes()
        for scanned in _scan_ranges(data, sequence):
            yield from (record for record in scanned.records if record.end <= loaded)


def _segment(directory: LogDirectory, sequence: int, marker: LogOffset) -> _Segment:
    path = directory.segment_path(sequence)
    if sequence == marker.segment:
        end = marker.offset
    elif sequence < marker.segment:
        end = end_of_segment(directory, sequence)
    else:  # the mark is old, as after a power cut: a tail that is not whole was not acknowledged
        end = last_record_end(path.read_bytes(), HEADER_SIZE)
    return _Segment(path, sequence, end)


def _missing_segments(
    segments: list[_Segment], marker: LogOffset, loaded: LogOffset
) -> Iterator[str]:
    present = {segment.sequence for segment in segments}
    newest = max((*present, marker.segment))
    for sequence in range(max(loaded.segment, 1), newest + 1):
        if sequence not in present:
            yield f"its segment {sequence} is missing, with all that was acknowledged into it"


def _check_segment(segment: _Segment, loaded: LogOffset) -> tuple[list[str], int]:
    data = segment.path.read_bytes()
    issues: list[str] = []
    if len(data) < segment.end:
        issues.append(
            f"its segment {segment.sequence} ends at byte {len(data)}, and what was acknowledged "
            f"went up to byte {segment.end}"
        )
    data = data[: segment.end]
    if data and parse_header(data) is None:
        issues.append(f"the header of its segment {segment.sequence} is damaged")
    records = 0
    for scanned in _scan_ranges(data, segment.sequence):
        records += len(scanned.records)
        if scanned.damaged_until > scanned.end:
            begin = LogOffset(segment.sequence, scanned.end)
            issues.append(_describe_damage(begin, scanned.damaged_until, loaded))
    return issues, records


def _scan_ranges(data: bytes, sequence: int) -> Iterator[_ScannedRange]:
    """Read a segment: whole records, and the damage behind them if there is any."""
    index = HEADER_SIZE
    while index < len(data):
        records = parse_records(data[index:], LogOffset(sequence, index))
        end = records[-1].end.offset if records else index
        index = end if end == len(data) else find_record(data, end + 1)
        yield _ScannedRange(records, end, index)


def _describe_damage(begin: LogOffset, end: int, loaded: LogOffset) -> str:
    description = f"the bytes {begin.offset} to {end} of its segment {begin.segment} are damaged"
    if begin < loaded:
        return f"{description}; what was in them is in the store"
    return f"{description}, and what was in them is lost"
