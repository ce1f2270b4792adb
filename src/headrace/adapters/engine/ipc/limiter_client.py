"""The worker's `RateLimiter` over the engine process."""

from typing import Final

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.messages import CallCounted, CountCall
from headrace.ports.rate_limiter import CountedCall, RateLimitResult

_TIMEOUT_S: Final = 1.0


class EngineLimiter:
    """The `RateLimiter` over the engine process, which counts for all workers.

    Raises `StoreUnavailable` when the engine does not answer in time.
    """

    def __init__(
        self, connections: EngineConnections, call: CountedCall = CountedCall.QUERY
    ) -> None:
        self._connections = connections
        self._call = call

    async def hit(self, caller: str) -> RateLimitResult:
        """Count one call of a caller; see `RateLimiter.hit`."""
        reply = await self._connections.send_request(
            CountCall(caller, self._call), CallCounted, timeout_s=_TIMEOUT_S
        )
        return reply.verdict
