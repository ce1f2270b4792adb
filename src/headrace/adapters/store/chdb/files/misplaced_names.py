"""What a power cut may leave under the names that chDB opens, and how it cannot leave it there.

On a file system without a journal a name may outlast its file or directory: the inode belongs to
something else then, a part of the store or a segment of a log. chDB crashes at every start where a
file has the name of a part, although it needed the part no more. It does not open a directory as
its file `status`, and overwrites that at every start, whatever it is. It removes `status` when it
closes a store and does not sync that.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headrace.adapters.data_dir.files import kept_open, remove_durably, set_aside, sync_directory
from headrace.adapters.data_dir.paths import DataDirPaths

_STATUS: Final = "status"
_DIRECTORIES: Final = (
    "data",
    "metadata",
    "store",
    "tmp",
    "store/*",
    "store/*/*",  # of the database, of a table
    "store/*/*/deduplication_logs",
    "store/*/*/detached",
    "store/*/*/*all_[0-9]*",  # a part, whatever chDB put before its name
)
_FILES: Final = (
    _STATUS,
    "*-metadata.json",
    "store/*/*/deduplication_logs/*",
    "store/*/*/headrace-identity.txt",
    "store/*/*/mutation_*.txt",
)


def lock_file(store: Path) -> Path:
    """Return the path of the file that chDB locks while a store is open."""
    return store / _STATUS


@contextmanager
def closing_durably(store: Path) -> Generator[None]:
    """Close a store in the block. The file that chDB removes keeps its inode until that is durable.

    Elsewhere than on Linux, closing what keeps it open would end the lock of this process.
    """
    with kept_open([lock_file(store)] if hasattr(os, "O_PATH") else ()):
        yield
        with suppress(OSError):  # the name stays then, and leads to an empty file
            sync_directory(store)


def separate_names(store: Path) -> list[str]:
    """Separate the names that chDB opens in a closed store from what they cannot belong to.

    A file that has another name, too, loses the wrong one. What has no other name is moved into
    `damaged/`. Return the paths, relative to the store. Raises `OSError`.
    """
    separated: list[Path] = []
    for patterns, is_directory in ((_DIRECTORIES, True), (_FILES, False)):
        for pattern in patterns:
            for path in list(store.glob(pattern)):
                if path.is_dir() != is_directory:
                    _separate(path, DataDirPaths(store.parent).damaged)
                    separated.append(path)
    status = lock_file(store)
    if status.exists() and _has_other_name(status):
        remove_durably(store, [status])
        separated.append(status)
    return [str(path.relative_to(store)) for path in separated]


def _separate(path: Path, damaged: Path) -> None:
    if _has_other_name(path):
        remove_durably(path.parent, [path])
    else:
        set_aside(path, damaged)


def _has_other_name(path: Path) -> bool:
    """Return whether a file has another name. Links between directories do not exist."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1
