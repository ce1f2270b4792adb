"""The file operations of a log."""

import os
from collections.abc import Callable
from pathlib import Path

from headrace.adapters.data_dir.files import missing_directories
from headrace.adapters.event_log.reserved_space import reserve_space
from headrace.adapters.event_log.zeroed_space import is_zeroing_worthwhile

_fdatasync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has only fsync


class FileOps:
    """The file operations of a log. A class, so that tests can pass one that fails."""

    def create(self, path: Path) -> int:
        """Create a file, or empty one that a failed attempt left; return its descriptor."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)

    def reserve(self, file: int, size: int) -> int:
        """Reserve disk space for an empty file; return how much of it, see `reserve_space`."""
        return reserve_space(file, size)

    def is_zeroing_worthwhile(self, file: int, size: int) -> bool:
        """Return whether to write zeros ahead of records; see `is_zeroing_worthwhile`."""
        return is_zeroing_worthwhile(file, size)

    def free_after(self, file: int, end: int) -> None:
        """Free what a file has after an offset. Synced before other files get it for long."""
        self.truncate(file, end)
        self.sync(file)

    def write(self, file: int, content: bytes, offset: int) -> None:
        """Write all of the content at an offset, also where one call writes only a part."""
        written = os.pwrite(file, content, offset)
        while written < len(content):
            written += os.pwrite(file, content[written:], offset + written)

    def truncate(self, file: int, size: int) -> None:
        """Cut a file to a size."""
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Return when what was written to a file is on disk."""
        _fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in a directory are on disk."""
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def is_deleted(file: int) -> bool:
    """Return whether an open file has no name left."""
    return os.fstat(file).st_nlink == 0


def read_exactly(file: int, size: int, offset: int) -> bytes:
    """Read a range of a file; shorter only where the file ends."""
    data = os.pread(file, size, offset)
    while len(data) < size and (more := os.pread(file, size - len(data), offset + len(data))):
        data += more
    return data


def create_directory(path: Path, *, file_ops: FileOps) -> None:
    """Create a directory and its missing parents, durably."""
    for folder in reversed(missing_directories(path)):
        folder.mkdir(mode=0o700, exist_ok=True)
        file_ops.sync_directory(folder)  # its name must not lead to what its inode was before
        file_ops.sync_directory(folder.parent)
