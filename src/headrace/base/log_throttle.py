"""Limits the log lines written of each kind, so that no client can fill a disk with them."""

import logging
from collections.abc import Callable, Hashable
from typing import Final

_MAX_KINDS: Final = 1_000


class _Window:
    __slots__ = ("since_s", "suppressed", "written")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.written = 1
        self.suppressed = 0


class LogThrottle:
    """Admits the first `lines` of each kind per window and counts the rest as suppressed.

    Remembers at most 1,000 kinds; beyond that it forgets all of them, and their counts.
    """

    def __init__(self, *, lines: int, window_s: float, monotonic_s: Callable[[], float]) -> None:
        self._lines = lines
        self._window_s = window_s
        self._monotonic_s = monotonic_s
        self._windows: dict[Hashable, _Window] = {}

    def admit(self, kind: Hashable) -> int | None:
        """Return how many lines of a kind were suppressed before this one; None to suppress it."""
        now_s = self._monotonic_s()
        window = self._windows.get(kind)
        if window is None or now_s - window.since_s >= self._window_s:
            return self._begin(kind, now_s, suppressed=window.suppressed if window else 0)
        if window.written < self._lines:
            window.written += 1
            return 0
        window.suppressed += 1
        return None

    def _begin(self, kind: Hashable, now_s: float, *, suppressed: int) -> int:
        if len(self._windows) >= _MAX_KINDS:
            self._windows.clear()
        self._windows[kind] = _Window(now_s)
        return suppressed


class LogThrottleFilter(logging.Filter):
    """Throttles the log lines of libraries. A kind is a logger, a level and an unformatted text."""

    def __init__(self, throttle: LogThrottle) -> None:
        super().__init__()
        self._throttle = throttle

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a line; appends to it how many like it were suppressed."""
        suppressed = self._throttle.admit((record.name, record.levelno, str(record.msg)))
        if suppressed:
            record.msg = f"{record.msg} ({suppressed} more like this were left out)"
        return suppressed is not None
