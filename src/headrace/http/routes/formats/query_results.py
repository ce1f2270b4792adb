"""The formats of a query result: JSON, CSV and an Arrow stream."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import starmap
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from arro3.core import Array, DataType, Field, RecordBatch, Schema
from arro3.io import write_ipc_stream
from msgspec import UNSET, Struct, UnsetType

from headrace.base.clock import date_from_days, to_epoch_ms
from headrace.base.settings import Settings
from headrace.http.responses import JSON_HEADER, JSON_TYPE, Header, Response
from headrace.model.catalog import PREVIOUS_OUTPUT_NAME
from headrace.model.plan import OutputKind
from headrace.ports.store import Rows
from headrace.query.result_values import QueryResult, ReadInfo, format_datetime

CSV_TYPE = "text/csv"
ARROW_TYPE = "application/vnd.apache.arrow.stream"

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets run a cell that begins with one of these. Numbers are not texts."""


_Row = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object"})]


class ComparedDays(Struct, frozen=True, rename="camel"):
    """The range that a result is compared with."""

    start_date: str
    end_date: str


class QueryMeta(Struct, frozen=True, rename="camel"):
    """The metadata of a result."""

    row_count: int
    execution_time: float
    limit: int
    truncated: bool
    rows_read: int
    bytes_read: int
    cached: bool
    watermark: str
    compare: ComparedDays | UnsetType = UNSET


class QueryResponse(Struct, frozen=True, rename="camel"):
    """The body of a result in JSON: one object for each row."""

    success: bool
    data: Sequence[_Row]
    meta: QueryMeta
    request_id: str
    totals: _Row | UnsetType = UNSET
    others: Sequence[_Row] | UnsetType = UNSET


def write_json(result: QueryResult, request_id: str) -> Response:
    """Encode rows as objects with the output names as keys."""
    body = QueryResponse(
        success=True,
        data=row_objects(result),
        meta=_meta_of(result),
        request_id=request_id,
        totals=UNSET if result.totals is None else result.totals,
        others=UNSET if result.others is None else result.others,
    )
    return Response(200, msgspec.json.encode(body), (JSON_HEADER,))


def _meta_of(result: QueryResult) -> QueryMeta:
    comparison = result.comparison
    return QueryMeta(
        row_count=len(result.rows),
        execution_time=result.execution_ms,
        limit=result.limit,
        truncated=result.truncated,
        compare=UNSET
        if comparison is None
        else compared_days(comparison.first_day, comparison.last_day),
        **read_info(result.read),
    )


def read_info(read: ReadInfo) -> Mapping[str, Any]:
    """Return what the metadata tell of what was read."""
    return {
        "rows_read": read.rows,
        "bytes_read": read.bytes,
        "cached": read.cached,
        "watermark": format_datetime(read.watermark_ms),
    }


def compared_days(first_day: int, last_day: int) -> ComparedDays:
    """Return a compared range; days count from 1970."""
    return ComparedDays(date_from_days(first_day).isoformat(), date_from_days(last_day).isoformat())


def row_objects(result: QueryResult) -> Sequence[Any]:
    """Return rows that encode as objects."""
    if result.comparison is None:
        return _objects(result.names, result.rows)
    width = result.comparison.width
    outputs = result.names[:-width]
    compared = _objects(outputs[-width:], [row[-width:] for row in result.rows])
    rows = [
        [*row[:-width], previous if is_present else None]
        for row, previous, is_present in zip(
            result.rows, compared, result.comparison.present, strict=True
        )
    ]
    return _objects((*outputs, PREVIOUS_OUTPUT_NAME), rows)


def _objects(names: tuple[str, ...], rows: Rows) -> Sequence[Any]:
    """Return rows that encode as objects. Structs encode in a tenth of the time of dicts."""
    try:
        row_type = _row_type(names)
    except ValueError:  # msgspec cannot escape quotes, backslashes and controls in field names
        return [dict(zip(names, row, strict=True)) for row in rows]
    return list(starmap(row_type, rows))


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> type[Struct]:
    """Return a type with these names in JSON, cached for repeated queries."""
    fields = {f"c{index}": name for index, name in enumerate(names)}
    row = [(field, Any) for field in fields]
    # A row of scalars is in no reference cycle, so the garbage collector need not track it.
    return msgspec.defstruct("Row", row, rename=fields, gc=False)


def write_csv(result: QueryResult, _request_id: str) -> Response:
    """Encode a header row and the rows by RFC 4180; null is an empty field."""
    return _encode_csv(result, _csv_field)


