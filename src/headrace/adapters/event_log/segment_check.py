"""Checks the segments of one log without changing them; its writer must not run."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    find_record,
    parse_header,
    parse_records,
    valid_size,
)
from headrace.adapters.event_log.segment_reader import end_of_segment
from headrace.ports.event_log import LOG_START, LoggedRecord, LogOffset


class LogReport(Struct, frozen=True):
    """The issues found in a log, its end, and the number of records read."""

    issues: tuple[str, ...]
    end: LogOffset
    records: int


class _Segment(Struct, frozen=True):
    """The file of a segment, and the offset up to which it must be intact."""

    path: Path
    sequence: int
    end: int


class _ScannedRange(Struct, frozen=True):
    """Complete records up to `end`, and damaged bytes from there up to `damaged_until`."""

    records: list[LoggedRecord]
    end: int
    damaged_until: int


def check_log(path: Path, *, loaded: LogOffset | None) -> LogReport:
    """Check a log that the ledger has noted as stored up to `loaded`. Raises `OSError`.

    Bytes after the durable end are an append that a crash interrupted, and no issue.
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
    """Return the records that are in the store and have not been deleted from the log yet."""
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
    else:  # the marker is old, as after a power cut: an incomplete tail was not acknowledged
        end = valid_size(path.read_bytes())
    return _Segment(path, sequence, end)


def _missing_segments(
    segments: list[_Segment], marker: LogOffset, loaded: LogOffset
) -> Iterator[str]:
    present = {segment.sequence for segment in segments}
    newest = max((*present, marker.segment))
    for sequence in range(max(loaded.segment, 1), newest + 1):
        if sequence not in present:
            yield f"its segment {sequence} is missing, with the acknowledged events in it"


def _check_segment(segment: _Segment, loaded: LogOffset) -> tuple[list[str], int]:
    data = segment.path.read_bytes()
    issues: list[str] = []
    if len(data) < segment.end:
        issues.append(
            f"its segment {segment.sequence} ends at byte {len(data)}, and events were "
            f"acknowledged up to byte {segment.end}"
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
    """Split a segment into ranges: complete records, each with the damage that follows them."""
    index = HEADER_SIZE
    while index < len(data):
        records = parse_records(data[index:], LogOffset(sequence, index))
        end = records[-1].end.offset if records else index
        index = end if end == len(data) else find_record(data, end + 1)
        yield _ScannedRange(records, end, index)


def _describe_damage(begin: LogOffset, end: int, loaded: LogOffset) -> str:
    description = f"the bytes {begin.offset} to {end} of its segment {begin.segment} are damaged"
    if begin < loaded:
        return f"{description}; the events in them are in the store"
    return f"{description}, and the events in them are lost"
