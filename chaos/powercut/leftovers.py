"""Unmounts the disks of runs that were killed: other programs fail when they look at these."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chaos.powercut.fuse import FILE_NAME, FILE_SYSTEM_TYPE

_DAEMON = b"chaos.powercut.daemon"
_MOUNTS = Path("/proc/self/mounts")
_LOOP_DEVICES = Path("/sys/block")
_ESCAPED = re.compile(r"\\(\d{3})")


class _Mount(NamedTuple):
    """A line of the kernel's table."""

    source: str
    target: Path
    type: str


def unmount_leftovers() -> None:
    """Unmount all recording disks whose daemon is dead."""
    for mount in _mounts():
        if mount.type == FILE_SYSTEM_TYPE and not _is_alive(mount.source):
            unmount_lazily(mount.target)


def unmount_lazily(directory: Path) -> None:
    """Unmount a recording disk with the file system on it, even if processes still use them."""
    for device in _loop_devices(directory / FILE_NAME):
        for mount in _mounts():
            if mount.source == device:
                _run("umount", "--lazy", str(mount.target))
        _run("losetup", "--detach", device)
    _run("umount", "--lazy", str(directory))


def _mounts() -> list[_Mount]:
    lines = (line.split(" ") for line in _MOUNTS.read_text().splitlines())
    return [
        _Mount(_unescaped(source), Path(_unescaped(target)), kind)
        for source, target, kind, *_ in lines
    ]


def _unescaped(field: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)


def _is_alive(process: str) -> bool:
    """Return whether the daemon of a disk runs. Looking at its mount could wait for it."""
    try:
        return _DAEMON in Path("/proc", process, "cmdline").read_bytes()
    except OSError:
        return False


def _loop_devices(file: Path) -> Iterator[str]:
    for backing in _LOOP_DEVICES.glob("loop*/loop/backing_file"):
        if backing.read_text().rstrip("\n") == str(file):
            yield f"/dev/{backing.parts[-3]}"


def _run(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)
