"""Imports files into a website, whether the service runs or not."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

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
from headrace.adapters.imports.line_files import DamagedFile, LineFile
from headrace.adapters.imports.parquet_files import ParquetFile
from headrace.adapters.imports.report_file import ReportFile
from headrace.base.clock import Clock, SystemClock
from headrace.base.errors import DurabilityUnknown, OperatorError, Unavailable
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.erasure.imported_items import ErasedImportItems
from headrace.formats.audited_changes import import_change
from headrace.ingest.imports.decoder import ChunkDecoder
from headrace.ingest.imports.formats import make_decoder
from headrace.ingest.imports.importer import Importer
from headrace.ingest.imports.umami import is_session_file
from headrace.ingest.imports.visitors import FindVisitor, cached_visitors
from headrace.ingest.receive.enrich import look_up_visitor
from headrace.model.imports import (
    DecodedChunk,
    ImportFormat,
    ImportRequest,
    ImportTotals,
    LineChunk,
    RefusedLine,
)
from headrace.model.storage import TABLE_OF_KIND
from headrace.ports.rows.imports import OnWait
from headrace.wiring.commands.audit import record_changes
from headrace.wiring.commands.engine_access import connect_engine, cutoffs_of, find_engine
from headrace.wiring.data import data_dir_paths
from headrace.wiring.store import open_export_store

_BARRIER_TIMEOUT_S: Final = 600.0
"""What is durable is loaded first, which takes long after an outage."""

_SALT_BYTES: Final = 32

ShowProgress = Callable[[int, int], None]
"""Receives the bytes that are read, and all bytes of the files."""

OnRefused = Callable[[RefusedLine], None]


class SourceFile(Protocol):
    """One file of an import; blocking, read once from start to end."""

    name: str
    size: int

    def position(self) -> int:
        """Return about how many of its bytes are read."""
        ...

    def chunks(self) -> Iterator[LineChunk]:
        """Return its lines. Raises `DamagedFile` after those before a damage."""
        ...

    def close(self) -> None:
        """Close it. May be called twice."""
        ...


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
        totals = ImportTotals()

        def show_progress() -> None:
            if size := sum(file.size for file in files):  # none for pipes
                progress(min(sum(file.position() for file in files), size), size)

        async def run() -> None:
            nonlocal totals
            clock = SystemClock()
            async with AsyncExitStack() as tasks:
                engine = await tasks.enter_async_context(connect_engine(settings, runtime))
                locks = ImportLocks(runtime.directory)
                importer = await _importer(
                    settings,
                    request,
                    tasks,
                    engine,
                    clock=clock,
                    locks=locks,
                    on_wait=on_wait,
                )
                totals = importer.totals
                if not request.is_dry_run:
                    change = import_change(request, len(files))
                    await asyncio.to_thread(record_changes, settings, by, [change])
                decoder = make_decoder(
                    request, _visitor_finder(settings, tasks), salt=secrets.token_bytes(_SALT_BYTES)
                )
                show_progress()
                chunks = await tasks.enter_async_context(
                    contextlib.aclosing(_decoded(files, decoder, clock))
                )
                async for chunk in importer.run(chunks):
                    for refused in chunk.refused:
                        on_refused(refused)
                    show_progress()

        try:
            asyncio.run(run())
        except (Unavailable, DurabilityUnknown) as error:
            raise OperatorError(
                f"cannot import: {error}; {totals.stored} events are stored until then, and the "
                "same command goes on with the others"
            ) from error
        return totals


_SourceFileT = TypeVar("_SourceFileT", bound=SourceFile)

_SOURCES: Mapping[ImportFormat, Callable[[Path], SourceFile]] = {ImportFormat.PARQUET: ParquetFile}
"""The formats that are no lines of text."""


@contextlib.contextmanager
def open_files(
    import_format: ImportFormat, paths: Sequence[Path]
) -> Generator[Sequence[SourceFile]]:
    """Open the files, in the order in which they are read. Each is opened once, as pipes must be.

    Raises `OperatorError` for the first that cannot be opened.
    """
    with ExitStack() as stack:
        if import_format is ImportFormat.UMAMI:
            yield _sessions_first([_opened(LineFile, path, stack) for path in paths])
            return
        open_file = _SOURCES.get(import_format, LineFile)
        yield [_opened(open_file, path, stack) for path in paths]


def _opened(
    open_file: Callable[[Path], _SourceFileT], path: Path, stack: ExitStack
) -> _SourceFileT:
    return stack.enter_context(contextlib.closing(open_file(path)))


def _sessions_first(files: Sequence[LineFile]) -> Sequence[LineFile]:
    """Return the files of Umami in the order in which they are read: events refer to sessions."""
    return sorted(files, key=lambda file: not is_session_file(file.first_line()))


def open_report(path: Path, sources: Sequence[Path]) -> ReportFile:
    """Create the file for the lines that are not taken. Raises `OperatorError`."""
    if path.is_file() and any(path.samefile(source) for source in sources):
        raise OperatorError(f"cannot write the report to {path}: it is a file to import")
    return ReportFile(path)


def _visitor_finder(settings: Settings, stack: AsyncExitStack) -> FindVisitor:
    geo = open_geo_database(settings.geo_database)
    stack.callback(geo.close)
    return cached_visitors(partial(look_up_visitor, geo, UapUserAgentParser()))


async def _importer(
    settings: Settings,
    request: ImportRequest,
    stack: AsyncExitStack,
    engine: EngineConnections,
    *,
    clock: Clock,
    locks: ImportLocks,
    on_wait: OnWait,
) -> Importer:
    log = await _open_log(settings, clock)
    stack.push_async_callback(log.close)
    barrier = EngineBarrier(engine, timeout_s=_BARRIER_TIMEOUT_S, all_logs=True)
    store = LookupImportStore(
        open_export_store(settings, stack, engine=engine),
        barrier=barrier.wait,
        table=TABLE_OF_KIND[request.event_kind],
        website_id=request.website_id,
        on_wait=on_wait,
    )
    erasures = FileErasures(data_dir_paths(settings).erasures)
    return Importer(
        request,
        log=log,
        store=store,
        clock=clock,
        without_erased=ErasedImportItems(erasures, request.website_id).without_erased,
        importing=locks.importing,
        on_wait=on_wait,
    )


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


async def _decoded(
    files: Sequence[SourceFile], decoder: ChunkDecoder, clock: Clock
) -> AsyncGenerator[DecodedChunk]:
    """Return decoded chunks; the next one is decoded in a thread while the caller has one."""
    chunks = _decode_files(files, decoder, clock)
    following = asyncio.create_task(asyncio.to_thread(next, chunks, None))
    try:
        while (chunk := await following) is not None:
            following = asyncio.create_task(asyncio.to_thread(next, chunks, None))
            yield chunk
    finally:
        await asyncio.gather(following, return_exceptions=True)  # a thread cannot be cancelled


def _decode_files(
    files: Sequence[SourceFile], decoder: ChunkDecoder, clock: Clock
) -> Iterator[DecodedChunk]:
    for file in files:
        line = 1
        try:
            for chunk in file.chunks():
                line += len(chunk.lines)
                yield decoder.decode(chunk, now_ms=clock.now_ms())
            yield decoder.decode(LineChunk(file.name, line, ()), now_ms=clock.now_ms())
        except DamagedFile as damage:
            yield DecodedChunk([], [RefusedLine(file.name, damage.line, str(damage))], lines=1)
