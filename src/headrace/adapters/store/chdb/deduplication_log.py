"""The engine's files of deduplication tokens, as MergeTree writes them beside a table's parts.

A line is an operation (1: added), the name of a part, and a hash of its token, between tabs. The
engine notes a token just before it commits the part. Files are named by numbers and end.
"""

import contextlib
import os
import re
from pathlib import Path

_ADDED = re.compile(rb"^1\t([a-z0-9_]+)\t\S+$", re.MULTILINE)
_NUMBERED = re.compile(r"_(\d+)\.txt$")
_TAIL_BYTES = 1024
"""Several lines: one has the name of a part and forty digits."""


def newest_part(directory: Path) -> str | None:
    """Return the part that was noted last; None where the files do not tell it.

    It need not be there: it may not have been committed, or be merged already.
    """
    files = {int(found[1]): path for path, found in _numbered(directory)}
    if not files:
        return None
    added = _ADDED.findall(_tail(files[max(files)]))
    return added[-1].decode() if added else None


def sync_log(directory: Path) -> None:
    """Put the files on disk, and their names. Raises `OSError`."""
    for file in (*directory.iterdir(), directory):
        with contextlib.suppress(FileNotFoundError):  # the engine removes old ones
            _sync(file)


def _numbered(directory: Path) -> list[tuple[Path, re.Match[str]]]:
    named = [(path, _NUMBERED.search(path.name)) for path in directory.iterdir()]
    return [(path, found) for path, found in named if found is not None]


def _tail(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return opened.read()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
