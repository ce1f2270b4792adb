"""Reserves disk space on ext4 for a file before it grows into it.

A file that grows by small appends, between other files, gets one extent after the other. More than
four do not fit into its inode: they are in a block of their own, and without a journal nothing
orders that block and the inode, which has the size of the file. After a power cut the check of the
file system takes an extent that ends after the file for damage and clears all of it, with what was
durable long before. Space that was reserved in few pieces stays in the inode, which a disk writes
as one sector. Other file systems order the two and get no reservation.
"""

import ctypes
import fcntl
import os
import struct
import sys
from contextlib import suppress
from typing import Final

_MOST_PIECES: Final = 3  # writing makes one more of them: its written part
_SMALLEST_BYTES: Final = 4 * 1024 * 1024  # each segment costs some syncs
_FREE_FACTOR: Final = 32  # nearly full disks stay as they are
_KEEP_SIZE: Final = 1
_GET_FLAGS: Final = 0x80086601
_HAS_EXTENT_TREE: Final = 0x00080000
_GET_EXTENTS: Final = 0xC020660B
_FLAGS: Final = struct.Struct("=Ixxxx")
_EXTENTS: Final = struct.Struct("=QQIIII")  # start, length, flags, number found, room for them, 0

_libc: Final = ctypes.CDLL(None, use_errno=True)


def reserve_space(file: int, size: int) -> int:
    """Reserve space for an empty file that is going to grow to a size; its own size stays 0.

    Returns the number of bytes reserved: less than `size` where the free space is fragmented, and
    0 where little is free, or where the file system has no need of it or cannot do it.
    """
    smallest = min(size, _SMALLEST_BYTES)
    try:
        while size >= smallest and _has_extent_tree(file) and is_space_ample(file, size):
            _allocate(file, size)
            if _number_of_extents(file) <= _MOST_PIECES:
                return size
            os.ftruncate(file, 0)
            size //= 2
    except OSError:
        with suppress(OSError):  # it is freed with the file
            os.ftruncate(file, 0)
    return 0


def is_space_ample(file: int, size: int) -> bool:
    """Return whether the file system of a file has room for many of a size. Raises `OSError`."""
    file_system = os.fstatvfs(file)
    return file_system.f_bavail * file_system.f_frsize >= _FREE_FACTOR * size


def _has_extent_tree(file: int) -> bool:
    """Return whether this is a file of ext4, unless it was made as one of ext3."""
    if sys.platform != "linux":
        return False
    (flags,) = _FLAGS.unpack(fcntl.ioctl(file, _GET_FLAGS, bytes(_FLAGS.size)))
    return bool(flags & _HAS_EXTENT_TREE)


def _allocate(file: int, size: int) -> None:
    # `os.posix_fallocate` would make the file larger
    if _libc.fallocate(file, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _number_of_extents(file: int) -> int:
    whole_file = _EXTENTS.pack(0, 2**64 - 1, 0, 0, 0, 0)
    found = _EXTENTS.unpack(fcntl.ioctl(file, _GET_EXTENTS, whole_file))
    return int(found[3])
