"""A lock on a file that one process has at a time. The system frees it when the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class ProcessLock:
    """Belongs to one thread. Without a path it is always free: nobody else has the outbox."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> bool:
        """Return whether this process has the lock now; it does not wait."""
        if self._path is None or (self._file is not None and self._is_current(self._file)):
            return True
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            if self._file is None:
                raise
            return True  # its folder was deleted, so no other process can have the outbox
        self.release()
        try:
            _lock(file)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def _is_current(self, file: int) -> bool:
        """Return whether other processes see the same file: it may have been deleted."""
        try:
            return self._path is not None and self._path.stat().st_ino == os.fstat(file).st_ino
        except OSError:
            return False

    def release(self) -> None:
        """Free the lock. In a forked child this only forgets it: the parent keeps it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
