"""How a child shows that its event loop turns, and how the supervisor listens."""

import asyncio
import contextlib
import os
from typing import Final

MAX_INTERVAL_S: Final = 1.0
_BEATS_PER_TIMEOUT = 5
_STARTUP_FACTOR = 10
"""A child may take so many timeouts until its first beat: opening a large store takes a while."""


def heartbeat_interval_s(watchdog_timeout_s: float) -> float:
    """Return the time between two beats, and between two looks for them."""
    return min(MAX_INTERVAL_S, watchdog_timeout_s / _BEATS_PER_TIMEOUT)


async def send_heartbeats(descriptor: int, watchdog_timeout_s: float) -> None:
    """Write a byte again and again, for as long as this event loop turns.

    Not in a thread: a thread would go on while the loop is blocked.
    """
    while True:
        with contextlib.suppress(BlockingIOError):  # nobody listened for hours: it is enough
            os.write(descriptor, b".")
        await asyncio.sleep(heartbeat_interval_s(watchdog_timeout_s))


class Heartbeat:
    """The supervisor's end of one child's pipe.

    Silence is counted in looks and not by the clock, so that a supervisor that was itself held up
    does not blame its children.
    """

    def __init__(self, watchdog_timeout_s: float) -> None:
        self._interval_s = heartbeat_interval_s(watchdog_timeout_s)
        self._hang_timeout_s = watchdog_timeout_s
        self._read_end, self.descriptor = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self.descriptor, False)
        self.silence_s = 0.0

    def close_child_end(self) -> None:
        """Close what only the child writes to, once it has started. May be called twice."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        """Close both ends."""
        self.close_child_end()
        os.close(self._read_end)

    async def wait_for_silence(self) -> None:
        """Return when the child has been silent for too long; `silence_s` tells how long."""
        limit_s = self._hang_timeout_s * _STARTUP_FACTOR
        while self.silence_s <= limit_s:
            await asyncio.sleep(self._interval_s)
            if self._has_new_beat():
                self.silence_s, limit_s = 0.0, self._hang_timeout_s
            else:
                self.silence_s += self._interval_s

    def _has_new_beat(self) -> bool:
        try:
            return bool(os.read(self._read_end, 65_536))
        except BlockingIOError:
            return False
