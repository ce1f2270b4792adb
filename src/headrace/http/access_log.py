"""What is kept of a call: one line in the log and one count. Never an address, key or payload."""

import logging
import traceback

from headrace.base.clock import Clock
from headrace.base.errors import LogUncertain, NotYetStored, Unavailable
from headrace.base.log_throttle import LineBudget
from headrace.base.telemetry import Logger, Metrics
from headrace.http.endpoints import EndpointRow
from headrace.http.responses import INTERNAL, refusal_of

CLIENT_CLOSED_REQUEST = 499
"""The status in log and metrics of a call whose caller went away; never sent."""

REQUESTS_TOTAL = "headrace_http_requests_total"

_WINDOW_S = 10.0
_LINES = 100
"""Of one endpoint and status in that time; the metrics count every call."""
_FAULTS = 10
_WORDS_OF_UNAVAILABLE = 1
"""A full disk, say, is news once and not for each request that meets it."""


class CallRecorder:
    """Writes the log lines and counts of calls."""

    def __init__(self, *, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self.monotonic_s = clock.monotonic_s
        self._count = metrics.count
        self._log = log
        self._writes_debug = log.is_enabled_for(logging.DEBUG)
        self._lines, self._faults, self._unavailable = (
            LineBudget(lines=lines, window_s=_WINDOW_S, monotonic_s=clock.monotonic_s)
            for lines in (_LINES, _FAULTS, _WORDS_OF_UNAVAILABLE)
        )

    def record(
        self, row: EndpointRow, method: str, status: int, started_s: float, request_id: str
    ) -> None:
        """Count a call that was answered and write its line."""
        self._count(REQUESTS_TOTAL, 1, row.name, str(status))
        is_routine = status < 300 and row.is_routine
        if is_routine and not self._writes_debug:
            return
        left_out = 0 if self._writes_debug else self._lines.take((row.name, status))
        if left_out is None:
            return
        write = self._log.debug if is_routine else self._log.info
        write(
            "request",
            method=method,
            endpoint=row.name,
            status=status,
            duration_ms=round((self.monotonic_s() - started_s) * 1000, 3),
            request_id=request_id,
            **_told(left_out),
        )

    def record_failure(self, row: EndpointRow, error: BaseException, request_id: str) -> None:
        """Write the cause of a reply that is our fault; the caller never sees it.

        Our own errors have words of ours. Of any other only its type and place are written: its
        message may quote what a caller sent. What comes again and again is counted and left out.
        """
        if isinstance(error, Unavailable | NotYetStored | LogUncertain):
            budget, cause = self._unavailable, _words_of(error)
        elif refusal_of(error) is INTERNAL:
            budget, cause = self._faults, _places_of(error)
        else:
            return
        left_out = budget.take((row.name, *cause.values()))
        if left_out is not None:
            self._log.error(
                "request_failed",
                endpoint=row.name,
                request_id=request_id,
                **cause,
                **_told(left_out),
            )


def _told(left_out: int) -> dict[str, int]:
    return {"left_out": left_out} if left_out else {}


def _words_of(error: BaseException) -> dict[str, str]:
    return {"error": type(error).__name__, "reason": str(error)}


def _places_of(error: BaseException) -> dict[str, str]:
    return {"error": _chain_of(error), "traceback": _places_in(error)}


def _chain_of(error: BaseException) -> str:
    names = [type(error).__name__]
    while (cause := error.__cause__ or error.__context__) is not None:
        names.append(type(cause).__name__)
        error = cause
    return " from ".join(names)


def _places_in(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__))
