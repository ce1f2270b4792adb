"""What an engine process does between its opening and its closing, whatever the store is."""

import asyncio
import contextlib
from typing import Final

from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.engine.server import EngineServer
from headrace.base.telemetry import Logger

LAST_LOAD_TIMEOUT_S: Final = 2.0
"""What is not stored by then stays in the log, and the next engine stores it."""


async def load_until(
    stop: asyncio.Event, *, loading: LoadLoop, server: EngineServer, log: Logger
) -> None:
    """Load until `stop` is set, then close the server and store what is durable."""
    running = asyncio.create_task(loading.run())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    await server.close()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running  # raises where it ended by itself, which it never should
    if not await loading.finish(timeout_s=LAST_LOAD_TIMEOUT_S):
        log.warning("left_in_the_log")
