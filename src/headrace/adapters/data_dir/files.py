"""Files that must be whole under their name, or not there at all."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Put a file in place durably: whoever reads the name finds the old content or the new."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    with unfinished.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
