"""Counts calls that succeed, many of them in one step."""

import asyncio

from headrace.base.telemetry import Metrics
from headrace.http.access_log import REQUESTS_TOTAL
from headrace.http.endpoints import EndpointSpec


class BatchedCounter:
    """Counts calls answered with 200; used from one event loop.

    The counter lies in memory that processes share and is dear to step: one step counts all
    calls of a turn of the loop, before the loop takes anything new in.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.count
        self._pending_counts: dict[str, int] = {}

    def add(self, spec: EndpointSpec) -> None:
        """Count one call."""
        if not self._pending_counts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending_counts[spec.name] = self._pending_counts.get(spec.name, 0) + 1

    def _flush(self) -> None:
        for name, count in self._pending_counts.items():
            self._count(REQUESTS_TOTAL, count, name, "200")
        self._pending_counts.clear()
