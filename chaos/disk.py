"""Provides the file systems of the data directory.

Where mounting is permitted, the data directory and the store in it each get a small file system, so
that either can be filled. Otherwise the data directory is an ordinary one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_DATA_BYTES = 512 * 1024 * 1024
_STORE_BYTES = 4 * 1024 * 1024 * 1024
_FILLER = "filler-of-the-crash-test"


class DataDisk:
    """A data directory. `can_be_full` is true if it has dedicated file systems."""

    def __init__(self, data: Path, *, can_be_full: bool) -> None:
        self.data = data
        self.can_be_full = can_be_full

    def fill(self) -> Path:
        """Fill the file system of the logs, ledger and keys; return the path to free."""
        return _fill(self.data)

    def fill_store(self) -> Path:
        """Fill the file system of the store; return the path to free."""
        return _fill(self.data / "store")

    @staticmethod
    def free_space(filled: Path) -> None:
        """Delete the file that fills a file system."""
        (filled / _FILLER).unlink()


@contextmanager
def prepare_disk(work: Path, *, ordinary: bool) -> Generator[DataDisk]:
    """Create the data directory. Mounts file systems if permitted and unmounts them on exit."""
    data = work / "data"
    data.mkdir(mode=0o700)
    mounted = [] if ordinary else _mount_both(data)
    try:
        yield DataDisk(data, can_be_full=len(mounted) == 2)
    finally:
        for path in reversed(mounted):
            subprocess.run(["umount", str(path)], check=False)


def keep_copy(data: Path, kept: Path) -> None:
    """Copy a data directory to the ordinary disk, preserving symbolic links."""
    shutil.copytree(data, kept, symlinks=True, ignore=shutil.ignore_patterns(_FILLER))


def _mount_both(data: Path) -> list[Path]:
    if os.geteuid() != 0 or sys.platform != "linux":
        return []
    mounted: list[Path] = []
    for path, size in ((data, _DATA_BYTES), (data / "store", _STORE_BYTES)):
        path.mkdir(mode=0o700, exist_ok=True)
        options = f"size={size},mode=700"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)],
            check=False,
            capture_output=True,  # a container may forbid it; the report shows that
        )
        if done.returncode != 0:
            break
        mounted.append(path)
    return mounted


def _fill(path: Path) -> Path:
    """Fill a file system. Concurrent writers may take some of the free space first."""
    chunk = 64 * 1024 * 1024
    with (path / _FILLER).open("wb", buffering=0) as filler:
        size = 0
        while chunk:
            try:
                os.posix_fallocate(filler.fileno(), size, chunk)
                size += chunk
            except OSError:
                chunk = chunk // 2 if chunk > 4096 else 0
    return path