def write_escaped_csv(result: QueryResult, _request_id: str) -> Response:
    """Encode as `write_csv` does, with an apostrophe before each text that is a formula."""
    return _encode_csv(result, _escaped_csv_field)


def _encode_csv(result: QueryResult, encode_field: Callable[[object], object]) -> Response:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([encode_field(name) for name in result.names])
    writer.writerows([encode_field(value) for value in row] for row in result.rows)
    content_type = f"{CSV_TYPE}; charset=utf-8; header=present"
    return Response(200, out.getvalue().encode(), table_headers(result, content_type))


def write_arrow(result: QueryResult, _request_id: str) -> Response:
    """Encode one record batch; see `record_batch`."""
    stream = io.BytesIO()
    write_ipc_stream(record_batch(result), stream, compression=None)
    return Response(200, stream.getvalue(), table_headers(result, ARROW_TYPE))


def record_batch(result: QueryResult) -> RecordBatch:
    """Return the rows. The type of a column depends on its kind, never on its values."""
    by_column = zip(*result.rows, strict=True) if result.rows else ((),) * len(result.names)
    fields: list[Field] = []
    arrays: list[Array] = []
    for name, kind, values in zip(result.names, result.kinds, by_column, strict=True):
        column = _ARROW_COLUMNS[kind]
        fields.append(
            Field(_replace_nul(name), column.type, nullable=True, metadata=column.metadata)
        )
        arrays.append(_arrow_array(column, values))
    return RecordBatch.from_arrays(  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        arrays, schema=Schema(fields)
    )


ResultT_contra = TypeVar("ResultT_contra", contravariant=True)
Writer: TypeAlias = Callable[[ResultT_contra, str], Response]
"""Encodes a result; the text is the id of the request."""


def result_formats(settings: Settings) -> Mapping[str, Writer[QueryResult]]:
    """Return the writer of every format by its media type; the first is the default."""
    return {
        JSON_TYPE: write_json,
        CSV_TYPE: write_escaped_csv if settings.query_csv_text == "escaped" else write_csv,
        ARROW_TYPE: write_arrow,
    }


class _ArrowColumn(Struct, frozen=True):
    type: DataType
    convert: Callable[[Any], Any] = lambda value: value
    stored_as: DataType | None = None
    metadata: dict[str, str] | None = None


def _epoch_ms(text: str) -> int:
    return to_epoch_ms(datetime.fromisoformat(text))


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


_TEXT_COLUMN = _ArrowColumn(DataType.utf8())
# Arrow's canonical extension type, for columns whose values have different types.
_JSON_COLUMN = _ArrowColumn(
    DataType.utf8(), _json_text, metadata={"ARROW:extension:name": "arrow.json"}
)
_ARROW_COLUMNS: Mapping[OutputKind, _ArrowColumn] = {
    OutputKind.TEXT: _TEXT_COLUMN,
    OutputKind.NUMBER: _ArrowColumn(DataType.float64(), float),
    OutputKind.BOOLEAN: _ArrowColumn(DataType.bool()),
    OutputKind.DATETIME: _ArrowColumn(
        DataType.timestamp("ms", tz="UTC"), _epoch_ms, stored_as=DataType.int64()
    ),
    OutputKind.JSON: _JSON_COLUMN,
    OutputKind.NUMBERS: _JSON_COLUMN,
    OutputKind.HOUR: _TEXT_COLUMN,
    OutputKind.DAY: _TEXT_COLUMN,
    OutputKind.WEEK: _TEXT_COLUMN,
    OutputKind.MONTH: _TEXT_COLUMN,
}


def _replace_nul(name: str) -> str:
    """Return a name without NUL, which ends a string in the C interface of Arrow."""
    return name.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _arrow_array(column: _ArrowColumn, values: Sequence[Any]) -> Array:
    converted = [None if value is None else column.convert(value) for value in values]
    if column.stored_as is None:
        return Array(converted, type=column.type)
    return Array(converted, type=column.stored_as).cast(column.type)


def _csv_field(value: object) -> object:
    return value if value is None or isinstance(value, str) else _json_text(value)


def _escaped_csv_field(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return _csv_field(value)


def table_headers(result: QueryResult, content_type: str) -> tuple[Header, ...]:
    """Return the headers of a body that has rows alone."""
    return (
        (b"content-type", content_type.encode()),
        (b"x-row-count", b"%d" % len(result.rows)),
        (b"x-truncated", b"true" if result.truncated else b"false"),
    )
