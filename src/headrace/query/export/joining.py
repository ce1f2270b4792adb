"""Joins the encoded chunks of an export to one file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from headrace.formats.arrow_framing import END_OF_STREAM, split_stream
from headrace.formats.parquet_footer import MAGIC, ParquetFooter, read_parquet, write_footer
from headrace.model.export import ExportFormat


class Piece(Struct, frozen=True):
    """Bytes of the file. `memo` is what a joiner must be given again to go on after them."""

    data: bytes | memoryview
    memo: bytes = b""


class Joiner(Protocol):
    """Joins chunks in order. The bytes of the file are `begin`, each `add`, and `finish`."""

    def begin(self) -> bytes:
        """Return the first bytes of the file."""
        ...

    def add(self, encoded: bytes) -> Piece:
        """Return the bytes of a chunk, which the engine encoded as a file of its own."""
        ...

    def finish(self) -> bytes:
        """Return the last bytes of the file. At least one chunk was added."""
        ...


JoinerFactory = Callable[[Sequence[str], int, Sequence[bytes]], Joiner]
"""Makes a joiner from the names of the columns, the size of the file, and the memos of its pieces.

A new file has the size 0; `begin` is called for that alone.
"""


class LineJoiner:
    """Joins lines; `header` is the first one."""

    def __init__(self, header: bytes) -> None:
        self._header = header

    def begin(self) -> bytes:
        """Return the header."""
        return self._header

    def add(self, encoded: bytes) -> Piece:
        """Return the lines as they are."""
        return Piece(encoded)

    def finish(self) -> bytes:
        """Return nothing: the last line is complete."""
        return b""


class ArrowJoiner:
    """Joins Arrow streams: the schema comes from the first one. All have the same."""

    def __init__(self, size: int) -> None:
        self._is_empty = size == 0

    def begin(self) -> bytes:
        """Return nothing: the first chunk brings the schema."""
        return b""

    def add(self, encoded: bytes) -> Piece:
        """Return the record batches of a stream, after the schema in the first one."""
        schema, batches = split_stream(encoded)
        if not self._is_empty:
            return Piece(batches)
        self._is_empty = False
        return Piece(memoryview(encoded)[: len(schema) + len(batches)])

    def finish(self) -> bytes:
        """Return the end of the stream."""
        return END_OF_STREAM


class ParquetJoiner:
    """Joins Parquet files: their row groups follow each other, and one footer lists them."""

    def __init__(self, size: int, memos: Sequence[bytes]) -> None:
        self._size = size
        self._rows = 0
        self._row_groups: list[bytes] = []
        self._last: ParquetFooter | None = None
        for memo in memos:
            self._add(msgspec.msgpack.decode(memo, type=ParquetFooter))

    def begin(self) -> bytes:
        """Return the magic."""
        self._size = len(MAGIC)
        return MAGIC

    def add(self, encoded: bytes) -> Piece:
        """Return the pages of a file; its footer is the memo."""
        pages, footer = read_parquet(encoded, pages_at=self._size)
        self._add(footer)
        self._size += len(pages)
        return Piece(pages, msgspec.msgpack.encode(footer))

    def finish(self) -> bytes:
        """Return the footer."""
        if self._last is None:
            raise ValueError("a Parquet file needs a chunk for its schema")
        return write_footer(self._last, rows=self._rows, row_groups=self._row_groups)

    def _add(self, footer: ParquetFooter) -> None:
        self._rows += footer.rows
        self._row_groups += footer.row_groups
        self._last = footer


def _csv_header(names: Sequence[str]) -> bytes:
    return ",".join(f'"{name}"' for name in names).encode() + b"\r\n"


JOINERS: Final[Mapping[ExportFormat, JoinerFactory]] = {
    ExportFormat.NDJSON: lambda _names, _size, _memos: LineJoiner(b""),
    ExportFormat.CSV: lambda names, _size, _memos: LineJoiner(_csv_header(names)),
    ExportFormat.ARROW: lambda _names, size, _memos: ArrowJoiner(size),
    ExportFormat.PARQUET: lambda _names, size, memos: ParquetJoiner(size, memos),
}
