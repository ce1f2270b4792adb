"""Pruning for commands: through the engine of the running service, or one of the command's own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.adapters.engine.ipc.rows_client import EngineStorageClient
from headrace.base.errors import HeadraceError, OperatorError
from headrace.base.settings import Settings
from headrace.formats.audited_changes import prune_change
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.wiring.audit import record_changes
from headrace.wiring.commands.engine_access import connect_engine, find_engine

_ResultT = TypeVar("_ResultT")


def describe_storage(settings: Settings) -> tuple[StoredRows, ...]:
    """Return what is stored of all websites. Raises `OperatorError`."""
    return _request_engine(settings, "storage", lambda storage: storage.describe(None))


def prune(settings: Settings, *, by: str, dry_run: bool) -> tuple[ExpiredRows, ...]:
    """Delete all expired rows, unless it is a dry run, and return them.

    `by` is who deletes them, for the audit log. Raises `OperatorError`.
    """

    async def run(storage: EngineStorageClient) -> tuple[ExpiredRows, ...]:
        expired = await storage.prune(dry_run=True)
        if dry_run or not expired:
            return expired
        await asyncio.to_thread(record_changes, settings, by, [prune_change(expired)])
        return await storage.prune(dry_run=False)

    return _request_engine(settings, "prune", run)


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
