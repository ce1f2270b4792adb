"""Looks at directories that a running service changes meanwhile."""

import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")


def look_again(look: Callable[[], _T]) -> _T:
    """Return what a look at files finds; look again where one of them has gone meanwhile.

    A store renames and deletes the directories of its parts at any time.
    """
    while True:
        with suppress(FileNotFoundError):
            return look()


def files_with(directory: Path, needle: bytes) -> list[Path]:
    """Return the files below a directory that contain the bytes."""
    return look_again(
        lambda: sorted(file for file in _regular_files(directory) if needle in file.read_bytes())
    )


def _regular_files(directory: Path) -> Iterator[Path]:
    """Yield the files below a directory. Raises `FileNotFoundError` where one has gone."""
    return (path for path in directory.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
