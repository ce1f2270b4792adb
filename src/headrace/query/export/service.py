"""Runs exports: pins the watermark, reads chunk after chunk, and joins them to one file."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from headrace.base.errors import QueryTooLarge, StoreUnavailable
from headrace.model.export import Chunk, ExportFormat, ExportPlan, ExportRequest
from headrace.ports.rows.export import ExportStore
from headrace.ports.rows.retention import CutoffSource
from headrace.ports.store import QueryLimits
from headrace.query.export.chunks import MAX_BUCKETS, BucketCounts, plan_chunks, split_chunk
from headrace.query.export.joining import JOINERS
from headrace.query.export.statements import column_names, count_rows, select_chunk

CHUNK_ROWS: Final[Mapping[ExportFormat, int]] = {
    ExportFormat.NDJSON: 32_768,
    ExportFormat.CSV: 65_536,
    ExportFormat.PARQUET: 131_072,
    ExportFormat.ARROW: 65_536,
}
"""Rows of one select: 20 to 40 MiB of realistic events. A chunk of Parquet is a row group."""

CHUNK_TIMEOUT_S: Final = 300.0
MAX_CHUNK_ROWS: Final = 10_000_000

_ItemT = TypeVar("_ItemT")

_RETRY_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""A restart of the engine process or a full queue of selects does not end an export."""


class Progress(Struct, frozen=True):
    """What of an export is written already: whole chunks, the bytes of the file, and the memos."""

    chunks: int = 0
    size: int = 0
    memos: tuple[bytes, ...] = ()


NOTHING_WRITTEN: Final = Progress()


class ExportedPiece(Struct, frozen=True):
    """The next bytes of the file, and the memo to go on after them.

    `chunks` is how many chunks are complete after these bytes; None within a chunk.
    """

    data: bytes | memoryview
    memo: bytes = b""
    chunks: int | None = None


class ExportRun:
    """A running export. `pieces` may be called once."""

    def __init__(
        self, request: ExportRequest, plan: ExportPlan, store: ExportStore, limits: QueryLimits
    ) -> None:
        self.request = request
        self.plan = plan
        self._store = store
        self._limits = limits

    async def pieces(self, progress: Progress = NOTHING_WRITTEN) -> AsyncGenerator[ExportedPiece]:
        """Return the bytes of the file after `progress`, in order.

        The next chunk is read while the caller takes one. Raises what `ExportStore.read` raises.
        """
        names = column_names(self.request)
        joiner = JOINERS[self.request.format](names, progress.size, progress.memos)
        if not progress.size:
            yield ExportedPiece(joiner.begin(), chunks=0)
        async with contextlib.aclosing(_read_ahead(self._encoded_chunks(progress.chunks))) as reads:
            async for encoded, chunks in reads:
                piece = joiner.add(encoded)
                yield ExportedPiece(piece.data, piece.memo, chunks)
        yield ExportedPiece(joiner.finish())

    async def _encoded_chunks(self, done: int) -> AsyncGenerator[tuple[bytes, int | None]]:
        """Read the chunks after the first `done`; halves of those that are too large for memory."""
        for number, chunk in enumerate(self.plan.chunks[done:], done + 1):
            pending = [chunk]
            while pending:
                part = pending.pop()
                try:
                    encoded = await self._read(part)
                except QueryTooLarge:
                    halves = split_chunk(part)
                    if halves is None:
                        raise
                    pending += reversed(halves)
                else:
                    yield encoded, None if pending else number

    async def _read(self, chunk: Chunk) -> bytes:
        query = select_chunk(self.request, self.plan.watermark, chunk)
        for pause_s in _RETRY_PAUSES_S:
            with contextlib.suppress(StoreUnavailable):
                return await self._store.read(query, self._limits)
            await asyncio.sleep(pause_s)
        return await self._store.read(query, self._limits)


class ExportService:
    """Begins exports; for one event loop and many tasks. `max_memory_bytes` is that of a chunk."""

    def __init__(self, store: ExportStore, *, max_memory_bytes: int, cutoffs: CutoffSource) -> None:
        self._store = store
        self._cutoffs = cutoffs
        self._limits = QueryLimits(CHUNK_TIMEOUT_S, max_memory_bytes, MAX_CHUNK_ROWS)

    @contextlib.asynccontextmanager
    async def begin(
        self, request: ExportRequest, plan: ExportPlan | None = None
    ) -> AsyncGenerator[ExportRun]:
        """Begin an export, or go on with the one of a plan; it ends with the context.

        Rows that are expired now are not in it. Raises `StoreUnavailable` when the store is away or
        too many exports of the website run, and `OtherStore` for the plan of another store.
        """
        cutoffs = await self._cutoffs.cutoffs(request.website_id)
        request = replace(request, cutoff_ms=cutoffs.of_stored_table(request.table))
        async with self._store.open(request.website_id) as watermark:
            if plan is None:
                plan = ExportPlan(watermark, await self._plan_chunks(request))
            elif plan.watermark.identity != watermark.identity:
                raise OtherStore
            yield ExportRun(request, plan, self._store, self._limits)

    async def _plan_chunks(self, request: ExportRequest) -> tuple[Chunk, ...]:
        limits = QueryLimits(CHUNK_TIMEOUT_S, self._limits.max_memory_bytes, MAX_BUCKETS)

        async def count(start_ms: int, end_ms: int, width_ms: int) -> BucketCounts:
            query = count_rows(request, start_ms, end_ms, width_ms)
            rows = await self._store.rows(query, limits)
            return [(int(bucket), int(count)) for bucket, count in rows]

        max_rows = CHUNK_ROWS[request.format]
        return await plan_chunks(count, request.start_ms, request.end_ms, max_rows=max_rows)


class OtherStore(Exception):
    """A plan was made for the rows of another store, or of this one before it was restored."""


async def _read_ahead(items: AsyncGenerator[_ItemT]) -> AsyncGenerator[_ItemT]:
    """Return the items; the next one is being made while the caller has one."""
    async with contextlib.aclosing(items):
        following = asyncio.create_task(_next(items))
        try:
            while (item := await following) is not None:
                following = asyncio.create_task(_next(items))
                yield item
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _next(items: AsyncGenerator[_ItemT]) -> _ItemT | None:
    return await anext(items, None)
