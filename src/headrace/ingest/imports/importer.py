"""The import: decoded chunks become records of the log, without the rows that exist already.

The store is asked which rows of a chunk exist: it has everything that was appended before, but for
the last rows, whose ids are known. So a second run, or the run after a crash, stores nothing twice,
however long ago the first one was. Rows are appended while the store loads the ones before: chunks
form a window, because the store keeps many small parts at a higher cost than a large one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import msgspec
from msgspec import Struct

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
from headrace.ports.rows.imports import ImportStore, OnWait

RECORD_ITEMS: Final = 4096
"""Items of one record: a record is read as a whole, and one of a request has at most 10,000."""

WINDOW_ROWS: Final = 50_000
"""Rows that are loaded together. Two windows are appended and not yet loaded at a time."""

LINES_PER_ROW: Final = 4
"""A window of so many times the lines is full, too: those of a dry run or a repeated import append
no row, and skipped ones neither."""

_WINDOWS_PER_TURN: Final = 4
"""Then all rows are loaded, and exports and erasures that wait have their turn."""

Importing = Callable[[WebsiteId], AbstractAsyncContextManager[object]]
"""Waits until rows may be stored in a website."""

WithoutErased = Callable[[Sequence[ImportItem]], Sequence[ImportItem]]
"""Returns the items that no erasure has erased. Blocking."""

_RETRY_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""A store that is too far behind the log refuses records for a moment."""


class Importer:
    """Runs one import; used from one event loop, by one task.

    `without_erased` keeps out what was erased, however old the files are. `importing` keeps exports
    and erasures of the website away while a chunk is stored. `on_wait` receives why the log
    takes no records for the moment.
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
        on_wait: OnWait = lambda _: None,
        retry_pauses_s: Sequence[float] = _RETRY_PAUSES_S,
        window_rows: int = WINDOW_ROWS,
    ) -> None:
        self._request = request
        self._log = log
        self._store = store
        self._clock = clock
        self._without_erased = without_erased
        self._importing = importing
        self._on_wait = on_wait
        self._retry_pauses_s = retry_pauses_s
        self._window_rows = window_rows
        self.totals = ImportTotals()

    async def run(self, chunks: AsyncIterator[DecodedChunk]) -> AsyncIterator[DecodedChunk]:
        """Import chunks; return each when its rows are in the store, and `totals` include it.

        It is returned without its items.

        Raises `Unavailable` and `DurabilityUnknown`; what was returned until then is stored, and
        running the import again is safe.
        """
        await self._store.wait_stored()  # what an import that was killed has appended
        remaining = aiter(chunks)
        chunk = await anext(remaining, None)
        while chunk is not None:
            async with self._importing(self._request.website_id):
                loading, filling = _Window(), _Window()
                try:
                    for _ in range(_WINDOWS_PER_TURN):
                        while chunk is not None and not filling.is_full(self._window_rows):
                            await self._add(chunk, filling, loading.ids)
                            chunk = await anext(remaining, None)
                        await loading.stored()
                        for stored in self._finish(loading):
                            yield stored
                        loading, filling = filling, _Window()
                        loading.start(self._store)
                    await loading.stored()
                finally:
                    loading.cancel()
                for stored in self._finish(loading):
                    yield stored

    async def _add(
        self, chunk: DecodedChunk, window: "_Window", loading: AbstractSet[bytes]
    ) -> None:
        """Append the rows of a chunk that do not exist, neither stored nor in the windows."""
        unexpired = self._without_expired(chunk.items)
        kept = await asyncio.to_thread(self._without_erased, unexpired)
        fresh = await self._without_known(kept, loading, window.ids)
        if fresh and not self._request.is_dry_run:
            for record in self._records(fresh):
                await self._append(record)
            window.ids.update([item.row_id for item in fresh])
        window.lines += chunk.lines
        window.chunks.append(
            _Appended(
                chunk=msgspec.structs.replace(chunk, items=()),
                items=len(chunk.items),
                unexpired=len(unexpired),
                kept=len(kept),
                stored=len(fresh),
            )
        )

    def _finish(self, window: "_Window") -> Iterator[DecodedChunk]:
        """Return the chunks of a window that is loaded, each once it is counted."""
        for appended in window.chunks:
            self._count(appended)
            yield appended.chunk

    def _without_expired(self, items: Sequence[ImportItem]) -> Sequence[ImportItem]:
        cutoff_ms = self._request.cutoff_ms
        if cutoff_ms is None:
            return items
        return [item for item in items if item.time_ms >= cutoff_ms]

    async def _without_known(
        self, items: Sequence[ImportItem], *appended: AbstractSet[bytes]
    ) -> Sequence[ImportItem]:
        known = await self._store.known_ids(items)
        distinct = {item.row_id: item for item in reversed(items)}  # the first of equal ones wins
        for ids in appended:
            known |= distinct.keys() & ids
        if len(distinct) == len(items) and not known:
            return items
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
            try:
                await self._log.append(record)
            except LogUnavailable as error:
                self._on_wait(str(error))
                await asyncio.sleep(pause_s)
            else:
                return
        await self._log.append(record)

    def _count(self, appended: "_Appended") -> None:
        totals, chunk = self.totals, appended.chunk
        totals.lines += chunk.lines
        totals.stored += appended.stored
        totals.repeated += appended.kept - appended.stored
        totals.expired += appended.items - appended.unexpired
        totals.erased += appended.unexpired - appended.kept
        totals.skipped += chunk.skipped
        totals.refused += len(chunk.refused)


class _Appended(Struct, frozen=True, kw_only=True):
    """A chunk without its items, and how many of them each step has left."""

    chunk: DecodedChunk
    items: int
    unexpired: int
    kept: int
    stored: int


class _Window:
    """Chunks whose rows are appended and are loaded together."""

    def __init__(self) -> None:
        self.chunks: list[_Appended] = []
        self.ids: set[bytes] = set()
        self.lines = 0
        self._loading: asyncio.Task[None] | None = None

    def is_full(self, rows: int) -> bool:
        """Return whether so many rows are appended, or there are too many lines without one."""
        return len(self.ids) >= rows or self.lines >= rows * LINES_PER_ROW

    def start(self, store: ImportStore) -> None:
        """Begin to load the rows, if there are any."""
        if self.ids:
            self._loading = asyncio.create_task(_wait_stored(store))

    async def stored(self) -> None:
        """Return when the rows are loaded. Raises `StoreUnavailable`."""
        if self._loading is not None:
            await self._loading

    def cancel(self) -> None:
        """Stop waiting."""
        if self._loading is not None:
            self._loading.cancel()


async def _wait_stored(store: ImportStore) -> None:
    await store.wait_stored()


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
