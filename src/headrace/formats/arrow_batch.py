"""Encodes columns as an Arrow IPC stream in the stored layout."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from io import BytesIO
from typing import Any, cast

from arro3.core import Array, DataType, Field, RecordBatch, Schema, Table
from arro3.io import read_ipc_stream, write_ipc_stream
from msgspec import Struct

from headrace.formats.indexed_column import IndexedColumn
from headrace.formats.packed_column import PackedColumn
from headrace.model.catalog import Kind
from headrace.model.storage import StoredColumn, StoredTable

_TIMESTAMP = DataType.timestamp("ms", tz="UTC")
_ARROW_TYPES: Mapping[Kind, DataType] = {
    Kind.TEXT: DataType.utf8(),
    Kind.NUMBER: DataType.float64(),
    Kind.DATETIME: _TIMESTAMP,
    Kind.BOOLEAN: DataType.bool(),
    Kind.IDENTIFIER: DataType.binary(16),
    Kind.JSON: DataType.binary(),
    Kind.DIGEST: DataType.binary(8),
}
MISSING: Mapping[Kind, str | bytes | bool | None] = {
    Kind.TEXT: "",
    Kind.NUMBER: None,
    Kind.BOOLEAN: False,
    Kind.JSON: b"",
    Kind.DIGEST: bytes(8),
}
"""The value that represents a missing one; the other kinds are never missing."""
_KEYS = frozenset({"website_id", "time", "id"})
_METADATA_KEYS = frozenset({b"website_id", b"time", b"id", b"websites"})
_SEPARATOR = "\0"
"""Separates website ids. No text of a client contains it."""


class RowKey(Struct, frozen=True):
    """The key of one row in the store: website, time in epoch milliseconds, and id."""

    website_id: str
    time_ms: int
    row_id: bytes


class BatchMetadata(Struct, frozen=True):
    """The metadata of a stream: its first row and its websites."""

    first: RowKey
    websites: frozenset[str]


class StreamWriter:
    """Writes the rows of one batch of a table as an Arrow IPC stream, chunk by chunk.

    The stream has one record batch with the required columns and those that some row fills, and
    carries `BatchMetadata`. Most columns of most batches are empty, and each written one would be
    copied four times on its way to the store.
    """

    def __init__(self, table: StoredTable) -> None:
        self._table = table
        self._schema = _schema(table)
        self._filled = {column.name for column in table.columns if _is_required(column)}
        self._chunks: list[RecordBatch] = []
        self._first: RowKey | None = None
        self._websites: set[str] = set()

    def add(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows; `columns` are as in `ingest.load.columns.Columns`.

        Raises `ValueError`, `TypeError` or `OverflowError` for values outside their column's type.
        """
        rows = len(columns["id"])
        arrays = [self._array(column, columns, rows) for column in self._table.columns]
        if rows and self._first is None:
            self._first = RowKey(columns["website_id"][0], columns["time"][0], columns["id"][0])
        self._websites.update(columns["website_id"])
        self._chunks.append(
            RecordBatch.from_arrays(arrays, schema=self._schema)  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        )

    def _array(
        self, column: StoredColumn, columns: Mapping[str, Sequence[Any]], rows: int
    ) -> Array:
        values = columns.get(column.name)
        distinct = values.values if isinstance(values, IndexedColumn) else values
        if values is None or distinct is None or _is_empty(column.kind, distinct):
            return _missing(column.kind, rows)
        self._filled.add(column.name)
        if isinstance(values, PackedColumn):
            return _unpacked(values, _ARROW_TYPES[column.kind])
        if isinstance(values, IndexedColumn):
            return _repeat(_array(column.kind, distinct), values.indexes)
        if column.kind is Kind.TEXT and _is_constant(values):
            return _repeat(_array(column.kind, values[:1]), bytes(rows))
        return _array(column.kind, values)

    def finish(self) -> bytes:
        """Return the stream of all appended rows."""
        filled = [column.name for column in self._table.columns if column.name in self._filled]
        combined = Table.from_batches(self._chunks, schema=self._schema).select(filled)
        # One record batch, so that the store writes one part.
        (batch,) = combined.combine_chunks().to_batches()
        if self._first is not None:
            metadata = BatchMetadata(self._first, frozenset(self._websites))
            batch = batch.with_schema(batch.schema.with_metadata(encode_batch_metadata(metadata)))
        stream = BytesIO()
        write_ipc_stream(batch, stream, compression=None)
        return stream.getvalue()


