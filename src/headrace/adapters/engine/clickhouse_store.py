"""ClickHouse servers as the store of the engine process: preparing, loading and snapshots."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from headrace.adapters.backup.snapshots import LiveSnapshots, Snapshot, Snapshots
from headrace.adapters.engine.load_loop import LoadLoop, LogLoader
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.event_log import LogOffset

CLICKHOUSE_MAX_BACKOFF_S: Final = 2.0
"""Queries wait for a load, so they keep failing for up to this time after ClickHouse is back."""

_PROGRESS_LOG_INTERVAL_S: Final = 3.0
"""Preparing takes half a second; the log reports a longer one at this interval."""


class ClickHouseLifecycle:
    """The `StoreLifecycle` of ClickHouse servers.

    While they are away, events are accepted and stay in the log.
    """

    def __init__(self, writer: ClickHouseWriter, *, log: Logger) -> None:
        self._writer = writer
        self._log = log

    def open(self) -> None:
        """Do nothing: connections open on first use."""

    async def prepare(self, stop: asyncio.Event) -> None:
        """Create or migrate the tables and log what takes long.

        Raises `OperatorError` when ClickHouse rejects the user or the cluster. When ClickHouse is
        away it only logs that: `PreparingLoader` tries again.
        """
        preparing = asyncio.ensure_future(asyncio.to_thread(self._writer.prepare))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await self._log_progress(preparing, stopping)
            if stopping.done():
                self._writer.request_stop()
            await preparing
        except StoreUnavailable as error:
            self._log.warning("store_not_prepared", reason=str(error))
        finally:
            stopping.cancel()

    def request_stop(self) -> None:
        """Reject every batch after the running one."""
        self._writer.request_stop()

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()

    async def _log_progress(
        self, preparing: asyncio.Future[None], stopping: asyncio.Future[Any]
    ) -> None:
        while not preparing.done() and not stopping.done():
            await asyncio.wait(
                {preparing, stopping},
                timeout=_PROGRESS_LOG_INTERVAL_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not preparing.done():
                self._log.warning(
                    "store_preparing", statement=self._writer.current_statement or "connecting"
                )


class PreparingLoader:
    """A `LogLoader` that prepares the tables first, even when there is nothing to load yet."""

    def __init__(self, writer: ClickHouseWriter, loader: LogLoader) -> None:
        self._writer = writer
        self._loader = loader

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store all records before these offsets; see `LogLoader`."""
        if not self._writer.is_prepared:
            self._writer.prepare()
        return self._loader.load_until(ends)


class DrainedSnapshots(LiveSnapshots):
    """Snapshots that begin when ClickHouse has every durable event of this machine."""

    def __init__(self, snapshots: Snapshots, load_loop: LoadLoop) -> None:
        super().__init__(snapshots, load_loop)
        self._barrier = load_loop.barrier
        self._complete_barrier = load_loop.complete_barrier

    async def take(self, *, partial: bool) -> Snapshot:
        """Take a snapshot. Raises `OperatorError`, also when ClickHouse is away."""
        try:
            await (self._barrier if partial else self._complete_barrier)()
        except StoreUnavailable as error:
            raise OperatorError(f"cannot take a snapshot: {error}") from error
        return await super().take(partial=partial)
