"""The `ImportStore` over the selects of exports, which wait for no load and are not cached."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from headrace.adapters.store.dialect.row_lookup import (
    count_between,
    ids_between,
    wanted_ids_between,
)
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import Table
from headrace.model.imports import ImportItem
from headrace.model.plan import CompiledQuery
from headrace.ports.rows.export import ExportStore
from headrace.ports.rows.imports import OnWait
from headrace.ports.store import QueryLimits

MAX_LISTED_ROWS: Final = 100_000
"""Between the times of a chunk; where there are more rows, only the wanted ids are selected. That
takes ten times as long for each wanted id, whatever the store finds."""

_LOOKUP_TIMEOUT_S: Final = 120.0
_LOOKUP_MEMORY_BYTES: Final = 1_000_000_000
_RETRY_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""A restart of the engine process does not end an import."""

_ResultT = TypeVar("_ResultT")


class LookupImportStore:
    """Looks rows of one table of one website up.

    `on_wait` receives why the store cannot be used for the moment.
    """

    def __init__(
        self,
        store: ExportStore,
        *,
        barrier: Callable[[], Awaitable[None]],
        table: Table,
        website_id: str,
        on_wait: OnWait,
        retry_pauses_s: Sequence[float] = _RETRY_PAUSES_S,
    ) -> None:
        self._store = store
        self._barrier = barrier
        self._table = table
        self._website_id = website_id
        self._on_wait = on_wait
        self._retry_pauses_s = retry_pauses_s

    async def wait_stored(self) -> None:
        """Wait for the load of what is durable; see `ImportStore.wait_stored`."""
        await self._retrying(self._barrier)

    async def known_ids(self, items: Sequence[ImportItem]) -> frozenset[bytes]:
        """Return the ids that the store has; see `ImportStore.known_ids`."""
        if not items:
            return frozenset()
        times_ms = [item.time_ms for item in items]
        between = (self._table, self._website_id, min(times_ms), max(times_ms))
        # Twice: a chunk of short lines has more, and rows may arrive between both selects.
        max_rows = 2 * max(MAX_LISTED_ROWS, len(items))
        limits = QueryLimits(_LOOKUP_TIMEOUT_S, _LOOKUP_MEMORY_BYTES, max_rows)
        ((count,),) = await self._rows(count_between(*between), limits)
        if not int(count):
            return frozenset()
        if int(count) <= MAX_LISTED_ROWS:
            query = ids_between(*between)
        else:
            query = wanted_ids_between(*between, [item.row_id.hex() for item in items])
        return frozenset(bytes.fromhex(found) for (found,) in await self._rows(query, limits))

    async def _rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[str]]:
        return await self._retrying(lambda: self._store.rows(query, limits))

    async def _retrying(self, call: Callable[[], Awaitable[_ResultT]]) -> _ResultT:
        for pause_s in self._retry_pauses_s:
            try:
                return await call()
            except StoreUnavailable as error:
                self._on_wait(str(error))
                await asyncio.sleep(pause_s)
        return await call()
