"""Overwrites records of a log in place, while its writer appends to it.

Only records that are loaded may be overwritten: the loader reads none of them again. Each keeps its
length, so every offset stays valid.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from headrace.adapters.event_log.file_ops import FileOps, read_exactly
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import (
    HEADER_SIZE,
    declared_frame_size,
    find_record,
    frame_header,
    parse_records,
)
from headrace.base.errors import StoreUnavailable, system_reason
from headrace.ports.event_log import LogOffset

RewriteRecord = Callable[[bytes], bytes | None]
"""Returns what replaces a record's payload, of the same length; None for a record that stays.

Gets damaged bytes between records too, and returns what replaces these.
"""

_READ_BYTES: Final = 4 * 1024 * 1024


class _Span(Struct, frozen=True):
    """A record, or damaged bytes, at an offset of a segment."""

    offset: int
    content: bytes
    is_record: bool = True


class SegmentRewriter:
    """A `LogRewriter` over the logs in `root`."""

    def __init__(self, root: Path, *, file_ops: FileOps | None = None) -> None:
        self._root = root
        self._file_ops = file_ops or FileOps()

    def rewrite(self, ends: Mapping[str, LogOffset], rewrite_record: RewriteRecord) -> int:
        """Overwrite records before the ends; see `LogRewriter.rewrite`."""
        try:
            return sum(
                self._rewrite_log(self._root / log, end, rewrite_record)
                for log, end in ends.items()
                if (self._root / log).is_dir()
            )
        except OSError as error:
            raise StoreUnavailable(f"cannot overwrite the log: {system_reason(error)}") from error

    def _rewrite_log(self, path: Path, end: LogOffset, rewrite_record: RewriteRecord) -> int:
        directory = LogDirectory(path, file_ops=self._file_ops)
        try:
            sequences = [number for number in directory.sequences() if number <= end.segment]
            files = [directory.segment_path(number) for number in sequences]
        finally:
            directory.close()
        overwritten = 0
        for sequence, file in zip(sequences, files, strict=True):
            limit = end.offset if sequence == end.segment else None
            with suppress(FileNotFoundError):  # the loader deletes segments that are loaded
                overwritten += self._rewrite_segment(file, limit, rewrite_record)
        return overwritten

    def _rewrite_segment(self, path: Path, limit: int | None, rewrite_record: RewriteRecord) -> int:
        file = os.open(path, os.O_RDWR)
        try:
            end = os.fstat(file).st_size if limit is None else limit
            overwritten = 0
            for span in _spans(file, end):
                content = rewrite_record(span.content)
                if content is not None:
                    frame = frame_header(content) + content if span.is_record else content
                    self._file_ops.write(file, frame, span.offset)
                    overwritten += 1
            if overwritten:
                self._file_ops.sync(file)
            return overwritten
        finally:
            os.close(file)


def _spans(file: int, end: int) -> Iterator[_Span]:
    """Return the records of a segment up to an offset, and the damaged bytes between them."""
    offset = HEADER_SIZE
    while offset < end:
        data = _read_frame(file, offset, end)
        records = parse_records(data, LogOffset(0, offset))
        for record in records:
            yield _Span(record.start.offset, record.payload)
        if records:
            offset = records[-1].end.offset
        else:
            size = find_record(data, 1)
            yield _Span(offset, data[:size], is_record=False)
            offset += size


def _read_frame(file: int, offset: int, end: int) -> bytes:
    """Read ahead from an offset; as much as the record there needs."""
    data = read_exactly(file, min(_READ_BYTES, end - offset), offset)
    size = declared_frame_size(data, 0) or 0
    return read_exactly(file, size, offset) if len(data) < size <= end - offset else data
