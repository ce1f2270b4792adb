"""Remembers which logs could not be read, how far they can be, and when to try them again."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.telemetry import Metrics, get_logger
from headrace.ports.event_log import LogPosition

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class _Trouble(Struct, frozen=True):
    place: LogPosition | None
    pause_s: float
    retry_s: float


class UnreadableLogs:
    """The logs of which a part cannot be read now; used from one thread.

    A place of None means that not even the log's end is known.
    """

    def __init__(self, *, clock: Clock, metrics: Metrics | None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._troubles: dict[str, _Trouble] = {}

    def names(self) -> Sequence[str]:
        """Return the names of these logs."""
        return sorted(self._troubles)

    def is_resting(self, log: str) -> bool:
        """Tell whether a log is one of these, and not yet to be tried again."""
        trouble = self._troubles.get(log)
        return trouble is not None and self._clock.monotonic_s() < trouble.retry_s

    def readable_end(self, log: str) -> LogPosition | None:
        """Return the place up to which one of these logs can be read."""
        trouble = self._troubles.get(log)
        return None if trouble is None else trouble.place

    def note(self, log: str, error: OSError, *, place: LogPosition | None) -> None:
        """Remember that a log cannot be read from a place on; each time with a longer pause."""
        before = self._troubles.get(log)
        pause_s = _FIRST_PAUSE_S if before is None else min(before.pause_s * 2, _LONGEST_PAUSE_S)
        retry_s = self._clock.monotonic_s() + pause_s
        self._troubles[log] = _Trouble(place, pause_s, retry_s)
        get_logger().error("log_unreadable", log=log, reason=str(error), retry_in_s=pause_s)
        self._count()

    def forget(self, log: str) -> None:
        """Note that a log can be read. Cheap where it always could."""
        if self._troubles.pop(log, None) is not None:
            get_logger().info("log_readable_again", log=log)
            self._count()

    def _count(self) -> None:
        if self._metrics is not None:
            self._metrics.set("headrace_logs_unreadable", len(self._troubles))
