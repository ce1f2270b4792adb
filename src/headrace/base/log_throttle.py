"""Bounds how many log lines of one kind are written: no caller may fill a disk with them."""

import logging
from collections.abc import Callable, Hashable
from typing import Final

_MOST_KINDS: Final = 1_000


class _Window:
    __slots__ = ("left_out", "since_s", "written")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.written = 1
        self.left_out = 0


class LineBudget:
    """Lets the first lines of each kind through and counts the others, until its time is over."""

    def __init__(self, *, lines: int, window_s: float, monotonic_s: Callable[[], float]) -> None:
        self._lines = lines
        self._window_s = window_s
        self._monotonic_s = monotonic_s
        self._windows: dict[Hashable, _Window] = {}

    def take(self, kind: Hashable) -> int | None:
        """Return how many lines were left out since the last one of a kind; None: leave it out."""
        now_s = self._monotonic_s()
        window = self._windows.get(kind)
        if window is None or now_s - window.since_s >= self._window_s:
            return self._begin(kind, now_s, left_out=window.left_out if window else 0)
        if window.written < self._lines:
            window.written += 1
            return 0
        window.left_out += 1
        return None

    def _begin(self, kind: Hashable, now_s: float, *, left_out: int) -> int:
        if len(self._windows) >= _MOST_KINDS:
            self._windows.clear()
        self._windows[kind] = _Window(now_s)
        return left_out


class SparingFilter(logging.Filter):
    """Bounds the lines of libraries, which know nothing of floods; a kind is a text of theirs."""

    def __init__(self, budget: LineBudget) -> None:
        super().__init__()
        self._budget = budget

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write a line, which then says how many like it were left out."""
        left_out = self._budget.take((record.name, record.levelno, str(record.msg)))
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like this were left out)"
        return left_out is not None
