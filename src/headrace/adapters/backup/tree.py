"""A snapshot of a data directory, as its maker hands it to whoever archives it."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct


class Snapshot(Struct, frozen=True):
    """Where it is, and how many entries it has: one that is being removed has fewer."""

    path: Path
    entries: int


def entries_below(directory: Path) -> Iterator[Path]:
    """Go through all files, directories and links below a directory, in one order always.

    Links are not followed. Raises `OSError` where a directory cannot be read.
    """
    for walked, directories, files in os.walk(directory, onerror=_raise):
        directories.sort()
        for name in sorted((*directories, *files)):
            yield Path(walked, name)


def _raise(error: OSError) -> None:
    raise error
