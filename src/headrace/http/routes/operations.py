"""The endpoints of operations: health, readiness and metrics."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from headrace.base.metrics import Metrics
from headrace.http.request import Handler, Request
from headrace.http.responses import JSON_HEADER, Header, Response
from headrace.ports.store import StoreStatus

ReadinessChecks = Mapping[str, Callable[[], Awaitable[bool | StoreStatus]]]
"""The parts that must work, by name. A check returns at once whether its part is ready."""

ReadinessStatus = Literal["ready", "unavailable"]
PartStatus = Literal["ready", "rebuilding", "incomplete", "unavailable"]

_PART_STATUSES: Mapping[bool | StoreStatus, PartStatus] = {
    True: "ready",
    False: "unavailable",
    StoreStatus.READY: "ready",
    StoreStatus.REBUILDING: "rebuilding",
    StoreStatus.INCOMPLETE: "incomplete",
    StoreStatus.UNAVAILABLE: "unavailable",
}
_SERVING: frozenset[PartStatus] = frozenset({"ready", "rebuilding"})

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NO_STORE: Header = (b"cache-control", b"no-store")
_RETRY_AFTER: Header = (b"retry-after", b"1")


class HealthResponse(Struct, frozen=True):
    """The body of /health."""

    status: Literal["alive"]


class ReadyResponse(Struct, frozen=True):
    """The body of /ready: the status of the service, and of each part by name."""

    status: ReadinessStatus
    parts: dict[str, PartStatus]


async def handle_health(_request: Request) -> Response:
    """Answer that the process is alive."""
    return _uncached_json(200, HealthResponse("alive"))


def readiness_handler(readiness: ReadinessChecks) -> Handler:
    """Return the handler of /ready."""

    async def handle(_request: Request) -> Response:
        states = await asyncio.gather(*(check() for check in readiness.values()))
        parts: dict[str, PartStatus] = {
            name: _PART_STATUSES[state] for name, state in zip(readiness, states, strict=True)
        }
        if _SERVING.issuperset(parts.values()):
            return _uncached_json(200, ReadyResponse("ready", parts))
        return _uncached_json(503, ReadyResponse("unavailable", parts), _RETRY_AFTER)

    return handle


def metrics_handler(metrics: Metrics) -> Handler:
    """Return the handler of /metrics; a thread reads the metric files of all processes."""

    async def handle(_request: Request) -> Response:
        text = await asyncio.to_thread(metrics.render)
        return Response(200, text, ((b"content-type", METRICS_TYPE.encode()), _NO_STORE))

    return handle


def _uncached_json(status: int, body: Struct, *headers: Header) -> Response:
    return Response(status, msgspec.json.encode(body), (JSON_HEADER, _NO_STORE, *headers))
