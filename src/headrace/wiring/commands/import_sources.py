"""The files of an import: opened in the order in which they are read, and decoded by chunks."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

from headrace.adapters.imports.line_files import DamagedFile, LineFile
from headrace.adapters.imports.parquet_files import ParquetFile
from headrace.adapters.imports.report_file import ReportFile
from headrace.base.clock import Clock
from headrace.base.errors import OperatorError
from headrace.ingest.imports.decoder import ChunkDecoder
from headrace.ingest.imports.umami import is_session_file
from headrace.model.imports import DecodedChunk, ImportFormat, LineChunk, RefusedLine


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


async def decode_files(
    files: Sequence[SourceFile], decoder: ChunkDecoder, clock: Clock
) -> AsyncGenerator[DecodedChunk]:
    """Return their decoded chunks; the next is decoded in a thread while the caller has one."""
    chunks = _decoded_chunks(files, decoder, clock)
    following = asyncio.create_task(asyncio.to_thread(next, chunks, None))
    try:
        while (chunk := await following) is not None:
            following = asyncio.create_task(asyncio.to_thread(next, chunks, None))
            yield chunk
    finally:
        await asyncio.gather(following, return_exceptions=True)  # a thread cannot be cancelled


def _decoded_chunks(
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
