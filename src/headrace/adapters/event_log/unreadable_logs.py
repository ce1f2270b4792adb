"""Tracks the logs that could not be read: how far they are readable, and when to retry them."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import system_reason
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LogOffset

_INITIAL_BACKOFF_S: Final = 1.0
_MAX_BACKOFF_S: Final = 60.0


def describe_unreadable(logs: Sequence[str]) -> str:
    """Return the clause that names logs that cannot be read."""
    return f"acknowledged events cannot be read now, in the log {', '.join(logs)}"


class _ReadFailure(Struct, frozen=True):
    offset: LogOffset | None
    backoff_s: float
    retry_at_s: float


class UnreadableLogs:
    """The logs that have an unreadable part now; used from one thread.

    An offset of None means that not even the end of the log is known.
    """

    def __init__(self, *, clock: Clock, metrics: Metrics | None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._failures: dict[str, _ReadFailure] = {}

    def names(self) -> Sequence[str]:
        """Return the names of these logs, sorted."""
        return sorted(self._failures)

    def is_backing_off(self, log: str) -> bool:
        """Return whether a log is one of these and its retry is not due yet."""
        failure = self._failures.get(log)
        return failure is not None and self._clock.monotonic_s() < failure.retry_at_s

    def readable_end(self, log: str) -> LogOffset | None:
        """Return the offset up to which one of these logs can be read."""
        failure = self._failures.get(log)
        return None if failure is None else failure.offset

    def record_failure(self, log: str, error: OSError, *, offset: LogOffset | None) -> None:
        """Record that a log cannot be read from an offset on; doubles the backoff of the log."""
        previous = self._failures.get(log)
        backoff_s = (
            _INITIAL_BACKOFF_S if previous is None else min(previous.backoff_s * 2, _MAX_BACKOFF_S)
        )
        retry_at_s = self._clock.monotonic_s() + backoff_s
        self._failures[log] = _ReadFailure(offset, backoff_s, retry_at_s)
        get_logger().error(
            "log_unreadable", log=log, reason=system_reason(error), retry_in_s=backoff_s
        )
        self._update_gauge()

    def record_recovery(self, log: str) -> None:
        """Record that a log can be read. Cheap for a log that always could."""
        if self._failures.pop(log, None) is not None:
            get_logger().info("log_readable_again", log=log)
            self._update_gauge()

    def _update_gauge(self) -> None:
        if self._metrics is not None:
            self._metrics.set("headrace_logs_unreadable", len(self._failures))
