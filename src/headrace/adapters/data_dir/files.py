"""Durable writes: a file is complete under its name or missing, and for its owner only.

A file that loses its name is kept open until that is on disk. Its inode could else be given to a
new file, and after a power cut, where no journal orders the two, the old name could lead to that:
a file system check then takes it away from one of its names, and perhaps from the right one.
"""

import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

from headrace.adapters.data_dir.paths import UNFINISHED_SUFFIX

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_OPEN_AT_ONCE = 64
_KEPT = getattr(os, "O_PATH", os.O_RDONLY)
"""Linux: closing such a descriptor releases no lock that the process has on the file."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file durably: a reader finds the old content or the new. Raises `OSError`."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    try:
        with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    with kept_open([path]):
        unfinished.rename(path)
        sync_directory(path.parent)


def remove_unfinished(directory: Path, name: str = "*") -> None:
    """Remove what killed processes left of files that they were writing. Raises `OSError`.

    `name` is that of one file.
    """
    for unfinished in directory.glob(f"{name}.*{UNFINISHED_SUFFIX}"):
        unfinished.unlink(missing_ok=True)


def remove_durably(directory: Path, files: Iterable[Path]) -> None:
    """Remove files of a directory and return when their names are gone from the disk.

    Files that are missing already are left out. Raises `OSError`.
    """
    left = iter(files)
    while some := list(islice(left, _OPEN_AT_ONCE)):
        with kept_open(some):
            for file in some:
                file.unlink(missing_ok=True)
            sync_directory(directory)


def set_aside(path: Path, damaged: Path) -> None:
    """Move something into `damaged/` durably, under a name that is free there. Raises `OSError`."""
    create_private_directory(damaged)
    path.rename(_unused_name(damaged / path.name))
    sync_directory(damaged)
    sync_directory(path.parent)


@contextmanager
def kept_open(files: Iterable[Path]) -> Generator[None]:
    """Keep the inodes of files until the block ends, whatever happens to their names."""
    with ExitStack() as stack:
        for file in files:
            with suppress(FileNotFoundError):
                stack.callback(os.close, os.open(file, _KEPT))
        yield


def create_file_durably(path: Path) -> None:
    """Create an empty file for its owner only, unless it exists; its directory must exist.

    The file is on disk before it has its name. Where no journal orders the two, another one's sync
    of the directory could else write a name that leads, after a power cut, to what the inode was
    before. Several processes may call it at once. Raises `OSError`.
    """
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as opened:
        os.fsync(opened.fileno())
    try:
        os.link(unfinished, path)  # a rename would replace the file of another process
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    finally:
        unfinished.unlink(missing_ok=True)
        sync_directory(path.parent)


def create_private_directory(path: Path) -> None:
    """Create a directory and its missing parents durably, for their owner only.

    An existing directory is not changed. Raises `OSError`.
    """
    for folder in reversed(missing_directories(path)):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(folder)  # before its name, as in `create_file_durably`
        sync_directory(folder.parent)
    path.mkdir(mode=0o700, exist_ok=True)  # raises where a file has the name


def missing_directories(path: Path) -> list[Path]:
    """Return those of a path and its parents that do not exist, the path first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on disk. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unused_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return candidate
