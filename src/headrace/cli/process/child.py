"""What a child process needs of its supervisor: signals, and an end when the supervisor is gone."""

import asyncio
import os
import resource
import signal
import threading
from contextlib import suppress
from typing import Final

_MAX_FILES: Final = 1_048_576


def exit_with_parent(descriptor: int) -> None:
    """Leave the process at once when the other end of the pipe is closed.

    A thread of its own waits, so that a busy event loop cannot delay it. Leaving without clean-up
    is safe at any moment: what was acknowledged is on disk.
    """
    threading.Thread(target=_wait_for_end, args=(descriptor,), daemon=True).start()


def _wait_for_end(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os._exit(1)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM sets. SIGINT is the supervisor's to handle."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    return stop


def raise_file_limit() -> None:
    """Let this process and its children open as many files as they may, up to a million.

    Each connection is one, and the limit that shells give is often 1,024.
    """
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft_limit = _MAX_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, _MAX_FILES)
    with suppress(ValueError, OSError):  # what there is must do
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
