"""The child's side of the supervisor: signals, the exit with the parent, the file limit."""

import asyncio
import os
import resource
import signal
import threading
from contextlib import suppress
from typing import Final

_MAX_FILES: Final = 1_048_576


def exit_with_parent(descriptor: int) -> None:
    """Exit immediately when the other end of the pipe is closed.

    A thread waits for it, so that a busy event loop cannot delay the exit. Exiting without cleanup
    is safe at any time: acknowledged events are on disk.
    """
    threading.Thread(target=_wait_for_end, args=(descriptor,), daemon=True).start()


def _wait_for_end(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os._exit(1)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM sets. What a terminal sends to all is ignored already."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    return stop


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, at most 1,048,576.

    Each connection is an open file, and the soft limit of a shell is often 1,024.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft_limit = _MAX_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, _MAX_FILES)
    with suppress(ValueError, OSError):  # keep the current limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
