"""The data directory and its disk: the ordinary one, or file systems in memory."""

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path

_DATA_BYTES = 512 * 1024 * 1024
_STORE_BYTES = 4 * 1024 * 1024 * 1024
_UNMOUNT_TIMEOUT_S = 20.0
_FILLER = "filler-of-the-crash-test"
_FILLER_MODE = 0o200  # no file of a service has it, so the filler is known under any name


class Capability(Enum):
    """What a fault needs: of the disk of the data directory, of the store, or of the machine."""

    FULL_DISK = auto()
    FULL_STORE = auto()
    POWER_CUT = auto()
    FAILING_CALLS = auto()
    EMBEDDED_STORE = auto()
    REPLICAS = auto()


ORDINARY_CAPABILITIES = frozenset({Capability.EMBEDDED_STORE})
MEMORY_CAPABILITIES = ORDINARY_CAPABILITIES | {Capability.FULL_DISK, Capability.FULL_STORE}


class DiskUnavailable(Exception):
    """This machine cannot have a kind of disk."""


class DiskFailed(Exception):
    """A disk that was in use cannot be mounted or unmounted any more."""


class DataDisk:
    """A data directory and what can be done to its disk. `work` is on the ordinary disk."""

    def __init__(self, work: Path, data: Path) -> None:
        self.work = work
        self.data = data
        self.power_cuts: int = 0
        self.crash_images: int = 0
        self.unmountable_images: int = 0

    def begin_load(self) -> None:
        """Called when the service is ready, before the first round."""

    def fill(self) -> Path:
        """Fill the file system of the logs, ledger and keys; return the path to free."""
        return _fill(self.data)

    def fill_store(self) -> Path:
        """Fill the file system of the store; return the path to free."""
        return _fill(self.data / "store")

    def free_space(self, filled: Path) -> None:
        """Delete the file that fills a file system, unless a power cut did."""
        (filled / _FILLER).unlink(missing_ok=True)

    def sync(self) -> None:
        """Flush the file system, as after changes that must survive a power cut."""
        subprocess.run(["sync", "--file-system", str(self.data)], check=True)

    def keep(self, kept: Path) -> None:
        """Copy the data directory to the ordinary disk, preserving symbolic links."""
        shutil.copytree(self.data, kept, symlinks=True, ignore=shutil.ignore_patterns(_FILLER))


def missing_for_memory() -> str:
    """Return what this machine lacks for `memory_disk`, or an empty string."""
    return "" if os.geteuid() == 0 and sys.platform == "linux" else "root on Linux"


@contextmanager
def ordinary_disk(work: Path) -> Generator[DataDisk]:
    """Create a data directory on the ordinary disk."""
    data = work / "data"
    data.mkdir(mode=0o700)
    yield DataDisk(work, data)


@contextmanager
def memory_disk(work: Path, *, store_bytes: int = _STORE_BYTES) -> Generator[DataDisk]:
    """Create a data directory on two file systems in memory, so that either can be filled.

    Unmounts them on exit. Raises `DiskUnavailable`.
    """
    data = work / "data"
    with _mounted_in_memory(data, _DATA_BYTES), _mounted_in_memory(data / "store", store_bytes):
        yield DataDisk(work, data)


@contextmanager
def _mounted_in_memory(path: Path, size: int) -> Generator[None]:
    path.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise DiskUnavailable(f"a container may forbid to mount: {done.stderr.strip()}")
    try:
        yield
    finally:
        _unmount(path)


def _unmount(path: Path) -> None:
    """Unmount a file system. Processes that were killed may hold it for a moment."""
    deadline = time.monotonic() + _UNMOUNT_TIMEOUT_S
    while subprocess.run(["umount", str(path)], check=False, capture_output=True).returncode:
        if time.monotonic() > deadline:
            print(f"{path} is still mounted: a process uses it", flush=True)
            return
        time.sleep(0.1)


def _fill(path: Path) -> Path:
    """Fill a file system. Concurrent writers may take some of the free space first."""
    chunk = 64 * 1024 * 1024
    filler = os.open(path / _FILLER, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILLER_MODE)
    try:
        size = 0
        while chunk:
            try:
                os.posix_fallocate(filler, size, chunk)
                size += chunk
            except OSError:
                chunk = chunk // 2 if chunk > 4096 else 0
    finally:
        os.close(filler)
    return path


def is_filler(path: Path) -> bool:
    """Return whether a file is what fills a file system, whatever its name is."""
    found = path.lstat().st_mode
    return stat.S_ISREG(found) and stat.S_IMODE(found) == _FILLER_MODE
