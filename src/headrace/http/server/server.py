"""Runs the application on a socket that is already bound, until it has to stop."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Generator
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from headrace.base.settings import Settings
from headrace.http.server.connection import HeadraceProtocol, own_connections
from headrace.http.server.connection_limit import resolve_max_connections
from headrace.http.server.fast_path import FastPath
from headrace.http.server.slow_readers import reap_slow_connections

_KEEP_ALIVE_S = 75
"""Longer than load balancers keep an idle connection, so that they close it and not the worker."""

_CANCELLATION_GRACE_S = 1.0
"""Time for requests to answer after they were cancelled at the end of `shutdown_timeout_s`."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the process, which sets `stop`."""
        yield


async def serve(
    app: ASGIApp,
    *,
    listening_socket: socket.socket,
    settings: Settings,
    stop: asyncio.Event,
    fast_path: FastPath | None = None,
) -> None:
    """Serve until `stop` is set, then answer the accepted requests and return.

    `fast_path` answers simple requests, which do not reach the application. Closes the socket.
    Requests that take longer than `shutdown_timeout_s` are cancelled.
    """
    server = _Server(_config(app, settings, fast_path))
    background_tasks = (
        asyncio.ensure_future(_exit_on_stop(server, stop)),
        asyncio.ensure_future(
            reap_slow_connections(
                partial(own_connections, server.server_state.connections),
                head_timeout_s=settings.body_timeout_s,
                idle_timeout_s=_KEEP_ALIVE_S,
                max_unsent_bytes=settings.max_inflight_bytes,
            )
        ),
    )
    try:
        await server.serve(sockets=[listening_socket])
    finally:
        for task in background_tasks:
            task.cancel()
    for connection in tuple(own_connections(server.server_state.connections)):
        connection.cancel_pending()
    if server.server_state.tasks:
        await asyncio.wait(server.server_state.tasks, timeout=_CANCELLATION_GRACE_S)


async def _exit_on_stop(server: uvicorn.Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


def _config(app: ASGIApp, settings: Settings, fast_path: FastPath | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=HeadraceProtocol.configured(
            max_connections=resolve_max_connections(settings.max_connections), fast_path=fast_path
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
