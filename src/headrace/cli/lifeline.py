"""What a child process needs of its supervisor: signals, and an end when the supervisor is gone."""

import asyncio
import os
import signal
import threading


def hold_lifeline(descriptor: int) -> None:
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
