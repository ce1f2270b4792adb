"""What is kept of a call: one line in the log and one count. Never an address, key or payload."""

import logging
import traceback

from millrace.base.clock import Clock
from millrace.base.errors import Unavailable
from millrace.base.telemetry import Logger, Metrics
from millrace.http.endpoints import EndpointRow
from millrace.http.replies import INTERNAL, refusal_of

CLIENT_CLOSED_REQUEST = 499
"""The status in log and metrics of a call whose caller went away; never sent."""

_REQUESTS_TOTAL = "millrace_http_requests_total"


class CallRecorder:
    """Writes the log lines and counts of calls."""

    def __init__(self, *, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self.monotonic_s = clock.monotonic_s
        self._count = metrics.count
        self._log = log
        self._writes_debug = log.is_enabled_for(logging.DEBUG)

    def record(
        self, row: EndpointRow, method: str, status: int, started_s: float, request_id: str
    ) -> None:
        """Count a call that was answered and write its line."""
        self._count(_REQUESTS_TOTAL, 1, row.name, str(status))
        is_routine = status < 300 and row.is_routine
        if is_routine and not self._writes_debug:
            return
        write = self._log.debug if is_routine else self._log.info
        write(
            "request",
            method=method,
            endpoint=row.name,
            status=status,
            duration_ms=round((self.monotonic_s() - started_s) * 1000, 3),
            request_id=request_id,
        )

    def record_failure(self, row: EndpointRow, error: BaseException, request_id: str) -> None:
        """Write the cause of a reply that is our fault; the caller never sees it.

        Our own errors have words of ours. Of any other only its type and place are written: its
        message may quote what a caller sent.
        """
        if isinstance(error, Unavailable):
            cause = {"error": type(error).__name__, "reason": str(error)}
        elif refusal_of(error) is INTERNAL:
            cause = {"error": _chain_of(error), "traceback": _places_in(error)}
        else:
            return
        self._log.error("request_failed", endpoint=row.name, request_id=request_id, **cause)


def _chain_of(error: BaseException) -> str:
    names = [type(error).__name__]
    while (cause := error.__cause__ or error.__context__) is not None:
        names.append(type(cause).__name__)
        error = cause
    return " from ".join(names)


def _places_in(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__))
