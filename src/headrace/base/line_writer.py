"""Writes the lines of a log without ever waiting for who reads them."""

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MAX_WAITING_LINES: Final = 1000
"""Lines that wait for a reader that is slow, or does not read at all."""

CLOSING_TIMEOUT_S: Final = 0.5
"""How long the end of a process waits for the lines that are still to be written."""


class LineWriter:
    """Writes lines to a descriptor from a thread of its own, in order; safe for several threads.

    A pipe that is full, a stopped terminal or a hanging server of the log blocks that thread alone:
    lines are dropped while `max_lines` wait, and `on_dropped` receives their number once there is
    space. What fails, as on a full disk, is dropped too.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        max_lines: int = MAX_WAITING_LINES,
        on_dropped: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._descriptor = descriptor
        self._max_lines = max_lines
        self._on_dropped = on_dropped
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._is_idle = True
        self._changed = threading.Condition()
        self._cut = b""  # the rest of a line whose beginning is written
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Write a line, with its end. Never blocks, never raises."""
        with self._changed:
            if len(self._lines) >= self._max_lines:
                self._dropped += 1
                return
            self._lines.append(line)
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many lines wait until the one that is being written is."""
        return len(self._lines)

    def flush(self) -> None:
        """Do nothing: lines are written at once, or wait."""

    def drain(self, timeout_s: float = CLOSING_TIMEOUT_S) -> bool:
        """Wait until all lines are written. Return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_idle and not self._lines, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines)
                self._is_idle = False
                line = self._lines.popleft()
            self._write_whole(line)
            with self._changed:
                dropped, self._dropped = self._dropped, 0
            if dropped:
                self._on_dropped(dropped)

    def _write_whole(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._cut:
                self._cut = self._write_some(self._cut)
            if not self._cut:
                self._cut = self._write_some(line)

    def _write_some(self, content: bytes) -> bytes:
        """Write; return the rest where that fails within a line. Raises `OSError` before it."""
        written = 0
        while written < len(content):
            try:
                written += os.write(self._descriptor, content[written:])
            except BlockingIOError:  # another program has made its description non-blocking
                select.select([], [self._descriptor], [])
            except OSError:
                if not written:
                    raise
                break
        return content[written:]
