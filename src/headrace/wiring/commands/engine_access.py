"""Reaches the engine of a running service, or runs one for a command while there is no service."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from headrace.adapters.backup.lost_files import has_logged
from headrace.adapters.data_dir.lock import SERVE_COMMAND, DataDirLocked, published_runtime
from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.model.data_retention import Cutoffs, RetentionPolicy
from headrace.model.tenancy import WebsiteId
from headrace.wiring.data import (
    data_dir_paths,
    locked_for_command,
    migrate_data_dir_if_idle,
    require_data,
)
from headrace.wiring.shared import has_valkey, open_configured_directory

_ENGINE_POLL_S: Final = 0.02
_OWNER: Final = "command"
"""Owns no claims: no worker has this name."""


class EngineRuntime(Struct, frozen=True):
    """The directory of the engine's socket, and whether this process must run the engine.

    `erases_alone` is for an engine that finishes its erasures without waiting for other machines.
    """

    directory: Path
    is_own: bool
    erases_alone: bool = False


@contextlib.contextmanager
def find_engine(settings: Settings, command: str) -> Generator[EngineRuntime]:
    """Find the engine of a running service, or lock the data directory to run one here.

    Raises `OperatorError` where there is no data, another command has the lock, or the service has
    not published its socket.
    """
    require_data(settings)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_for_command(settings, command))
        except DataDirLocked as locked:
            if locked.owner.command != SERVE_COMMAND:
                raise
            migrate_data_dir_if_idle(settings)
            yield EngineRuntime(published_runtime(locked.owner), is_own=False)
        else:
            directory = stack.enter_context(TemporaryDirectory(prefix="headrace-"))
            yield EngineRuntime(Path(directory), is_own=True)


@contextlib.asynccontextmanager
async def connect_engine(
    settings: Settings, runtime: EngineRuntime
) -> AsyncGenerator[EngineConnections]:
    """Connect to the engine, which this process runs meanwhile where it must."""
    async with contextlib.AsyncExitStack() as stack:
        if runtime.is_own:
            await _create_first_idempotency_keys(settings)
            await stack.enter_async_context(_own_engine(settings, runtime))
        engine = EngineConnections(runtime.directory / ENGINE_SOCKET)
        stack.push_async_callback(engine.close)
        yield engine


async def _create_first_idempotency_keys(settings: Settings) -> None:
    """Create the file of idempotency keys, as a first start does, where nothing was logged yet.

    Without it, `headrace verify` would report the file as lost until a service has started.
    """
    paths = data_dir_paths(settings)
    if not has_valkey(settings) and not has_logged(paths):
        keys = SqliteIdempotencyStore.open(paths.idempotency, owner=_OWNER, clock=SystemClock())
        await keys.close()


def cutoffs_of(settings: Settings, website_id: WebsiteId) -> Cutoffs:
    """Return which rows of a website are expired. Raises `OperatorError` for an unknown website."""
    clock = SystemClock()
    directory = open_configured_directory(settings, clock)
    try:
        found = [website for website in directory.websites() if website.id == website_id]
    finally:
        directory.close()
    if not found:
        raise OperatorError(f"there is no website {website_id}")
    return RetentionPolicy(settings.retain_days).cutoffs(found[0].retention, clock.now_ms())


@contextlib.asynccontextmanager
async def _own_engine(settings: Settings, runtime: EngineRuntime) -> AsyncGenerator[None]:
    """Run the engine within this process: it loads what is in the logs, and reads the store."""
    from headrace.wiring.engine.process import run_engine  # noqa: PLC0415 - only without a service

    stop = asyncio.Event()
    engine = asyncio.create_task(
        run_engine(
            settings,
            runtime=runtime.directory,
            stop=stop,
            is_alone=True,
            erases_alone=runtime.erases_alone,
        )
    )
    try:
        while not engine.done() and not (runtime.directory / ENGINE_SOCKET).exists():  # noqa: ASYNC110
            await asyncio.sleep(_ENGINE_POLL_S)
        if engine.done():
            await engine  # raises why it could not begin
        yield
    finally:
        stop.set()
        await engine
