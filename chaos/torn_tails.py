"""Damage behind the durable end of a log, while nobody writes to it.

What is in front of that end was acknowledged, and no disk may lose it; behind it lies what was
under way. Finding the end takes the product's own mark; nothing else here trusts the product.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random

from headrace.adapters.event_log.segment_directory import FileOps, LogDirectory

_MARKER_FILE = "durable"
_FRAME_MAGIC = b"\xc1\xffHR"


def read_markers(data: Path) -> dict[Path, bytes]:
    """Return the marks as they are now, to be put back later as a power cut may do."""
    return {path: path.read_bytes() for path in data.glob(f"log/*/{_MARKER_FILE}")}


def restore_markers(markers: Mapping[Path, bytes]) -> None:
    """Write old marks."""
    for path, content in markers.items():
        path.write_bytes(content)


def damage_tails(data: Path, random: Random) -> list[str]:
    """Spoil the tail of every log; return the names of the logs that have damage to report."""
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
    damage = random.choice(_DAMAGES)
    tail = damage(content[durable:], content, random)
    newest.write_bytes(content[:durable] + tail)
    return len(tail) > 0


def _flip(tail: bytes, content: bytes, random: Random) -> bytes:
    flipped = bytearray(tail or _torn(b"", content, random))
    for index in random.sample(range(len(flipped)), min(len(flipped), random.randint(1, 8))):
        flipped[index] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _torn(tail: bytes, content: bytes, random: Random) -> bytes:
    """A record that was begun: the beginning of what is there, or of the last record again.

    Never a whole record alone: that would be one more sending, and no damage.
    """
    start = tail or content[max(content.rfind(_FRAME_MAGIC), 0) :]
    return start[: random.randrange(len(start))] + _FRAME_MAGIC[:1] if start else _FRAME_MAGIC[:1]


def _zeros(tail: bytes, _content: bytes, random: Random) -> bytes:
    """What a file system may leave where a file grew and its content was not written."""
    return tail + bytes(random.randint(1, 5000))


def _noise(tail: bytes, _content: bytes, random: Random) -> bytes:
    return tail + random.randbytes(random.randint(1, 5000))


def _oversized_length(tail: bytes, _content: bytes, random: Random) -> bytes:
    """The head of a record that promises far more than there is."""
    return tail + _FRAME_MAGIC + b"\x7f\xff\xff\xff" + random.randbytes(random.randint(4, 400))


_DAMAGES: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    _flip,
    _torn,
    _zeros,
    _noise,
    _oversized_length,
)
