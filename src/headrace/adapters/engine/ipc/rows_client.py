"""What a worker asks the engine process about stored rows as a whole."""

from collections.abc import Sequence
from typing import Final

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.messages import (
    DescribeStorage,
    EraseRows,
    ErasureBegun,
    PruneRows,
    ReadVersion,
    RowsPruned,
    StorageDescribed,
    VersionRead,
)
from headrace.model.erasure import ErasureRequest
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.versions import RowRange

_ERASE_TIMEOUT_S: Final = 900.0
"""Loading after an outage, and the engine's own limit for rewriting parts."""

_DESCRIBE_TIMEOUT_S: Final = 60.0
"""Counting 100 million rows takes a second; events that are not stored yet come first."""

_PRUNE_TIMEOUT_S: Final = 86_400.0
"""All parts of all tables may be rewritten. What was begun goes on without the client."""


class EngineErasureClient:
    """Begins erasures in the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def begin(self, request: ErasureRequest) -> Erasure:
        """Begin an erasure; return when no answer has its rows any more.

        If that takes many minutes, or fails at first, returns an erasure that does not say so yet.
        Raises `StoreUnavailable`.
        """
        reply = await self._connections.send_request(
            EraseRows.of(request), ErasureBegun, timeout_s=_ERASE_TIMEOUT_S
        )
        return reply.erasure


class EngineStorageClient:
    """Prunes, and describes what is stored, in the engine process."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        """Return the rows of one website, or of all, by table. Raises `StoreUnavailable`."""
        reply = await self._connections.send_request(
            DescribeStorage(website_id), StorageDescribed, timeout_s=_DESCRIBE_TIMEOUT_S
        )
        return reply.rows

    async def prune(self, *, dry_run: bool) -> tuple[ExpiredRows, ...]:
        """Delete all expired rows and return them. Raises `StoreUnavailable`."""
        reply = await self._connections.send_request(
            PruneRows(dry_run), RowsPruned, timeout_s=_PRUNE_TIMEOUT_S
        )
        return reply.rows


class EngineRowVersions:
    """The `RowVersions` of the engine process, which stores all rows."""

    def __init__(self, connections: EngineConnections, *, timeout_s: float) -> None:
        self._connections = connections
        self._timeout_s = timeout_s

    async def version_of(self, website_id: WebsiteId, ranges: Sequence[RowRange]) -> str | None:
        """Return the version of a website's rows in ranges; see `RowVersions.version_of`."""
        reply = await self._connections.send_request(
            ReadVersion(website_id, tuple(ranges)), VersionRead, timeout_s=self._timeout_s
        )
        return reply.version
