"""The files of deduplication tokens that MergeTree writes beside a table's parts.

A line has an operation (1: added), the name of a part, and a hash of its token, separated by tabs.
chDB writes a token just before it commits the part. A file's name ends in its number.
"""

import os
import re
from pathlib import Path

from headrace.adapters.store.chdb.files.store_sync import sync

_ADDED = re.compile(rb"^1\t([a-z0-9_]+)\t\S+$", re.MULTILINE)
_NUMBERED = re.compile(r"_(\d+)\.txt$")
_TAIL_BYTES = 1024
"""Several lines: a line has the name of a part and forty digits."""


def newest_part(directory: Path) -> str | None:
    """Return the part that was logged last; None where the files name none.

    The part may be missing: not committed, or merged already.
    """
    files = {int(found[1]): path for path, found in _numbered(directory)}
    if not files:
        return None
    added = _ADDED.findall(_tail(files[max(files)]))
    return added[-1].decode() if added else None


def sync_log(directory: Path) -> None:
    """Fsync the files and their directory. Raises `OSError`."""
    for file in (*directory.iterdir(), directory):  # chDB removes old files
        sync(file)


def _numbered(directory: Path) -> list[tuple[Path, re.Match[str]]]:
    named = [(path, _NUMBERED.search(path.name)) for path in directory.iterdir()]
    return [(path, found) for path, found in named if found is not None]


def _tail(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return opened.read()