def write_stream(table: StoredTable, columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Encode one batch of a table's rows; see `StreamWriter`."""
    writer = StreamWriter(table)
    writer.add(columns)
    return writer.finish()


def encode_batch_metadata(metadata: BatchMetadata) -> dict[str, str]:
    """Encode metadata for the schema of a stream, so that readers need not decode its rows."""
    first = metadata.first
    return {
        "website_id": first.website_id,
        "time": str(first.time_ms),
        "id": first.row_id.hex(),
        "websites": _SEPARATOR.join(metadata.websites),
    }


def read_batch_metadata(arrow_stream: bytes) -> BatchMetadata | None:
    """Return the metadata of a stream, or None where it has no rows.

    Decodes the rows only if the schema lacks the metadata. For bytes that are no such stream it
    raises an exception of arro3, which has no specific class.
    """
    reader = read_ipc_stream(BytesIO(arrow_stream))
    encoded = reader.schema.metadata
    if encoded.keys() >= _METADATA_KEYS:
        texts = {name.decode(): encoded[name].decode() for name in _METADATA_KEYS}
        first = RowKey(texts["website_id"], int(texts["time"]), bytes.fromhex(texts["id"]))
        return BatchMetadata(first, frozenset(texts["websites"].split(_SEPARATOR)))
    batch: RecordBatch = reader.read_next_batch()
    if batch.num_rows == 0:
        return None
    time_ms = batch["time"].cast(DataType.int64())[0].as_py()
    first = RowKey(batch["website_id"][0].as_py(), time_ms, batch["id"][0].as_py())
    websites = cast("list[str]", batch["website_id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    return BatchMetadata(first, frozenset(websites))


class ArrowTimes:
    """The times of a stream's rows, which are decoded when they are read for the first time.

    It is `ports.store.StoredTimes`.
    """

    def __init__(self, table: str, arrow_stream: bytes) -> None:
        self.table = table
        self._arrow_stream = arrow_stream
        self._by_website: Mapping[str, Collection[int]] | None = None

    def of_website(self, website_id: str) -> Collection[int]:
        """Return the times of a website's rows in epoch milliseconds."""
        if self._by_website is None:
            self._by_website = _times_by_website(self._arrow_stream)
        return self._by_website.get(website_id, ())


def _times_by_website(arrow_stream: bytes) -> Mapping[str, Collection[int]]:
    """Return the times of all rows; raises what `read_batch_metadata` raises."""
    batch: RecordBatch = read_ipc_stream(BytesIO(arrow_stream)).read_next_batch()
    websites = cast("list[str]", batch["website_id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    times = cast("list[int]", batch["time"].cast(DataType.int64()).to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    found: dict[str, set[int]] = {}
    for website, time_ms in zip(websites, times, strict=True):
        found.setdefault(website, set()).add(time_ms)
    return found


def inserted_columns(table: StoredTable, arrow_stream: bytes) -> list[str]:
    """Return the columns that an INSERT of a stream must name, in the table's order.

    They are the stream's columns and the required ones. All others get the store's defaults, which
    are the missing values. Raises what `read_batch_metadata` raises.
    """
    present = frozenset(read_ipc_stream(BytesIO(arrow_stream)).schema.names)
    return [
        column.name for column in table.columns if column.name in present or _is_required(column)
    ]


def first_row(arrow_stream: bytes) -> RowKey | None:
    """Return the key of a stream's first row, or None without rows; see `read_batch_metadata`."""
    metadata = read_batch_metadata(arrow_stream)
    return None if metadata is None else metadata.first


@cache
def _schema(table: StoredTable) -> Schema:
    return Schema([Field(column.name, _ARROW_TYPES[column.kind]) for column in table.columns])


def _is_required(column: StoredColumn) -> bool:
    return column.kind not in MISSING or column.name in _KEYS


def _is_empty(kind: Kind, values: Sequence[Any]) -> bool:
    """Return whether all values are missing; a number is never, since it may be 0."""
    return kind in MISSING and MISSING[kind] is not None and not any(values)


def _is_constant(values: Sequence[Any]) -> bool:
    """Return whether all values are the same. Most that are not differ in the last one."""
    return len(values) > 0 and values[0] == values[-1] and values.count(values[0]) == len(values)


def _repeat(values: Array, indexes: "array[int] | bytes") -> Array:
    """Return the value at each index."""
    return values.take(Array.from_buffer(indexes))  # pyright: ignore[reportUnknownMemberType] - the stubs' gap


def _unpacked(values: PackedColumn, data_type: DataType) -> Array:
    """Return an array of values of eight bytes, which Arrow takes from a buffer as numbers."""
    numbers = Array.from_buffer(memoryview(values.packed).cast("Q"))  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    return numbers.cast(DataType.binary()).cast(data_type)


def _array(kind: Kind, values: Sequence[Any]) -> Array:
    if kind is Kind.DATETIME:  # arro3 cannot convert integers to it directly
        return Array(values, DataType.int64()).cast(_TIMESTAMP)
    return Array(values, _ARROW_TYPES[kind])


def _missing(kind: Kind, rows: int) -> Array:
    """Return a column of missing values; a slice of a cached one, as most columns are empty."""
    return _longest_missing(kind, 1 << rows.bit_length()).slice(0, rows)


@cache
def _longest_missing(kind: Kind, rows: int) -> Array:
    return Array([MISSING[kind]] * rows, _ARROW_TYPES[kind])
