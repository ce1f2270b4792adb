"""Reads files of lines in chunks, also compressed ones.

The ending of a name tells how a file is compressed, and so do its first bytes: downloads and pipes
have other names.
"""

import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import zstandard

from headrace.base.errors import OperatorError, system_reason
from headrace.formats.parquet_footer import MAGIC
from headrace.model.imports import MAX_LINE_BYTES, LineChunk

CHUNK_BYTES: Final = 8 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
_MAX_BLOCKS_AHEAD: Final = 16
_GZIP_WINDOW_BITS: Final = 31


class DamagedFile(Exception):
    """The rest of a file cannot be read. `line` is the first line that is missing."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"the file is damaged: {reason}")
        self.line = line


class _Decompressor(Protocol):
    """One stream of a compressed file, which may have several."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


_MakeDecompressor = Callable[[], _Decompressor]


def _gzip() -> _Decompressor:
    return zlib.decompressobj(_GZIP_WINDOW_BITS)


def _zstd() -> _Decompressor:
    return cast("_Decompressor", zstandard.ZstdDecompressor().decompressobj())


_DECOMPRESSORS: Mapping[str, _MakeDecompressor] = {".gz": _gzip, ".zst": _zstd}
_DECOMPRESSORS_BY_MAGIC: Mapping[bytes, _MakeDecompressor] = {
    b"\x1f\x8b\x08": _gzip,
    b"\x28\xb5\x2f\xfd": _zstd,
}
_PADDING: Mapping[_MakeDecompressor, bytes] = {_gzip: b"\0"}
"""Bytes that can follow a stream, as tapes and backup programs fill blocks: gzip skips them."""
_NO_LINES: Mapping[bytes, str] = {
    b"PK\x03\x04": "it is a zip archive: unpack it first",
    b"BZh": "bzip2 has compressed it: decompress it first",
    b"\xfd7zXZ\0": "xz has compressed it: decompress it first",
    b"PGDMP": "it is an archive of pg_dump: pg_restore --file makes a plain dump of it",
    MAGIC + b"\x15": "it is a Parquet file",  # with the first field of its first page
}
"""Starts of files of which each line would be refused."""


class LineFile:
    """One file; blocking, read once from start to end. Raises `OperatorError` when opened."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            self._file = path.open("rb")
            self.size = path.stat().st_size
            start = self._file.peek(1)
        except OSError as error:
            raise OperatorError(f"cannot open {path}: {system_reason(error)}") from error
        if reason := _by_magic(_NO_LINES, start):
            self._file.close()
            raise OperatorError(f"cannot read {path}: {reason}")
        by_name = _DECOMPRESSORS.get(path.suffix.lower())
        self._make_decompressor = by_name or _by_magic(_DECOMPRESSORS_BY_MAGIC, start)
        self._read_bytes = 0
        self._blocks = self._decompressed_blocks()
        self._blocks_ahead: list[bytes] = []
        self._damage: Exception | None = None

    def position(self) -> int:
        """Return how many bytes of the file are read; of a compressed one, compressed bytes."""
        return self._read_bytes

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._file.close()

    def first_line(self) -> bytes:
        """Return the first line, or what can be read of it. `chunks` returns it again.

        It is for pipes too, which can be read only once.
        """
        block = b""
        while b"\n" not in block and len(self._blocks_ahead) < _MAX_BLOCKS_AHEAD:
            if not (block := self._next_block()):
                break
            self._blocks_ahead.append(block)
        return b"".join(self._blocks_ahead).removeprefix(BOM_UTF8).partition(b"\n")[0]

    def chunks(
        self, *, chunk_bytes: int = CHUNK_BYTES, max_line_bytes: int = MAX_LINE_BYTES
    ) -> Iterator[LineChunk]:
        """Return the lines in chunks. Raises `DamagedFile` after the lines before the damage.

        A byte order mark at the start of the file is part of no line. The line that a damage cuts
        off is not returned: it can look whole, and would differ from the one of the whole file. Of
        a line that is longer than `max_line_bytes`, more than so many bytes are returned, and not
        necessarily all: memory does not depend on its length.
        """
        line, rest = 1, b""
        pieces: list[bytes] = []
        is_start = True
        while True:
            block = self._blocks_ahead.pop(0) if self._blocks_ahead else self._next_block()
            if block:
                pieces.append(block)
                if sum(map(len, pieces)) < chunk_bytes:
                    continue
            content = b"".join([rest, *pieces])
            if is_start:  # programs on Windows begin their files with the mark
                content, is_start = content.removeprefix(BOM_UTF8), False
            lines = content.split(b"\n")
            pieces = []
            rest = lines.pop()[: max_line_bytes + 1]
            if not block and rest and self._damage is None:
                lines.append(rest)
            if lines:
                yield LineChunk(self.name, line, lines)
                line += len(lines)
            if not block:
                break
        if self._damage is not None:
            raise DamagedFile(line, _reason_of(self._damage)) from self._damage

    def _next_block(self) -> bytes:
        """Return the next block, an empty one at the end of the file and from a damage on."""
        try:
            return next(self._blocks, b"")
        except (OSError, zlib.error, zstandard.ZstdError, EOFError) as error:
            self._damage = error
            return b""

    def _decompressed_blocks(self) -> Iterator[bytes]:
        """Return blocks of decompressed bytes, none of them empty."""
        if self._make_decompressor is None:
            yield from self._raw_blocks()
            return
        decompressor = self._make_decompressor()
        is_begun, padding = False, b""
        for block in self._raw_blocks():
            compressed = block if is_begun else block.lstrip(padding)
            while compressed:
                is_begun = True
                if content := decompressor.decompress(compressed):
                    yield content
                compressed = b""
                if decompressor.eof:
                    padding = _PADDING.get(self._make_decompressor, b"")
                    compressed = decompressor.unused_data.lstrip(padding)
                    decompressor, is_begun = self._make_decompressor(), False
        if is_begun:
            raise EOFError("it ends in the middle of a compressed stream")

    def _raw_blocks(self) -> Iterator[bytes]:
        while block := self._file.read(_READ_BYTES):
            self._read_bytes += len(block)
            yield block
        if self._read_bytes < self.size:  # as programs that rotate logs do
            raise EOFError("it has become shorter while it was read")


_T = TypeVar("_T")


def _by_magic(values: Mapping[bytes, _T], start: bytes) -> _T | None:
    """Return the value of the bytes that a file starts with."""
    return next((value for magic, value in values.items() if start.startswith(magic)), None)


def _reason_of(damage: Exception) -> str:
    """Return the reason alone: libraries put their name or an error number before it."""
    if isinstance(damage, OSError):
        return system_reason(damage)
    reason = str(damage).rpartition(": ")[2]
    return reason[:1].lower() + reason[1:]
