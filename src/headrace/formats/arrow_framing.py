"""The framing of Arrow IPC streams that joining two of them needs.

A stream is a sequence of messages and an end marker. A message is the marker `FFFFFFFF`, the length
of its metadata in four bytes, little-endian, the metadata, and the body; the body of the first
message, which has the schema, is empty.
"""

from typing import Final

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_PREFIX_BYTES: Final = 8
END_OF_STREAM: Final = _CONTINUATION + b"\0\0\0\0"


def split_stream(stream: bytes) -> tuple[bytes, memoryview]:
    """Return the schema's message of a stream, and its other messages without the end marker.

    Raises `ValueError` for bytes that are no complete stream.
    """
    if stream[:4] != _CONTINUATION or not stream.endswith(END_OF_STREAM):
        raise ValueError("not a complete Arrow stream")
    schema_end = _PREFIX_BYTES + int.from_bytes(stream[4:_PREFIX_BYTES], "little")
    return stream[:schema_end], memoryview(stream)[schema_end : -len(END_OF_STREAM)]
