"""Imports files into a website, whether the service runs or not."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import msgspec

from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.adapters.data_dir.paths import IMPORT_LOG
from headrace.adapters.engine.import_store import LookupImportStore
from headrace.adapters.engine.ipc.barrier_client import EngineBarrier
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.enrichment.geo import open_geo_database
from headrace.adapters.enrichment.user_agents import UapUserAgentParser
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.event_log.backpressure_log import (
    BackpressureLog,
    Thresholds,
    read_disk_usage,
)
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.base.clock import Clock, SystemClock
from headrace.base.errors import DurabilityUnknown, OperatorError, Unavailable
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.erasure.imported_items import ErasedImportItems
from headrace.formats.audited_changes import import_change
from headrace.ingest.imports.formats import make_decoder
from headrace.ingest.imports.importer import Importer
from headrace.ingest.imports.visitors import FindVisitor, cached_visitors
from headrace.ingest.receive.enrich import look_up_visitor
from headrace.model.imports import ImportRequest, ImportTotals, RefusedLine
from headrace.model.storage import TABLE_OF_KIND
from headrace.ports.rows.imports import OnWait
from headrace.wiring.audit import record_changes
from headrace.wiring.commands.engine_access import (
    EngineRuntime,
    connect_engine,
    cutoffs_of,
    find_engine,
)
from headrace.wiring.commands.import_sources import SourceFile, decode_files
from headrace.wiring.data import data_dir_paths
from headrace.wiring.store import open_export_store

_BARRIER_TIMEOUT_S: Final = 600.0
"""What is durable is loaded first, which takes long after an outage."""

_SALT_BYTES: Final = 32

ShowProgress = Callable[[int, int], None]
"""Receives the bytes that are read, and all bytes of the files."""

OnRefused = Callable[[RefusedLine], None]


def import_files(
    settings: Settings,
    request: ImportRequest,
    files: Sequence[SourceFile],
    *,
    by: str,
    on_refused: OnRefused,
    progress: ShowProgress,
    on_wait: OnWait = lambda _: None,
) -> ImportTotals:
    """Import the lines of files in order; `by` is who imports them, for the audit log.

    `on_wait` receives why the import waits, each time before it tries again. Raises
    `OperatorError`.
    """
    with find_engine(settings, "headrace import") as runtime:
        cutoffs = cutoffs_of(settings, request.website_id)
        table = TABLE_OF_KIND[request.event_kind]
        request = msgspec.structs.replace(request, cutoff_ms=cutoffs.of_table(table))
        run = _ImportRun(settings, runtime, request, on_wait)
        try:
            asyncio.run(run.import_files(files, by=by, on_refused=on_refused, progress=progress))
        except (Unavailable, DurabilityUnknown) as error:
            raise OperatorError(
                f"cannot import: {error}; {run.totals.stored} events are stored until then, and "
                "the same command goes on with the others"
            ) from error
        return run.totals


class _ImportRun:
    """One import over the engine; `totals` counts what is stored, also of one that fails."""

    def __init__(
        self, settings: Settings, runtime: EngineRuntime, request: ImportRequest, on_wait: OnWait
    ) -> None:
        self.totals = ImportTotals()
        self._settings = settings
        self._runtime = runtime
        self._request = request
        self._on_wait = on_wait
        self._clock = SystemClock()

    async def import_files(
        self,
        files: Sequence[SourceFile],
        *,
        by: str,
        on_refused: OnRefused,
        progress: ShowProgress,
    ) -> None:
        """Import the lines of files. Raises `OperatorError`, and what `Importer.run` raises."""
        async with AsyncExitStack() as stack:
            importer = await self._open_importer(stack)
            self.totals = importer.totals
            if not self._request.is_dry_run:
                change = import_change(self._request, len(files))
                await asyncio.to_thread(record_changes, self._settings, by, [change])
            decoder = make_decoder(
                self._request,
                _visitor_finder(self._settings, stack),
                salt=secrets.token_bytes(_SALT_BYTES),
            )
            _show_progress(files, progress)
            chunks = await stack.enter_async_context(
                contextlib.aclosing(decode_files(files, decoder, self._clock))
            )
            async for chunk in importer.run(chunks):
                for refused in chunk.refused:
                    on_refused(refused)
                _show_progress(files, progress)

    async def _open_importer(self, stack: AsyncExitStack) -> Importer:
        engine = await stack.enter_async_context(connect_engine(self._settings, self._runtime))
        log = await _open_log(self._settings, self._clock)
        stack.push_async_callback(log.close)
        erasures = FileErasures(data_dir_paths(self._settings).erasures)
        return Importer(
            self._request,
            log=log,
            store=self._open_store(engine, stack),
            clock=self._clock,
            without_erased=ErasedImportItems(erasures, self._request.website_id).without_erased,
            importing=ImportLocks(self._runtime.directory).importing,
            on_wait=self._on_wait,
        )

    def _open_store(self, engine: EngineConnections, stack: AsyncExitStack) -> LookupImportStore:
        barrier = EngineBarrier(engine, timeout_s=_BARRIER_TIMEOUT_S, all_logs=True)
        return LookupImportStore(
            open_export_store(self._settings, stack, engine=engine),
            barrier=barrier.wait,
            table=TABLE_OF_KIND[self._request.event_kind],
            website_id=self._request.website_id,
            on_wait=self._on_wait,
        )


def _show_progress(files: Sequence[SourceFile], progress: ShowProgress) -> None:
    if size := sum(file.size for file in files):  # none for pipes
        progress(min(sum(file.position() for file in files), size), size)


def _visitor_finder(settings: Settings, stack: AsyncExitStack) -> FindVisitor:
    geo = open_geo_database(settings.geo_database)
    stack.callback(geo.close)
    return cached_visitors(partial(look_up_visitor, geo, UapUserAgentParser()))


async def _open_log(settings: Settings, clock: Clock) -> BackpressureLog:
    """Open the log of imports. Its lock excludes a second import into the data directory."""
    paths, metrics = data_dir_paths(settings), Metrics()
    try:
        segments = SegmentLog.open(
            paths.log,
            IMPORT_LOG,
            metrics=metrics,
            clock=clock,
            segment_bytes=settings.log_segment_bytes,
        )
    except OperatorError as error:
        raise OperatorError(f"{error}: another import may be running") from error
    log = BackpressureLog(
        segments,
        read=partial(read_disk_usage, paths.root, paths.log),
        limits=Thresholds(settings.min_free_bytes, settings.max_backlog_bytes),
        metrics=metrics,
    )
    await log.start()
    return log
