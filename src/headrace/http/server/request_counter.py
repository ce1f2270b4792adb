"""Counts calls that succeed, many of them in one step."""

import asyncio

from headrace.base.telemetry import Metrics
from headrace.http.access_log import REQUESTS_TOTAL
from headrace.http.endpoints import EndpointRow


class CallTally:
    """Counts calls answered with 200; used from one event loop.

    The counter lies in memory that processes share and is dear to step: one step counts all
    calls of a turn of the loop, before the loop takes anything new in.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.count
        self._calls: dict[str, int] = {}

    def add(self, row: EndpointRow) -> None:
        """Count one call."""
        if not self._calls:
            asyncio.get_running_loop().call_soon(self._flush)
        self._calls[row.name] = self._calls.get(row.name, 0) + 1

    def _flush(self) -> None:
        for name, calls in self._calls.items():
            self._count(REQUESTS_TOTAL, calls, name, "200")
        self._calls.clear()
