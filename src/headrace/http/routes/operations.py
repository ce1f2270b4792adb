"""What operators and machines ask of the service itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from headrace.base.telemetry import Metrics
from headrace.http.request import Call, Handler
from headrace.http.responses import JSON_HEADER, Header, Reply

Readiness = Mapping[str, Callable[[], Awaitable[bool]]]
"""The parts that must work, by name; each check tells at once whether its part does."""

Condition = Literal["ready", "unavailable"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NOT_STORED: Header = (b"cache-control", b"no-store")
_RETRY_AFTER: Header = (b"retry-after", b"1")


class HealthReply(Struct, frozen=True):
    """The body of /health."""

    status: Literal["alive"]


class ReadyReply(Struct, frozen=True):
    """The body of /ready: the whole, and each part by name."""

    status: Condition
    parts: dict[str, Condition]


async def answer_health(_call: Call) -> Reply:
    """Tell that the process is alive."""
    return _fresh_json(200, HealthReply("alive"))


def readiness_handler(readiness: Readiness) -> Handler:
    """Return the handler of /ready."""

    async def answer(_call: Call) -> Reply:
        states = await asyncio.gather(*(check() for check in readiness.values()))
        parts: dict[str, Condition] = {
            name: _condition(is_up) for name, is_up in zip(readiness, states, strict=True)
        }
        body = ReadyReply(_condition(all(states)), parts)
        return _fresh_json(200, body) if all(states) else _fresh_json(503, body, _RETRY_AFTER)

    return answer


def metrics_handler(metrics: Metrics) -> Handler:
    """Return the handler of /metrics, which reads the files of all processes in a thread."""

    async def answer(_call: Call) -> Reply:
        text = await asyncio.to_thread(metrics.render)
        return Reply(200, text, ((b"content-type", METRICS_TYPE.encode()), _NOT_STORED))

    return answer


def _condition(is_up: bool) -> Condition:
    return "ready" if is_up else "unavailable"


def _fresh_json(status: int, body: Struct, *headers: Header) -> Reply:
    return Reply(status, msgspec.json.encode(body), (JSON_HEADER, _NOT_STORED, *headers))
