"""Decides whether a log writes zeros ahead of its records, which the records then overwrite.

A sync of a file that has grown writes its new size too, and waits until the journal of the file
system has it. A sync of overwritten blocks writes these alone. A file system that copies on write
has no blocks to overwrite: it would only write more.
"""

import ctypes
import sys
from typing import Final

from headrace.adapters.event_log.reserved_space import is_space_ample

_EXT2_TO_EXT4: Final = 0xEF53
_XFS: Final = 0x58465342
_OVERWRITING: Final = frozenset({_EXT2_TO_EXT4, _XFS})
_STATFS_BYTES: Final = 256  # more than `struct statfs`, which begins with the type

_libc: Final = ctypes.CDLL(None)


def is_zeroing_worthwhile(file: int, size: int) -> bool:
    """Return whether zeros make syncs of a file cheaper, and the disk has ample room for them.

    `size` is that of a whole segment.
    """
    try:
        return _has_fixed_blocks(file) and is_space_ample(file, size)
    except OSError:
        return False


def _has_fixed_blocks(file: int) -> bool:
    if sys.platform != "linux":
        return False
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    found = _libc.fstatfs(file, status) == 0
    return found and ctypes.c_long.from_buffer(status).value in _OVERWRITING
