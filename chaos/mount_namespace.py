"""Mounts that only one run of the crash test sees."""

import ctypes
import os

_NEW_NAMESPACE = 0x00020000
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18


def enter_own_namespace() -> None:
    """Give this process, which must not have threads yet, a table of mounts of its own.

    Another program with a copy of the table keeps what it has mounted, and then nothing here can be
    unmounted for good. The mounts are gone when the run and its children are. Raises `OSError`.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACE) != 0 or (
        libc.mount(b"none", b"/", None, ctypes.c_ulong(_RECURSIVE | _PRIVATE), None) != 0
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
