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


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file durably: a reader finds the old content or the new. Raises `OSError`."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    with _kept_open([path]):
        unfinished.rename(path)
        sync_directory(path.parent)


def remove_durably(directory: Path, files: Iterable[Path]) -> None:
    """Remove files of a directory and return when their names are gone from the disk.

    Files that are missing already are left out. Raises `OSError`.
    """
    left = iter(files)
    while some := list(islice(left, _OPEN_AT_ONCE)):
        with _kept_open(some):
            for file in some:
                file.unlink(missing_ok=True)
            sync_directory(directory)


@contextmanager
def _kept_open(files: Iterable[Path]) -> Generator[None]:
    with ExitStack() as stack:
        for file in files:
            with suppress(FileNotFoundError):
                stack.callback(os.close, os.open(file, os.O_RDONLY))
        yield


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
