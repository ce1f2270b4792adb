"""The marker of what is stored: the offset of a log up to which all records are in the store."""

import os
import struct
from pathlib import Path
from typing import Final
from zlib import crc32

from headrace.adapters.data_dir.paths import LOADED_MARKER
from headrace.ports.event_log import LogOffset

_LOADED: Final = struct.Struct(">QQI")


def write_loaded_offset(path: Path, offset: LogOffset) -> None:
    """Write, into a log's directory, the offset up to which all records are in the store.

    Not synced: it may be old after a power cut. Raises `OSError`.
    """
    packed = _LOADED.pack(offset.segment, offset.offset, 0)[:-4]
    file = os.open(path / LOADED_MARKER, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, packed + crc32(packed).to_bytes(4, "big"), 0)
    finally:
        os.close(file)


def read_loaded_offset(path: Path) -> LogOffset | None:
    """Return the offset of `write_loaded_offset`; None where it is missing or not valid."""
    try:
        data = (path / LOADED_MARKER).read_bytes()
    except OSError:
        return None
    if len(data) != _LOADED.size or crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        return None
    segment, offset, _ = _LOADED.unpack(data)
    return LogOffset(segment, offset)
