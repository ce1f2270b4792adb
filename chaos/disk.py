"""Where the data lies: on small file systems of its own where that may be mounted, so that the disk
can be full for all or for the store alone; else in an ordinary directory.
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
    """A data directory; `can_be_full` where its file systems are its own."""

    def __init__(self, data: Path, *, can_be_full: bool) -> None:
        self.data = data
        self.can_be_full = can_be_full

    def fill(self) -> Path:
        """Leave no room for log, ledger and keys, nor for the store; return what to free."""
        return _fill(self.data)

    def fill_store(self) -> Path:
        """Leave no room for the store alone."""
        return _fill(self.data / "store")

    @staticmethod
    def free_space(filled: Path) -> None:
        """Take the filler away again."""
        (filled / _FILLER).unlink()


@contextmanager
def prepare_disk(work: Path, *, ordinary: bool) -> Generator[DataDisk]:
    """Make the data directory; mounts what it can and unmounts it again."""
    data = work / "data"
    data.mkdir(mode=0o700)
    mounted = [] if ordinary else _mount_both(data)
    try:
        yield DataDisk(data, can_be_full=len(mounted) == 2)
    finally:
        for path in reversed(mounted):
            subprocess.run(["umount", str(path)], check=False)


def keep_copy(data: Path, kept: Path) -> None:
    """Copy a data directory to the ordinary disk, symbolic links as such."""
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
            capture_output=True,  # a container may forbid it, which the table tells
        )
        if done.returncode != 0:
            break
        mounted.append(path)
    return mounted


def _fill(path: Path) -> Path:
    """Take all free room of a file system. What is written at the same time may get some first."""
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
