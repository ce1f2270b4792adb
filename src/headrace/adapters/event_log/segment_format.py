"""The format of a segment file: encodes and decodes bytes, without I/O.

A segment is a header, followed by a frame for each record. All numbers are big-endian:

    header   magic 8 · version 2 · sequence 8 · end of the previous segment 8 · CRC-32 4
    frame    magic 4 · length of the payload 4 · CRC-32 of length and payload 4 · payload

While a segment is written, zeros may follow the last frame: they are there before the next frames,
and cut off when the segment is complete.

The header has the valid end of the previous segment, because a failed write may have left bytes
after it that could not be truncated. The magic of a frame contains bytes that never occur in UTF-8:
no text of a client can be mistaken for a frame when the reader searches for one after damage.
"""

import struct
from zlib import crc32

from msgspec import Struct

from headrace.adapters.data_dir.paths import SEGMENT_SUFFIX
from headrace.ports.event_log import LoggedRecord, LogOffset

FORMAT_VERSION = 1
FIRST_SEGMENT = 1

_SEGMENT_MAGIC = b"\xffHEADRC\xc1"
_FRAME_MAGIC = b"\xc1\xffHR"
_HEADER = struct.Struct(">8sHQQI")
_FRAME = struct.Struct(">4sII")

HEADER_SIZE = _HEADER.size
FRAME_SIZE = _FRAME.size


class SegmentHeader(Struct, frozen=True):
    """The number of a segment, and the valid end of the previous one."""

    sequence: int
    previous_end: int


def segment_name(sequence: int) -> str:
    """Return the file name of a segment."""
    return f"{sequence:020}{SEGMENT_SUFFIX}"


def pack_header(header: SegmentHeader) -> bytes:
    """Encode a segment's header."""
    packed = _HEADER.pack(_SEGMENT_MAGIC, FORMAT_VERSION, header.sequence, header.previous_end, 0)
    return packed[:-4] + crc32(packed[:-4]).to_bytes(4, "big")


def parse_header(data: bytes) -> SegmentHeader | None:
    """Decode the header at the beginning of data; None where it is incomplete or damaged."""
    if len(data) < HEADER_SIZE:
        return None
    magic, version, sequence, previous_end, checksum = _HEADER.unpack_from(data)
    if magic != _SEGMENT_MAGIC or crc32(data[: HEADER_SIZE - 4]) != checksum:
        return None
    return SegmentHeader(sequence, previous_end) if version == FORMAT_VERSION else None


def frame_header(payload: bytes) -> bytes:
    """Return the header of a payload's frame."""
    length = len(payload)
    return _FRAME.pack(_FRAME_MAGIC, length, crc32(payload, length))


def declared_frame_size(data: bytes, index: int) -> int | None:
    """Return the size that the frame header at an index declares; None where there is none."""
    if len(data) < index + FRAME_SIZE:
        return None
    magic, length, _ = _FRAME.unpack_from(data, index)
    return FRAME_SIZE + length if magic == _FRAME_MAGIC else None


def parse_records(data: bytes, start: LogOffset) -> list[LoggedRecord]:
    """Decode the complete records at the beginning of data, which begins at `start` in its log."""
    records: list[LoggedRecord] = []
    record_start, segment, base_offset = start, start.segment, start.offset
    index = 0
    while (payload := _payload_at(data, index)) is not None:
        index += FRAME_SIZE + len(payload)
        record_end = LogOffset(segment, base_offset + index)
        records.append(LoggedRecord(payload, record_start, record_end))
        record_start = record_end
    return records


def find_record(data: bytes, index: int) -> int:
    """Return the index of the first complete record at or after `index`, else the length."""
    while (index := data.find(_FRAME_MAGIC, index)) >= 0:
        if _payload_at(data, index) is not None:
            return index
        index += 1
    return len(data)


def last_record_end(data: bytes, index: int) -> int:
    """Return the end of the last complete record that begins at or after `index`.

    Complete records after a damaged one count. Without any record it is `index`.
    """
    end = index
    while (index := find_record(data, index)) < len(data):
        while (payload := _payload_at(data, index)) is not None:
            index += FRAME_SIZE + len(payload)
        end = index
    return end


def valid_size(data: bytes) -> int:
    """Return the size of a segment without an incomplete tail; 0 where it has no header yet."""
    return last_record_end(data, HEADER_SIZE if parse_header(data) is not None else 0)


def _payload_at(data: bytes, index: int) -> bytes | None:
    if len(data) < index + FRAME_SIZE:
        return None
    magic, length, checksum = _FRAME.unpack_from(data, index)
    begin = index + FRAME_SIZE
    if magic != _FRAME_MAGIC or len(data) < begin + length:
        return None
    payload = data[begin : begin + length]
    return payload if crc32(payload, length) == checksum else None
