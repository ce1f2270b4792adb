"""The worker's load barrier over the engine process."""

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.messages import Stored, WaitStored
from headrace.adapters.engine.ipc.store_client import EngineStore
from headrace.ports.store import StoreStatus


class EngineBarrier:
    """The load barrier of the engine process.

    With `all_logs` it fails while a log cannot be read, as acknowledgements require that promise a
    stored event; without, it leaves out what cannot be read, as queries do.
    """

    def __init__(self, connections: EngineConnections, *, timeout_s: float, all_logs: bool) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._request = WaitStored(all_logs=all_logs)

    async def wait(self) -> None:
        """Return when everything that is durable now is in the store.

        Raises `StoreUnavailable` when the load fails or takes too long.
        """
        await self._connections.send_request(self._request, Stored, timeout_s=self._timeout_s)

    async def is_caught_up(self) -> bool:
        """Return whether the load loop is caught up. Never raises."""
        return await EngineStore(self._connections).status() is not StoreStatus.UNAVAILABLE
