"""What the engine's server calls for the requests of workers."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from headrace.adapters.backup.snapshots import Snapshot
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.model.erasure import ErasureRequest
from headrace.model.export import Watermark
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.live import LiveItem, LiveItems
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.versions import RowRange
from headrace.ports.store import QueryLimits


class SelectRunner(Protocol):
    """Runs selects: `ChdbReader`."""

    async def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT; cancelling the caller kills the query and waits for its end."""
        ...


class SnapshotTaker(Protocol):
    """Takes snapshots: `LiveSnapshots`."""

    async def take(self, *, partial: bool) -> Snapshot:
        """Take a snapshot. Raises `OperatorError`."""
        ...

    async def remove(self, snapshot: Path) -> None:
        """Remove a snapshot. Never raises."""
        ...


class ExportOpener(Protocol):
    """Begins and reads exports: `EngineExports`."""

    def open(self, website_id: str) -> contextlib.AbstractAsyncContextManager[Watermark]:
        """Begin an export, which ends with the context. Raises `StoreUnavailable`."""
        ...

    async def read(
        self,
        sql: str,
        parameters: EncodedParameters,
        limits: QueryLimits,
        query_id: str,
        *,
        website_id: str,
    ) -> bytes:
        """Run one SELECT and return its output; see `SelectRunner.select`."""
        ...


class ErasureRunner(Protocol):
    """Begins erasures: `EngineErasures`."""

    async def begin(self, request: ErasureRequest) -> Erasure:
        """Begin an erasure; return when no answer has its rows. Raises `StoreUnavailable`."""
        ...


class Pruner(Protocol):
    """Deletes expired rows and describes what is stored: `EnginePruning`."""

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        """Return the rows of one website, or of all. Raises `StoreUnavailable`, `OperatorError`."""
        ...

    async def prune(self, *, dry_run: bool = False) -> tuple[ExpiredRows, ...]:
        """Delete all expired rows and return them. Raises as `describe`."""
        ...


class RangeVersions(Protocol):
    """Knows the versions of ranges of rows: `WatchedRanges`."""

    def version_of(self, website: str, ranges: Sequence[RowRange]) -> str | None:
        """Return the version of a website's rows in ranges; None while some of them change."""
        ...


class LiveHub(Protocol):
    """Keeps the newest items of watched websites: `LiveTail`."""

    async def follow(self, website: str, epoch: str, after: int) -> LiveItems:
        """Return the items from a number on, or wait for one."""
        ...

    def publish(self, website: str, item: LiveItem) -> None:
        """Append an item to a website that is watched."""
        ...

    def count_stream(self, caller: str) -> contextlib.AbstractContextManager[bool]:
        """Count a stream within the context; yields whether the caller may have one more."""
        ...
