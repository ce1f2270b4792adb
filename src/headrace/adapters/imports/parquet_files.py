"""Reads Parquet files as lines: a row becomes the JSON object that it is in an NDJSON export."""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
from arro3.core import RecordBatch, RecordBatchReader
from arro3.io import read_parquet
from msgspec import Raw

from headrace.adapters.imports.line_files import DamagedFile
from headrace.base.errors import OperatorError, system_reason
from headrace.formats.parquet_footer import MAGIC
from headrace.model.imports import LineChunk
from headrace.model.storage import PROPERTIES

CHUNK_ROWS: Final = 8192
_FOOTER_LENGTH_BYTES: Final = 4

_encode = msgspec.json.Encoder().encode
_JSON_TEXT = msgspec.json.Decoder(Raw)


class ParquetFile:
    """One file; blocking, read once from start to end. Raises `OperatorError` when opened.

    The number of a line is that of its row.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._is_read = False
        try:
            self._file: IO[bytes] = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            raise OperatorError(f"cannot open {path}: {system_reason(error)}") from error
        try:
            _check_trailer(self._file, self.size)
            with _panics_as_errors():
                self._reader: RecordBatchReader = read_parquet(self._file)
        except Exception as error:  # arro3's own have no base class
            self._file.close()
            raise OperatorError(f"cannot read {path}: it is no Parquet file: {error}") from error

    def position(self) -> int:
        """Return about how many bytes of the file are read."""
        return self.size if self._is_read or self._file.closed else self._file.tell()

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._file.close()

    def chunks(self, *, chunk_rows: int = CHUNK_ROWS) -> Iterator[LineChunk]:
        """Return the rows in chunks. Raises `DamagedFile` after the rows before the damage."""
        row, lines = 1, list[bytes]()
        batches = self._line_batches()
        while True:
            try:
                with _panics_as_errors():
                    batch = next(batches, None)
            except Exception as error:  # as above
                if lines:
                    yield LineChunk(self.name, row, lines)
                raise DamagedFile(row + len(lines), str(error)) from error
            if batch is not None:
                lines += batch
                if len(lines) < chunk_rows:
                    continue
            self._is_read = batch is None
            if lines:
                yield LineChunk(self.name, row, lines)
            if batch is None:
                return
            row += len(lines)
            lines = []

    def _line_batches(self) -> Iterator[list[bytes]]:
        """Return the lines of each batch. Values such as times after year 9999 can raise, too."""
        for batch in self._reader:
            yield _lines(batch)


def _check_trailer(file: IO[bytes], size: int) -> None:
    """Raise `ValueError` where a file does not end in the length of its footer and the magic."""
    if size < 2 * len(MAGIC) + _FOOTER_LENGTH_BYTES:
        raise ValueError("it is too short")
    file.seek(-len(MAGIC) - _FOOTER_LENGTH_BYTES, os.SEEK_END)
    length, magic = file.read(_FOOTER_LENGTH_BYTES), file.read()
    if magic != MAGIC or int.from_bytes(length, "little") > size:
        raise ValueError("it has no footer")
    file.seek(0)


@contextlib.contextmanager
def _panics_as_errors() -> Generator[None]:
    """Raise `ValueError` for a panic of the Rust library, which is no `Exception`."""
    try:
        yield
    except (Exception, GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as panic:
        raise ValueError(str(panic)) from panic


def _lines(batch: RecordBatch) -> list[bytes]:
    names = [str(name) for name in batch.schema.names]
    columns = [_values(batch, name) for name in names]
    return [_encode(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _values(batch: RecordBatch, name: str) -> list[Any]:
    values = cast("list[Any]", batch[name].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    return [_json_object(value) for value in values] if name == PROPERTIES.name else values


def _json_object(text: object) -> object:
    """Return JSON text as it is, None where it is empty, and what is no JSON text as a value."""
    if not text:
        return None
    if isinstance(text, str | bytes):
        try:
            return _JSON_TEXT.decode(text)
        except msgspec.MsgspecError:
            return text
    return text
