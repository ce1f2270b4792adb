"""Syncs the files of a store that chDB leaves to the system: it renames them and syncs nothing."""

import os
from pathlib import Path

_DEPTH_OF_TABLES = 3
"""A table's directory is `store/abc/abcd…`; parts are below it."""


def sync_store_files(store: Path) -> None:
    """Fsync metadata, directories and links of a store, and its name in its parent directory.

    Parts are left out: inserts and merges sync them. Raises `OSError`.
    """
    walked: list[Path] = []
    for root, directories, files in os.walk(store):
        here = Path(root)
        walked.append(here)
        if len(here.relative_to(store).parts) >= _DEPTH_OF_TABLES:
            directories.clear()
        for file in (here / name for name in files):
            if not file.is_symlink():
                sync(file)
    for directory in (*walked, store.parent):
        sync(directory)


def sync(path: Path) -> None:
    """Fsync a file or a directory; chDB may have renamed or removed it. Raises `OSError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
