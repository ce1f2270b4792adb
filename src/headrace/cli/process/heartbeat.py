"""Heartbeats from the event loop of a child to the supervisor, through a pipe."""

import asyncio
import contextlib
import os
from typing import Final

MAX_INTERVAL_S: Final = 1.0
_BEATS_PER_TIMEOUT = 5
_STARTUP_FACTOR = 10
"""The first heartbeat may take this many timeouts: opening a large store takes minutes."""


def heartbeat_interval_s(watchdog_timeout_s: float) -> float:
    """Return the time between two heartbeats, and between two reads of them."""
    return min(MAX_INTERVAL_S, watchdog_timeout_s / _BEATS_PER_TIMEOUT)


async def send_heartbeats(descriptor: int, watchdog_timeout_s: float) -> None:
    """Write a byte at each interval from the event loop.

    A thread would continue to write while the event loop is blocked.
    """
    while True:
        with contextlib.suppress(BlockingIOError):  # full: the supervisor has not read for hours
            os.write(descriptor, b".")
        await asyncio.sleep(heartbeat_interval_s(watchdog_timeout_s))


class Heartbeat:
    """The supervisor's end of one child's pipe.

    Silence is counted in intervals between reads, not by the clock: a supervisor that was itself
    suspended must not kill its children.
    """

    def __init__(self, watchdog_timeout_s: float) -> None:
        self._interval_s = heartbeat_interval_s(watchdog_timeout_s)
        self._watchdog_timeout_s = watchdog_timeout_s
        self._read_end, self.descriptor = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self.descriptor, False)
        self.silence_s = 0.0

    def close_child_end(self) -> None:
        """Close the supervisor's copy of the write end, once the child has it. Idempotent."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        """Close both ends."""
        self.close_child_end()
        os.close(self._read_end)

    async def wait_for_silence(self) -> None:
        """Return when `silence_s` exceeds the timeout."""
        limit_s = self._watchdog_timeout_s * _STARTUP_FACTOR
        while self.silence_s <= limit_s:
            await asyncio.sleep(self._interval_s)
            if self._has_new_beat():
                self.silence_s, limit_s = 0.0, self._watchdog_timeout_s
            else:
                self.silence_s += self._interval_s

    def _has_new_beat(self) -> bool:
        try:
            return bool(os.read(self._read_end, 65_536))
        except BlockingIOError:
            return False
