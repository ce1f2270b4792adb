"""The importer: what it appends, what it leaves out, and in which order it waits."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from headrace.adapters.memory.log import MemoryLog
from headrace.base.clock import FixedClock
from headrace.base.errors import LogUnavailable, StoreUnavailable
from headrace.ingest.imports.importer import (
    LINES_PER_ROW,
    RECORD_ITEMS,
    WINDOW_ROWS,
    Importer,
)
from headrace.model.imports import (
    DecodedChunk,
    ImportFormat,
    ImportItem,
    ImportRequest,
    ImportTotals,
    RefusedLine,
)
from headrace.model.log_records import EventKind, Vital, decode_record
from headrace.model.tenancy import WebsiteId

NOON = 1_768_478_400_000
REQUEST = ImportRequest(
    format=ImportFormat.NDJSON, website_id=WebsiteId("w"), event_kind=EventKind.VITALS
)


def item(number: int) -> ImportItem:
    time_ms = NOON + number
    vital = Vital("w", time_ms, "LCP", 1.5, "/")
    return ImportItem(time_ms, number.to_bytes(16, "big"), time_ms + 1, vital)


def chunk(*numbers: int, refused: int = 0) -> DecodedChunk:
    wrong = [RefusedLine("a", line, "wrong") for line in range(refused)]
    return DecodedChunk([item(number) for number in numbers], wrong, len(numbers) + refused)


class LoadedStore:
    """An `ImportStore` that loads a `MemoryLog`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.ids: list[bytes] = []
        self._loaded = 0

    async def wait_stored(self) -> None:
        for payload in self._log.records[self._loaded :]:
            imported = decode_record(payload).imported
            assert imported is not None
            joined = imported.row_ids
            self.ids += [joined[at : at + 16] for at in range(0, len(joined), 16)]
        self._loaded = len(self._log.records)

    async def known_ids(self, items: Sequence[ImportItem]) -> frozenset[bytes]:
        return frozenset(item.row_id for item in items) & frozenset(self.ids)

    def numbers(self) -> list[int]:
        return [int.from_bytes(row_id, "big") for row_id in self.ids]


async def run(
    importer: Importer, chunks: Sequence[DecodedChunk]
) -> tuple[ImportTotals, Sequence[DecodedChunk]]:
    async def given() -> AsyncGenerator[DecodedChunk]:
        for one in chunks:
            yield one

    returned = [one async for one in importer.run(given())]
    return importer.totals, returned


def import_chunks(
    *chunks: DecodedChunk,
    log: MemoryLog | None = None,
    request: ImportRequest = REQUEST,
    window_rows: int = WINDOW_ROWS,
) -> tuple[ImportTotals, list[int]]:
    log = log or MemoryLog()
    store = LoadedStore(log)
    importer = Importer(
        request, log=log, store=store, clock=FixedClock(NOON), window_rows=window_rows
    )
    totals, returned = asyncio.run(run(importer, chunks))
    assert list(returned) == [msgspec.structs.replace(one, items=()) for one in chunks]
    return totals, store.numbers()


@pytest.mark.parametrize("window_rows", [1, 2, 3, 100])
def test_every_row_is_stored_once_and_every_line_is_counted(window_rows: int) -> None:
    chunks = chunk(1, 2, 1), chunk(3, 2, refused=2), chunk(4)
    totals, stored = import_chunks(*chunks, window_rows=window_rows)
    assert stored == [1, 2, 3, 4]
    assert totals == ImportTotals(lines=8, stored=4, repeated=2, refused=2)


def test_second_run_finds_the_rows_of_a_run_that_was_killed() -> None:
    log = MemoryLog()
    import_chunks(chunk(1, 2), log=log)
    totals, stored = import_chunks(chunk(1, 2), chunk(3), log=log)
    assert stored == [1, 2, 3]
    assert totals == ImportTotals(lines=3, stored=1, repeated=2)


def test_dry_run_appends_nothing() -> None:
    log = MemoryLog()
    request = msgspec.structs.replace(REQUEST, is_dry_run=True)
    totals, stored = import_chunks(chunk(1, 2, 1), log=log, request=request)
    assert (log.records, stored) == ([], [])
    assert totals == ImportTotals(lines=3, stored=2, repeated=1)


def test_rows_before_the_cutoff_are_expired() -> None:
    request = msgspec.structs.replace(REQUEST, cutoff_ms=NOON + 2)
    totals, stored = import_chunks(chunk(1, 2, 3, 2), request=request)
    assert stored == [2, 3]
    assert totals == ImportTotals(lines=4, stored=2, repeated=1, expired=1)


