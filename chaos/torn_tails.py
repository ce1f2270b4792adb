"""Damages log files behind their durable offset while no process writes to them.

Bytes before the durable offset were acknowledged and must survive; bytes behind it belong to
appends in progress. The offset is read with the product's own marker code; nothing else here relies
on the product.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random

from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory

_MARKER_FILE = "durable"
_FRAME_MAGIC = b"\xc1\xffHR"


def read_markers(data: Path) -> dict[Path, bytes]:
    """Return the current markers, to be restored later as after a power failure."""
    return {path: path.read_bytes() for path in data.glob(f"log/*/{_MARKER_FILE}")}


def restore_markers(markers: Mapping[Path, bytes]) -> None:
    """Write earlier markers back."""
    for path, content in markers.items():
        _replace_behind(path, 0, content)


def damage_tails(data: Path, random: Random) -> list[str]:
    """Damage the tail of every log. Returns the names of the logs whose damage must be reported."""
    return [log.name for log in _logs(data) if _damage_tail(log, random)]


def _logs(data: Path) -> Iterable[Path]:
    return sorted(path for path in data.glob("log/*/") if list(path.glob("*.segment")))


def _damage_tail(log: Path, random: Random) -> bool:
    with closing(LogDirectory(log, file_ops=FileOps())) as directory:
        end = directory.durable_offset()
        newest = directory.segment_path(directory.sequences()[-1])
        has_marker = directory.sequences()[-1] == end.segment
    content = newest.read_bytes()
    durable = end.offset if has_marker else 0
    written, size = content.rstrip(b"\0"), len(content)
    damage = random.choice(_DAMAGES)
    tail = damage(written[durable:], written, random)
    zeros = bytes(max(size - durable - len(tail), 0))  # the writer was ahead with them
    _replace_behind(newest, durable, tail + zeros)
    return tail.rstrip(b"\0") != written[durable:]


def _replace_behind(path: Path, offset: int, tail: bytes) -> None:
    """Replace the end of a file durably: a later power cut must not undo it."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(tail)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _flip(tail: bytes, content: bytes, random: Random) -> bytes:
    flipped = bytearray(tail or _torn(b"", content, random))
    for index in random.sample(range(len(flipped)), min(len(flipped), random.randint(1, 8))):
        flipped[index] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _torn(tail: bytes, content: bytes, random: Random) -> bytes:
    """Return a partly written record: a prefix of the existing tail, or of the last record.

    Never a complete record, because that would be a repeated append and not damage.
    """
    start = tail or content[max(content.rfind(_FRAME_MAGIC), 0) :]
    return start[: random.randrange(len(start))] + _FRAME_MAGIC[:1] if start else _FRAME_MAGIC[:1]


def _zeros(tail: bytes, _content: bytes, random: Random) -> bytes:
    """Append zeros, as a file system does that extends a file before it writes the content.

    Nothing reports zeros alone: a writer is ahead with them.
    """
    return tail + bytes(random.randint(1, 5000))


def _noise(tail: bytes, _content: bytes, random: Random) -> bytes:
    return tail + random.randbytes(random.randint(1, 5000))


def _oversized_length(tail: bytes, _content: bytes, random: Random) -> bytes:
    """Append a record header whose length exceeds the bytes that follow."""
    return tail + _FRAME_MAGIC + b"\x7f\xff\xff\xff" + random.randbytes(random.randint(4, 400))


_DAMAGES: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    _flip,
    _torn,
    _zeros,
    _noise,
    _oversized_length,
)
