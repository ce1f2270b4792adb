"""Makes an image that a disk may have after a power cut.

It has everything up to the last complete flush, and of the writes after it whichever the disk had
already written. A disk may write them in any order, and tears a write between two sectors. An older
write never replaces a newer one that survived.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from random import Random

from chaos.powercut.recording_image import Write, read_pending

_SECTOR_BYTES, _BLOCK_BYTES = 512, 4096
_SHARES = (0.05, 0.3, 0.5, 0.7, 0.95)


class Survival(StrEnum):
    """Which writes after the last flush survive."""

    NONE = "none"
    ALL = "all"  # as when only the operating system fails
    PREFIX = "prefix"  # the first of them, the last one torn
    ANY_WRITES = "any writes"  # some of them, one torn
    ANY_BLOCKS = "any blocks"  # some blocks of 4 KiB
    ANY_SECTORS = "any sectors"  # some sectors of 512 bytes


def make_crash_image(durable: Path, target: Path, *, survival: Survival, random: Random) -> None:
    """Write an image of a disk whose power was cut. Raises `OSError`."""
    copy_image(durable, target)
    descriptor = os.open(target, os.O_RDWR)
    try:
        for write in survivors(read_pending(durable), survival, random):
            write.apply(descriptor)
    finally:
        os.close(descriptor)


def copy_image(source: Path, target: Path) -> None:
    """Copy an image without the holes in it."""
    subprocess.run(
        ["cp", "--sparse=always", "--reflink=auto", str(source), str(target)], check=True
    )


def survivors(pending: Sequence[Write], survival: Survival, random: Random) -> list[Write]:
    """Return the writes, or parts of them, that survive, in the order in which they were made."""
    return list(_SURVIVORS[survival](pending, random))


def _none(_pending: Sequence[Write], _random: Random) -> Iterable[Write]:
    return ()


def _all(pending: Sequence[Write], _random: Random) -> Iterable[Write]:
    return pending


def _prefix(pending: Sequence[Write], random: Random) -> Iterator[Write]:
    count = random.randint(0, len(pending))
    yield from pending[: max(count - 1, 0)]
    if count:
        yield _torn(pending[count - 1], random)


def _any_writes(pending: Sequence[Write], random: Random) -> Iterator[Write]:
    chosen = random.sample(range(len(pending)), random.randint(0, len(pending)))
    for index in sorted(chosen):
        yield _torn(pending[index], random) if index == chosen[-1] else pending[index]


def _torn(write: Write, random: Random) -> Write:
    sectors = -(-write.length // _SECTOR_BYTES)
    return write.part(0, min(_SECTOR_BYTES * random.randint(0, sectors), write.length))


def _any_blocks(pending: Sequence[Write], random: Random) -> Iterator[Write]:
    return _any_units(pending, random, _BLOCK_BYTES)


def _any_sectors(pending: Sequence[Write], random: Random) -> Iterator[Write]:
    return _any_units(pending, random, _SECTOR_BYTES)


def _any_units(pending: Sequence[Write], random: Random, unit: int) -> Iterator[Write]:
    share = random.choice(_SHARES)
    for write in pending:
        for begin, end in pairwise(_edges(write, unit)):
            if random.random() < share:
                yield write.part(begin, end)


def _edges(write: Write, unit: int) -> list[int]:
    """Return where a write touches a new unit of the disk. A hole is punched in one piece."""
    if write.content is None:
        return [0, write.length]
    return [0, *range(unit - write.offset % unit, write.length, unit), write.length]


_SURVIVORS: Mapping[Survival, Callable[[Sequence[Write], Random], Iterable[Write]]] = {
    Survival.NONE: _none,
    Survival.ALL: _all,
    Survival.PREFIX: _prefix,
    Survival.ANY_WRITES: _any_writes,
    Survival.ANY_BLOCKS: _any_blocks,
    Survival.ANY_SECTORS: _any_sectors,
}
