"""Pruning for commands: through the engine of the running service, or one of the command's own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.adapters.engine.ipc.client import EngineStorageClient
from headrace.base.errors import HeadraceError, OperatorError
from headrace.base.settings import Settings
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.wiring.engine_access import connect_engine, find_engine

_ResultT = TypeVar("_ResultT")


def describe_storage(settings: Settings) -> tuple[StoredRows, ...]:
    """Return what is stored of all websites. Raises `OperatorError`."""
    return _request_engine(settings, "storage", lambda storage: storage.describe(None))


def prune(settings: Settings, *, dry_run: bool) -> tuple[ExpiredRows, ...]:
    """Delete all expired rows, unless it is a dry run, and return them. Raises `OperatorError`."""
    return _request_engine(settings, "prune", lambda storage: storage.prune(dry_run=dry_run))


def _request_engine(
    settings: Settings, command: str, request: Callable[[EngineStorageClient], Awaitable[_ResultT]]
) -> _ResultT:
    with find_engine(settings, f"headrace {command}") as runtime:

        async def run() -> _ResultT:
            async with connect_engine(settings, runtime) as engine:
                return await request(EngineStorageClient(engine))

        try:
            return asyncio.run(run())
        except OperatorError:
            raise
        except HeadraceError as error:
            raise OperatorError(f"`headrace {command}` failed: {error}") from error
