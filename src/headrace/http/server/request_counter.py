"""Counts successful requests in batches."""

import asyncio

from headrace.base.metrics import Metrics
from headrace.http.access_log import REQUESTS_TOTAL
from headrace.http.endpoint_spec import EndpointSpec


class BatchedCounter:
    """Counts requests answered with 200; used from one event loop.

    An increment is expensive, since the counter is in memory that processes share. So one increment
    counts all requests of an iteration of the loop, before the loop reads new input.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.count
        self._pending_counts: dict[str, int] = {}

    def add(self, spec: EndpointSpec) -> None:
        """Count one request."""
        if not self._pending_counts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending_counts[spec.name] = self._pending_counts.get(spec.name, 0) + 1

    def _flush(self) -> None:
        for name, count in self._pending_counts.items():
            self._count(REQUESTS_TOTAL, count, name, "200")
        self._pending_counts.clear()
