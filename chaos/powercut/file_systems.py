"""The file systems on which the power is cut, and what they need."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_DEVICES = ("/dev/fuse", "/dev/loop-control")
_PROGRAMS = ("losetup", "mount", "umount")
_REPAIRED = 2  # of e2fsck: 0 without errors, 1 or 2 with errors that it corrected


class FileSystem(NamedTuple):
    """One file system: how it is made and mounted, and checked where it has no journal."""

    name: str
    type: str
    make: tuple[str, ...]
    check: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()

    def missing(self) -> str:
        """Return what this machine lacks for it, or an empty string."""
        if os.geteuid() != 0:
            return "root"
        commands = (self.make, self.check, self.forget)
        programs = (*_PROGRAMS, *(command[0] for command in commands if command))
        lacking = [path for path in _DEVICES if not Path(path).exists()]
        lacking += [program for program in programs if shutil.which(program) is None]
        return ", ".join(dict.fromkeys(lacking))

    def make_on(self, image: Path) -> None:
        """Make an empty file system in an image. Raises `CalledProcessError`."""
        subprocess.run([*self.make, str(image)], check=True, capture_output=True, text=True)

    def check_device(self, device: str) -> None:
        """Do what an operating system does before it mounts it after a power cut."""
        if self.check:
            done = subprocess.run([*self.check, device], check=False, capture_output=True)
            if done.returncode > _REPAIRED:
                raise OSError(f"cannot repair the file system: {done.stdout.decode()}")

    def forget_device(self, device: str) -> None:
        """Make the kernel forget a device, before another image of the same one is mounted."""
        if self.forget:
            subprocess.run([*self.forget, device], check=False, capture_output=True)


_EXT4 = ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")

FILE_SYSTEMS: Mapping[str, FileSystem] = {
    each.name: each
    for each in (
        FileSystem("ext4", "ext4", _EXT4),
        FileSystem(
            "ext4-without-journal",
            "ext4",
            (*_EXT4, "-O", "^has_journal"),
            check=("e2fsck", "-f", "-y"),
        ),
        FileSystem("xfs", "xfs", ("mkfs.xfs", "-q", "-f")),
        FileSystem(
            "btrfs",
            "btrfs",
            ("mkfs.btrfs", "-q", "-f"),
            forget=("btrfs", "device", "scan", "--forget"),
        ),
    )
}
