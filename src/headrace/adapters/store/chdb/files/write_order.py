"""Syncs all of a file system that has no journal, where a sync of one file orders nothing else.

chDB removes old parts and does not sync that. On ext4 without a journal the names in a removed
directory stay on the disk for a while, and one of them may lead to the inode of a new part by then.
After a power cut the check of the file system gives that inode to one name alone, and it may take
it from the table. Once everything is synced, no such name is left.
"""

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

_EXT4: Final = Path("/proc/fs/ext4")
_DEVICES: Final = Path("/sys/dev/block")
_JOURNAL_MODE: Final = "data="

OrderWrites = Callable[[], None]
"""Returns when nothing that was written or removed before can reach the disk later.

Blocking. Raises `OSError`."""


def order_of_writes(directory: Path) -> OrderWrites:
    """Return how writes to the file system of a directory are ordered: by a sync of all of it.

    With a journal, or where the kernel names none of its options, nothing is to be done.
    """
    if lacks_journal(directory.stat().st_dev):
        return partial(sync_file_system, directory)
    return _do_nothing


def lacks_journal(device: int, *, ext4: Path = _EXT4, devices: Path = _DEVICES) -> bool:
    """Return whether the file system of a device is ext2, ext3 or ext4 without a journal.

    The kernel shows its options to every user, among them the mode of the journal if it has one.
    """
    name = (devices / f"{os.major(device)}:{os.minor(device)}").resolve().name
    try:
        options = (ext4 / name / "options").read_text().split()
    except OSError:  # another file system, another kernel, or a container without /proc/fs
        return False
    return not any(option.startswith(_JOURNAL_MODE) for option in options)


def sync_file_system(directory: Path) -> None:
    """Sync all of the file system of a directory; Linux alone has that. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        if libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def _do_nothing() -> None:
    pass
