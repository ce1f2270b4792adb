"""Durable writes: a file is complete under its name or missing, and for its owner only."""

import os
from pathlib import Path

from headrace.adapters.data_dir.paths import UNFINISHED_SUFFIX

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file durably: a reader finds the old content or the new. Raises `OSError`."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(path)
    sync_directory(path.parent)


def create_private_directory(path: Path) -> None:
    """Create a directory durably, for its owner only; its parent must exist. Raises `OSError`."""
    if not path.exists():
        path.mkdir(mode=0o700, exist_ok=True)
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
