"""Durable writes: a file is complete under its name, or it does not exist."""

import os
from pathlib import Path

from headrace.adapters.data_dir.paths import UNFINISHED_SUFFIX


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file durably: a reader finds the old content or the new. Raises `OSError`."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    with unfinished.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
