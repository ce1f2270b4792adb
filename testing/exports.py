"""An `ExportStore` over chDB in this process, as the engine process reads it."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from headrace.adapters.store.chdb.connection import ChdbSession
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_rows
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.export import ExportPlan, ExportRequest, Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.rows.export import ExportStore
from headrace.ports.rows.retention import FixedCutoffs
from headrace.ports.store import QueryLimits
from headrace.query.export.service import ExportRun, ExportService

EVERYTHING = Watermark("here", (1 << 48) - 1)
"""A watermark after every row."""

MEMORY_BYTES = 2_000_000_000


class InProcessExportStore:
    """Reads through one session. `watermark` is that of every export."""

    def __init__(self, session: ChdbSession, watermark: Watermark = EVERYTHING) -> None:
        self._session = session
        self._watermark = watermark
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.reads: list[CompiledQuery] = []

    @contextlib.asynccontextmanager
    async def open(self, website_id: str) -> AsyncGenerator[Watermark]:
        """Begin an export; see `ExportStore.open`."""
        del website_id
        yield self._watermark

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Run a SELECT on a thread; see `ExportStore.read`."""
        self.reads.append(query)
        return await asyncio.to_thread(self._select, query, limits)

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        """Run a SELECT and return its rows; see `ExportStore.rows`."""
        return decode_rows(await asyncio.to_thread(self._select, query, limits))

    def _select(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        texts = encode_parameters(query.parameters)
        with self._lock:  # a cancelled read goes on for a moment
            return self._session.select(query.sql, texts, limits, f"export-{next(self._numbers)}")


async def collect(run: ExportRun) -> bytes:
    """Return the whole file of an export."""
    return b"".join([bytes(piece.data) async for piece in run.pieces()])


async def export(
    store: InProcessExportStore, request: ExportRequest, plan: ExportPlan | None = None
) -> bytes:
    """Run an export and return its file."""
    service = export_service(store)
    async with service.begin(request, plan) as run:
        return await collect(run)


def export_service(store: ExportStore, cutoffs: Cutoffs = NO_CUTOFFS) -> ExportService:
    """Return the use case over a store."""
    return ExportService(store, max_memory_bytes=MEMORY_BYTES, cutoffs=FixedCutoffs(cutoffs))
