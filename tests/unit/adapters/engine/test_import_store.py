"""The store of an import: while its engine is away, and where it has many of the rows."""

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.adapters.engine.import_store import MAX_LISTED_ROWS, LookupImportStore
from headrace.base.errors import QueryTooLarge, StoreUnavailable
from headrace.model.catalog import EVENTS
from headrace.model.export import Watermark
from headrace.model.imports import ImportItem
from headrace.model.plan import CompiledQuery
from headrace.ports.rows.export import ExportStore
from headrace.ports.store import QueryLimits


class UnusedStore:
    """An `ExportStore` of which nothing is read."""

    def open(self, website_id: str) -> contextlib.AbstractAsyncContextManager[Watermark]:
        raise NotImplementedError(website_id)

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        raise NotImplementedError(query, limits)

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        raise NotImplementedError(query, limits)


class FullStore(UnusedStore):
    """Has the rows of `ids`, all of one time, and keeps to the limits of selects."""

    def __init__(self, ids: Sequence[bytes]) -> None:
        self._rows = [[one.hex()] for one in ids]

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        rows = [[str(len(self._rows))]] if "count()" in query.sql else self._rows
        if len(rows) > limits.max_rows:
            raise QueryTooLarge("Query too large")
        return rows


class Barrier:
    """Fails as often as its list has reasons."""

    def __init__(self, *reasons: str) -> None:
        self._reasons = list(reasons)

    async def wait(self) -> None:
        if self._reasons:
            raise StoreUnavailable(self._reasons.pop(0))


def import_store(
    barrier: Barrier, reasons: list[str], store: ExportStore | None = None
) -> LookupImportStore:
    return LookupImportStore(
        store or UnusedStore(),
        barrier=barrier.wait,
        table=EVENTS,
        website_id="w",
        on_wait=reasons.append,
        retry_pauses_s=(0.0, 0.0),
    )


async def test_each_wait_for_the_store_has_its_reason() -> None:
    reasons: list[str] = []
    await import_store(Barrier("the disk", "the engine"), reasons).wait_stored()
    assert reasons == ["the disk", "the engine"]


async def test_store_that_stays_away_ends_the_import_with_the_last_reason() -> None:
    reasons: list[str] = []
    with pytest.raises(StoreUnavailable, match="three"):
        await import_store(Barrier("one", "two", "three"), reasons).wait_stored()
    assert reasons == ["one", "two"]


async def test_every_row_of_a_chunk_with_many_short_lines_may_be_known() -> None:
    ids = [number.to_bytes(16, "big") for number in range(MAX_LISTED_ROWS + 10)]
    store = import_store(Barrier(), [], FullStore(ids))
    items = [ImportItem(1, row_id, 1, None) for row_id in ids]
    assert await store.known_ids(items) == frozenset(ids)
