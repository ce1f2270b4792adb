"""Hears that a caller has left also where calls of it wait behind the one that is answered."""

from typing import Final

from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from headrace.http.server.decline_upgrade import NoUpgradeProtocol

MAX_PIPELINED_BYTES: Final = 65_536
"""What is read behind a call that is answered. The end of a connection comes after its bytes."""


class DisconnectAwareProtocol(NoUpgradeProtocol):
    """uvicorn's protocol of one connection, which goes on reading while a call is answered.

    uvicorn reads no more once a second call waits, so that it hears of no end, and tells an end to
    the call that came last.
    """

    is_draining = False
    """Whether what comes is dropped; the connection ends with the calls that it has."""

    _active_cycle: RequestResponseCycle | None = None
    _pipelined_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take a piece, and read on where it is not too much that waits."""
        if self.is_draining:
            return
        super().data_received(data)
        if self.pipeline:
            self._pipelined_bytes += len(data)
            if self._pipelined_bytes < MAX_PIPELINED_BYTES:
                self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Begin the next call."""
        if not self.pipeline:
            self._pipelined_bytes = 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the call that is answered; those behind it never begin."""
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]  # uvicorn's and Starlette's types of ASGI differ
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)  # type: ignore[arg-type]  # as above