def test_erased_rows_are_counted_and_not_stored() -> None:
    log = MemoryLog()
    store = LoadedStore(log)
    importer = Importer(
        REQUEST,
        log=log,
        store=store,
        clock=FixedClock(NOON),
        without_erased=lambda items: [one for one in items if one.time_ms != NOON + 2],
    )
    totals, _ = asyncio.run(run(importer, [chunk(1, 2, 3, 2)]))
    assert store.numbers() == [1, 3]
    assert totals == ImportTotals(lines=4, stored=2, erased=2)


def test_large_chunks_become_several_records() -> None:
    log = MemoryLog()
    import_chunks(chunk(*range(RECORD_ITEMS + 1)), log=log)
    assert [len(decode_record(record).items) for record in log.records] == [RECORD_ITEMS, 1]


class SlowStore(LoadedStore):
    """A store whose loads end when the log has as many records as `awaited` says."""

    def __init__(self, log: MemoryLog, *awaited: int) -> None:
        super().__init__(log)
        self.awaited = list(awaited)
        self._memory_log = log

    async def wait_stored(self) -> None:
        awaited = self.awaited.pop(0)
        async with asyncio.timeout(30):
            while len(self._memory_log.records) < awaited:  # noqa: ASYNC110 - it sends no event
                await asyncio.sleep(0.001)
        await super().wait_stored()


def test_rows_are_appended_while_the_store_loads_those_before_and_wait_after_four_windows() -> None:
    log = MemoryLog()
    store = SlowStore(log, 0, 2, 3, 4, 4, 5)
    turns: list[int] = []

    @asynccontextmanager
    async def importing(_website: str) -> AsyncGenerator[None]:
        turns.append(len(store.ids))
        yield
        assert len(store.ids) == len(log.records)

    importer = Importer(
        REQUEST,
        log=log,
        store=store,
        clock=FixedClock(NOON),
        importing=importing,
        window_rows=1,
    )
    totals, _ = asyncio.run(run(importer, [chunk(number) for number in (1, 2, 3, 2, 4, 5)]))
    assert (store.numbers(), turns) == ([1, 2, 3, 4, 5], [0, 4])
    assert store.awaited == []
    assert totals == ImportTotals(lines=6, stored=5, repeated=1)


@pytest.mark.parametrize("is_dry_run", [False, True], ids=["repeated", "dry-run"])
def test_lines_that_append_no_row_are_returned_and_end_a_turn_all_the_same(
    *, is_dry_run: bool
) -> None:
    chunks = [chunk(number) for number in range(40)]
    log = MemoryLog()
    if not is_dry_run:
        import_chunks(*chunks, log=log)
    turns: list[int] = []
    read = 0

    async def given() -> AsyncGenerator[DecodedChunk]:
        nonlocal read
        for one in chunks:
            read += 1
            yield one

    @asynccontextmanager
    async def importing(_website: str) -> AsyncGenerator[None]:
        turns.append(read)
        yield

    async def read_ahead() -> list[int]:
        importer = Importer(
            msgspec.structs.replace(REQUEST, is_dry_run=is_dry_run),
            log=log,
            store=LoadedStore(log),
            clock=FixedClock(NOON),
            importing=importing,
            window_rows=1,
        )
        ahead: list[int] = []
        async for _ in importer.run(given()):
            ahead.append(read - len(ahead))
        return ahead

    assert max(asyncio.run(read_ahead())) == 2 * LINES_PER_ROW + 1
    assert turns == [1, 4 * LINES_PER_ROW + 1, 8 * LINES_PER_ROW + 1]


def test_load_that_fails_ends_the_import_with_what_is_stored_until_then() -> None:
    class FailingStore(LoadedStore):
        async def wait_stored(self) -> None:
            if len(self.ids) == 2:
                raise StoreUnavailable("the store is away")
            await super().wait_stored()

    log = MemoryLog()
    importer = Importer(
        REQUEST, log=log, store=FailingStore(log), clock=FixedClock(NOON), window_rows=2
    )
    with pytest.raises(StoreUnavailable):
        asyncio.run(run(importer, [chunk(1, 2), chunk(3, 4), chunk(5, 6)]))
    assert importer.totals == ImportTotals(lines=2, stored=2)


def test_what_cannot_be_appended_is_not_counted_and_each_wait_has_its_reason() -> None:
    log = MemoryLog()
    log.is_broken = True
    reasons: list[str] = []
    importer = Importer(
        REQUEST,
        log=log,
        store=LoadedStore(log),
        clock=FixedClock(NOON),
        on_wait=reasons.append,
        retry_pauses_s=(0.0, 0.0),
    )
    with pytest.raises(LogUnavailable) as failed:
        asyncio.run(run(importer, [chunk(1)]))
    assert importer.totals == ImportTotals()
    assert reasons == [str(failed.value)] * 2
