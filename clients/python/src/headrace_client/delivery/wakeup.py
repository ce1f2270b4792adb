"""A flag that a thread waits for, and that a signal handler may set at any time.

`threading.Event` takes a lock to be set: a signal handler that sets it while it is being set waits
for ever.
"""

from __future__ import annotations

import threading
from contextlib import suppress


class Wakeup:
    """Set by any thread; the one that waits for it takes it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # free while the flag is set
        self._lock.acquire()

    def set(self) -> None:
        """Set the flag. One call of C: no signal handler runs in between."""
        if self._lock.locked():
            with suppress(RuntimeError):  # another thread was first
                self._lock.release()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the flag is set, clear it, and return whether it was set in time."""
        return self._lock.acquire(timeout=timeout_s)
