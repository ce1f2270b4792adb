"""From columns to an Arrow IPC stream, in the stored layout."""

from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from typing import Any

from arro3.core import Array, DataType, Field, RecordBatch, Schema
from arro3.io import write_ipc_stream

from millrace.model.catalog import Kind
from millrace.model.storage import StoredTable

_MOMENT = DataType.timestamp("ms", tz="UTC")
_ARROW_TYPES: Mapping[Kind, DataType] = {
    Kind.TEXT: DataType.utf8(),
    Kind.NUMBER: DataType.float64(),
    Kind.DATETIME: _MOMENT,
    Kind.BOOLEAN: DataType.bool(),
    Kind.IDENTIFIER: DataType.binary(16),
    Kind.JSON: DataType.binary(),
}


def write_stream(table: StoredTable, columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Write one batch of a table's rows; `columns` are those of `ingest.rows.Columns`.

    Raises `ValueError`, `TypeError` or `OverflowError` for values that their columns cannot hold.
    """
    arrays = [_array(column.kind, columns[column.name]) for column in table.columns]
    batch = RecordBatch.from_arrays(  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        arrays, schema=_schema(table)
    )
    stream = BytesIO()
    write_ipc_stream(batch, stream, compression=None)
    return stream.getvalue()


@cache
def _schema(table: StoredTable) -> Schema:
    return Schema([Field(column.name, _ARROW_TYPES[column.kind]) for column in table.columns])


def _array(kind: Kind, values: Sequence[Any]) -> Array:
    if kind is Kind.DATETIME:  # cannot be made of numbers directly
        return Array(values, DataType.int64()).cast(_MOMENT)
    return Array(values, _ARROW_TYPES[kind])
