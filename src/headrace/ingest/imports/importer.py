"""The import: decoded chunks become records of the log, without the rows that exist already.

A chunk is decoded while the store loads the one before. Then the store is asked which of its rows
exist: it has everything that was appended, so a second run, or the run after a crash, stores
nothing twice, however long ago the first one was.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Final

from headrace.base.clock import Clock
from headrace.base.errors import LogUnavailable
from headrace.model.imports import DecodedChunk, ImportItem, ImportRequest, ImportTotals
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorRecord,
    EventKind,
    ImportedRows,
    PackedEventRecord,
    VitalRecord,
    WrittenRecord,
    encode_record,
)
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import EventLog
from headrace.ports.rows.imports import ImportStore

RECORD_ITEMS: Final = 4096
"""Items of one record: a record is read as a whole, and one of a request has at most 10,000."""

Importing = Callable[[WebsiteId], AbstractAsyncContextManager[object]]
"""Waits until rows may be stored in a website."""

WithoutErased = Callable[[Sequence[ImportItem]], Sequence[ImportItem]]
"""Returns the items that no erasure has erased. Blocking."""

_RETRY_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""A store that is too far behind the log refuses records for a moment."""


class Importer:
    """Runs one import; used from one event loop, by one task.

    `without_erased` keeps out what was erased, however old the files are. `importing` keeps exports
    and erasures of the website away while a chunk is stored.
    """

    def __init__(
        self,
        request: ImportRequest,
        *,
        log: EventLog,
        store: ImportStore,
        clock: Clock,
        without_erased: WithoutErased = lambda items: items,
        importing: Importing = nullcontext,
        retry_pauses_s: Sequence[float] = _RETRY_PAUSES_S,
    ) -> None:
        self._request = request
        self._log = log
        self._store = store
        self._clock = clock
        self._without_erased = without_erased
        self._importing = importing
        self._retry_pauses_s = retry_pauses_s
        self.totals = ImportTotals()

    async def run(self, chunks: AsyncIterator[DecodedChunk]) -> AsyncIterator[DecodedChunk]:
        """Import chunks; return each when its rows are in the store, and `totals` include it.

        Raises `Unavailable` and `DurabilityUnknown`; what was returned until then is stored, and
        running the import again is safe.
        """
        await self._store.wait_stored()  # what an import that was killed has appended
        async for chunk in chunks:
            unexpired = self._without_expired(chunk.items)
            async with self._importing(self._request.website_id):
                kept = await asyncio.to_thread(self._without_erased, unexpired)
                fresh = await self._without_known(kept)
                if fresh and not self._request.is_dry_run:
                    for record in self._records(fresh):
                        await self._append(record)
                    await self._store.wait_stored()
            self._count(chunk, len(unexpired), kept=len(kept), stored=len(fresh))
            yield chunk

    def _without_expired(self, items: Sequence[ImportItem]) -> Sequence[ImportItem]:
        cutoff_ms = self._request.cutoff_ms
        if cutoff_ms is None:
            return items
        return [item for item in items if item.time_ms >= cutoff_ms]

    async def _without_known(self, items: Sequence[ImportItem]) -> list[ImportItem]:
        known = await self._store.known_ids(items)
        distinct = {item.row_id: item for item in reversed(items)}  # the first of equal ones wins
        return [
            item for item in items if item.row_id not in known and distinct[item.row_id] is item
        ]

    def _records(self, items: Sequence[ImportItem]) -> Iterator[bytes]:
        now_ms = self._clock.now_ms()
        for first in range(0, len(items), RECORD_ITEMS):
            part = items[first : first + RECORD_ITEMS]
            yield encode_record(make_record(self._request.event_kind, part, now_ms))

    async def _append(self, record: bytes) -> None:
        for pause_s in self._retry_pauses_s:
            with suppress(LogUnavailable):
                await self._log.append(record)
                return
            await asyncio.sleep(pause_s)
        await self._log.append(record)

    def _count(self, chunk: DecodedChunk, unexpired: int, *, kept: int, stored: int) -> None:
        totals = self.totals
        totals.lines += chunk.lines
        totals.stored += stored
        totals.repeated += kept - stored
        totals.expired += len(chunk.items) - unexpired
        totals.erased += unexpired - kept
        totals.skipped += chunk.skipped
        totals.refused += len(chunk.refused)


def make_record(kind: EventKind, items: Sequence[ImportItem], now_ms: int) -> WrittenRecord:
    """Return the record of items of one kind."""
    values = [item.value for item in items]
    rows = ImportedRows(
        b"".join([item.row_id for item in items]), [item.received_ms for item in items]
    )
    match kind:
        case EventKind.EVENTS:
            return PackedEventRecord(
                now_ms, UNKNOWN_VISITOR, values, has_api_key=True, imported=rows
            )
        case EventKind.VITALS:
            return VitalRecord(now_ms, UNKNOWN_VISITOR, values, has_api_key=True, imported=rows)
        case EventKind.ERRORS:
            return ErrorRecord(now_ms, UNKNOWN_VISITOR, values, has_api_key=True, imported=rows)
