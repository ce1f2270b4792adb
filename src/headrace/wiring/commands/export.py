"""Exports the rows of a website to a file or a stream, whether the service runs or not."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from headrace.adapters.export.partial_file import PartialFile
from headrace.base.errors import HeadraceError, OperatorError
from headrace.base.settings import Settings
from headrace.formats.audited_changes import export_change
from headrace.model.data_retention import Cutoffs
from headrace.model.export import ExportRequest
from headrace.ports.rows.retention import FixedCutoffs
from headrace.query.export.service import (
    NOTHING_WRITTEN,
    ExportedPiece,
    ExportRun,
    ExportService,
    OtherStore,
    Progress,
)
from headrace.wiring.audit import record_changes
from headrace.wiring.commands.engine_access import (
    EngineRuntime,
    connect_engine,
    cutoffs_of,
    find_engine,
)
from headrace.wiring.commands.erasure import erasures_of
from headrace.wiring.store import open_export_store

ShowProgress = Callable[[int, int], None]
"""Receives the rows that are exported and all rows, both about."""


class Exported(Struct, frozen=True):
    """What an export has written: all bytes of the file, and those of an earlier run."""

    bytes: int
    resumed_at: int = 0


def export_to_file(
    settings: Settings, request: ExportRequest, output: Path, *, by: str, progress: ShowProgress
) -> Exported:
    """Export to a file that does not exist, or go on where an interrupted export was.

    `by` is who exports, for the audit log. Raises `OperatorError`; what is complete stays in
    `OUTPUT.partial`.
    """
    with _found_engine(settings, request) as access, PartialFile(output, request) as file:
        resumed_at = file.size

        async def run() -> int:
            async with _running(settings, request, access, file, by=by) as export:
                file.begin(export.plan)
                done = Progress(file.chunks, file.size, file.memos)
                size = resumed_at
                async for piece in _reported(export, done, progress):
                    await asyncio.to_thread(file.write, piece.data, piece.memo, piece.chunks)
                    size += len(piece.data)
                await asyncio.to_thread(file.finish)
                return size

        return Exported(asyncio.run(run()), resumed_at)


def export_to_stream(
    settings: Settings,
    request: ExportRequest,
    stream: BinaryIO,
    *,
    by: str,
    progress: ShowProgress,
) -> Exported:
    """Write an export to a stream. See `export_to_file`. Raises `OperatorError`."""
    with _found_engine(settings, request) as access:

        async def run() -> int:
            size = 0
            async with _running(settings, request, access, by=by) as export:
                async for piece in _reported(export, NOTHING_WRITTEN, progress):
                    await asyncio.to_thread(stream.write, piece.data)
                    size += len(piece.data)
            stream.flush()
            return size

        return Exported(asyncio.run(run()))


class _EngineAccess(Struct, frozen=True):
    """Where the engine is, and which rows are expired."""

    runtime: EngineRuntime
    cutoffs: Cutoffs


@contextlib.contextmanager
def _found_engine(settings: Settings, request: ExportRequest) -> Generator[_EngineAccess]:
    with find_engine(settings, "headrace export") as runtime:
        yield _EngineAccess(runtime, cutoffs_of(settings, request.website_id))


@contextlib.asynccontextmanager
async def _running(
    settings: Settings,
    request: ExportRequest,
    access: _EngineAccess,
    file: PartialFile | None = None,
    *,
    by: str,
) -> AsyncGenerator[ExportRun]:
    """Begin the export, or go on with the one of a file. Raises `OperatorError`."""
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(connect_engine(settings, access.runtime))
            store = open_export_store(settings, stack, engine=engine)
            service = ExportService(
                store,
                max_memory_bytes=settings.query_max_memory_bytes,
                cutoffs=FixedCutoffs(access.cutoffs),
            )
            plan = None if file is None else file.plan
            run = await stack.enter_async_context(service.begin(request, plan))
            if file is not None:
                await asyncio.to_thread(_check_erasures, settings, request, file)
            await asyncio.to_thread(record_changes, settings, by, [export_change(request)])
            yield run
        except OtherStore as error:
            raise OperatorError(
                "cannot continue the export: the data directory was restored from a backup, or is "
                "another one; remove the directory of the interrupted export to begin again"
            ) from error
        except OperatorError:
            raise
        except HeadraceError as error:
            raise OperatorError(f"cannot export: {error}") from error


def _check_erasures(settings: Settings, request: ExportRequest, file: PartialFile) -> None:
    """Refuse to go on where the beginning of the file may have rows that were erased since."""
    if file.plan is None:
        return
    begun_ms = file.plan.watermark.received_ms
    for erasure in erasures_of(settings).all():
        was_clean = 0 < erasure.answers_clean_ms < begun_ms
        if erasure.website_id == request.website_id and not was_clean:
            raise OperatorError(
                "cannot continue the export: rows of the website were erased after it had begun; "
                f"remove the directory {file.directory} to begin again"
            )


async def _reported(
    export: ExportRun, done: Progress, show: ShowProgress
) -> AsyncGenerator[ExportedPiece]:
    """Return the pieces and report the rows of the complete chunks."""
    rows = [chunk.rows for chunk in export.plan.chunks]
    show(sum(rows[: done.chunks]), sum(rows))
    async with contextlib.aclosing(export.pieces(done)) as pieces:
        async for piece in pieces:
            yield piece
            if piece.chunks is not None:
                show(sum(rows[: piece.chunks]), sum(rows))
