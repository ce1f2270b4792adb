"""Keeps memory that large buffers free for the next ones, instead of returning it to the system.

glibc maps new memory for each buffer of 128 KiB or more; the system clears its pages when first
written. A load has dozens of megabytes of such buffers: this was a fifth of its time.
"""

import contextlib
import ctypes
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""The parameters of `mallopt`."""

_LARGEST_KEPT_BYTES: Final = 32 * 1024 * 1024
_KEPT_BYTES: Final = 256 * 1024 * 1024


def keep_freed_memory() -> None:
    """Keep up to 256 MiB of freed memory. Call it before other threads start.

    All threads share one arena, because each would keep as much. Does nothing without glibc.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def return_freed_memory() -> None:
    """Return all freed memory to the system; takes milliseconds. Any thread may call it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
