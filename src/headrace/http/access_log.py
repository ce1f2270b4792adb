"""Logs and counts requests, never with an address, a key or a payload."""

import logging
import traceback

from headrace.base.clock import Clock
from headrace.base.errors import DurabilityUnknown, StoreAckTimeout, Unavailable
from headrace.base.log_throttle import LogThrottle
from headrace.base.logs import Logger
from headrace.base.metrics import Metrics
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.endpoints import READY
from headrace.http.responses import INTERNAL, find_error_response

CLIENT_CLOSED_REQUEST = 499
"""The status in log and metrics after a client disconnect; never sent."""

REQUESTS_TOTAL = "headrace_http_requests_total"

_WINDOW_S = 10.0
_REQUEST_LINES = 100
"""Per endpoint and status in the window; the metrics count every request."""
_ERROR_LINES = 10
_UNAVAILABLE_LINES = 1
"""A full disk, for example, is logged once per window and not once per request."""

_START_S = 30.0
"""A probe that finds a part not ready is routine until then, as the service's own probes are."""


class AccessLog:
    """Writes the log line and the count of each request."""

    def __init__(self, *, clock: Clock, metrics: Metrics, log: Logger) -> None:
        self.monotonic_s = clock.monotonic_s
        self._count = metrics.count
        self._log = log
        self._is_debug_enabled = log.is_enabled_for(logging.DEBUG)
        self._created_s = clock.monotonic_s()
        self._has_been_ready = False
        self._lines, self._errors, self._unavailable = (
            LogThrottle(lines=lines, window_s=_WINDOW_S, monotonic_s=clock.monotonic_s)
            for lines in (_REQUEST_LINES, _ERROR_LINES, _UNAVAILABLE_LINES)
        )

    def record(
        self, spec: EndpointSpec, method: str, status: int, started_s: float, request_id: str
    ) -> None:
        """Count a request after its response, and log it."""
        self._count(REQUESTS_TOTAL, 1, spec.name, str(status))
        if spec is READY and status == 200:
            self._has_been_ready = True
        is_routine = spec.is_routine and (status < 300 or self._is_starting(spec, status))
        if is_routine and not self._is_debug_enabled:
            return
        suppressed = 0 if self._is_debug_enabled else self._lines.admit((spec.name, status))
        if suppressed is None:
            return
        write = self._log.debug if is_routine else self._log.info
        write(
            "request",
            method=method,
            endpoint=spec.name,
            status=status,
            duration_ms=round((self.monotonic_s() - started_s) * 1000, 3),
            request_id=request_id,
            **_suppressed_field(suppressed),
        )

    def _is_starting(self, spec: EndpointSpec, status: int) -> bool:
        """Return whether a probe, such as the service's own, came before everything had started."""
        return (
            spec is READY
            and status == 503
            and not self._has_been_ready
            and self.monotonic_s() - self._created_s < _START_S
        )

    def record_failure(self, spec: EndpointSpec, error: BaseException, request_id: str) -> None:
        """Log the cause of a server error, which its response never contains.

        The messages of our own errors are safe to log. Of any other error the log has only type and
        traceback, since its message may quote the payload. Repeated errors are throttled.
        """
        if isinstance(error, Unavailable | StoreAckTimeout | DurabilityUnknown):
            throttle, cause = self._unavailable, _error_fields(error)
        elif find_error_response(error) is INTERNAL:
            throttle, cause = self._errors, _traceback_fields(error)
        else:
            return
        suppressed = throttle.admit((spec.name, *cause.values()))
        if suppressed is not None:
            self._log.error(
                "request_failed",
                endpoint=spec.name,
                request_id=request_id,
                **cause,
                **_suppressed_field(suppressed),
            )


def _suppressed_field(suppressed: int) -> dict[str, int]:
    return {"left_out": suppressed} if suppressed else {}


def _error_fields(error: BaseException) -> dict[str, str]:
    return {"error": type(error).__name__, "reason": str(error)}


def _traceback_fields(error: BaseException) -> dict[str, str]:
    return {"error": _exception_chain(error), "traceback": _format_traceback(error)}


def _exception_chain(error: BaseException) -> str:
    names = [type(error).__name__]
    while (cause := error.__cause__ or error.__context__) is not None:
        names.append(type(cause).__name__)
        error = cause
    return " from ".join(names)


def _format_traceback(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__))
