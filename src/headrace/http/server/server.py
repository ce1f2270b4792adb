"""Running the application on a socket that is already there, until it is told to stop."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

from headrace.base.settings import Settings
from headrace.http.server.connection_limit import most_connections
from headrace.http.server.fast_path import DirectLane
from headrace.http.server.fast_path_protocol import DirectConnection, give_up_all
from headrace.http.server.head_limits import end_late_heads

_KEEP_ALIVE_S = 75
"""Longer than load balancers keep an idle connection, so that it is never ours that is closed."""

_LAST_WORDS_S = 1.0
"""How long calls that were cancelled at the end of the time may take to say so."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the process, which tells by `stop`."""
        yield


async def serve(
    app: ASGIApp,
    *,
    listening_socket: socket.socket,
    settings: Settings,
    stop: asyncio.Event,
    lane: DirectLane | None = None,
) -> None:
    """Serve until `stop` is set, then answer what was accepted and return.

    `lane` answers plain calls, which the application then does not see.

    Closes the socket. Calls that take longer than `shutdown_timeout_s` are cancelled.
    """
    server = _Server(_config(app, settings, lane))
    beside = (
        asyncio.ensure_future(_stop_when_told(server, stop)),
        asyncio.ensure_future(
            end_late_heads(
                server.server_state.connections,
                head_timeout_s=settings.body_timeout_s,
                idle_timeout_s=_KEEP_ALIVE_S,
                max_unread_bytes=settings.max_inflight_bytes,
            )
        ),
    )
    try:
        await server.serve(sockets=[listening_socket])
    finally:
        for task in beside:
            task.cancel()
    give_up_all(server.server_state.connections)
    if server.server_state.tasks:
        await asyncio.wait(server.server_state.tasks, timeout=_LAST_WORDS_S)


async def _stop_when_told(server: uvicorn.Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


def _config(app: ASGIApp, settings: Settings, lane: DirectLane | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=DirectConnection.with_(
            max_connections=most_connections(settings.max_connections), lane=lane
        ),
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_timeout_s),
    )
