"""The statements of an export. Every value is bound; their text depends on the shape alone."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headrace.model.catalog import Kind
from headrace.model.export import Chunk, ExportFormat, ExportRequest, Watermark
from headrace.model.plan import CompiledQuery
from headrace.model.storage import STORAGE_TABLES, StoredColumn
from headrace.query.sql.builder import Parameters, clause, statement
from headrace.query.sql.sources.visible_rows import bind_visible_rows

_TIME: Final = "time"
_ROW_ID_LOG: Final = 7
"""Bytes of a row id: six of the receipt, then two of the log, three and five of the offset."""


class _Encoding(Struct, frozen=True):
    """The name of a format in the engine, and its settings; `properties` is SQL."""

    name: str
    settings: Mapping[str, str]
    properties: str = "properties"


_ISO_TIMES: Mapping[str, str] = {"date_time_output_format": "'iso'"}


def _row_template(request: ExportRequest) -> str:
    fields = (
        f'"{column.name}":${{{column.name}:{"Raw" if column.kind is Kind.JSON else "JSON"}}}'
        for column in STORAGE_TABLES[request.table].shown_columns
    )
    return f"{{{','.join(fields)}}}"


_NULL_WITHOUT: Final = "nullIf(properties, '')"
"""Null where there are none: functions for JSON of other programs refuse the empty text."""

_ENCODINGS: Mapping[ExportFormat, _Encoding] = {
    # Not JSONEachRow: it would quote the properties, which are JSON text already.
    ExportFormat.NDJSON: _Encoding(
        "Template",
        {
            **_ISO_TIMES,
            "output_format_json_escape_forward_slashes": "0",
            "format_template_rows_between_delimiter": "''",
        },
        properties="if(properties = '', 'null', properties)",
    ),
    ExportFormat.CSV: _Encoding(
        "CSV",
        {
            **_ISO_TIMES,
            "output_format_csv_crlf_end_of_line": "1",
            "format_csv_null_representation": "''",
        },
    ),
    ExportFormat.PARQUET: _Encoding(
        "Parquet", {"output_format_parquet_string_as_string": "1"}, properties=_NULL_WITHOUT
    ),
    ExportFormat.ARROW: _Encoding(
        "ArrowStream",
        {
            "output_format_arrow_string_as_string": "1",
            "output_format_arrow_low_cardinality_as_dictionary": "0",
            "output_format_arrow_compression_method": "'none'",
        },
        properties=_NULL_WITHOUT,
    ),
}


def column_names(request: ExportRequest) -> tuple[str, ...]:
    """Return the columns of an export in order: all stored columns of its table."""
    return tuple(column.name for column in STORAGE_TABLES[request.table].shown_columns)


def select_chunk(request: ExportRequest, watermark: Watermark, chunk: Chunk) -> CompiledQuery:
    """Return the statement that writes the rows of a chunk in the format of the export."""
    parameters = Parameters()
    encoding = _ENCODINGS[request.format]
    settings = dict(encoding.settings)
    if request.format is ExportFormat.NDJSON:
        settings["format_template_row_format"] = f"'{_row_template(request)}\\n'"
    columns = STORAGE_TABLES[request.table].shown_columns
    sql = statement(
        clause("SELECT", ",", [_column(column, encoding) for column in columns]),
        f"FROM {request.table}",
        clause(
            "WHERE",
            " AND",
            [
                *_rows_within(request, chunk.start_ms, chunk.end_ms, parameters),
                *_slice(request.table, chunk, parameters),
                _before(request.table, watermark, parameters),
            ],
        ),
        clause("SETTINGS", ",", [f"{name} = {value}" for name, value in settings.items()]),
        f"FORMAT {encoding.name}",
    )
    return CompiledQuery(sql, parameters.values, (), request.website_id)


def count_rows(request: ExportRequest, start_ms: int, end_ms: int, width_ms: int) -> CompiledQuery:
    """Return the statement that counts rows in buckets of `width_ms`, oldest first.

    Its columns are the number of the bucket, counted from 1970, and its rows. It reads no ids, so
    it counts rows after the watermark too.
    """
    parameters = Parameters()
    conditions = _rows_within(request, start_ms, end_ms, parameters)
    width = parameters.bind(width_ms, "UInt64")
    sql = statement(
        f"SELECT intDiv(toUnixTimestamp64Milli({_TIME}), {width}) AS bucket, count()",
        f"FROM {request.table}",
        clause("WHERE", " AND", conditions),
        "GROUP BY bucket",
        "ORDER BY bucket",
    )
    return CompiledQuery(sql, parameters.values, (), request.website_id)


def _column(column: StoredColumn, encoding: _Encoding) -> str:
    match column.kind:
        case Kind.IDENTIFIER:
            return f"lower(hex({column.name})) AS {column.name}"
        case Kind.JSON:
            return f"{encoding.properties} AS {column.name}"
        case _:
            return f"`{column.name}`"


def _rows_within(
    request: ExportRequest, start_ms: int, end_ms: int, parameters: Parameters
) -> list[str]:
    visible = bind_visible_rows(request.website_id, request.cutoff_ms, parameters)
    start, end = (
        f"fromUnixTimestamp64Milli({parameters.bind(at_ms, 'Int64')}, 'UTC')"
        for at_ms in (start_ms, end_ms)
    )
    return [*visible.stored_rows(_TIME), f"{_TIME} >= {start}", f"{_TIME} < {end}"]


def _slice(table: str, chunk: Chunk, parameters: Parameters) -> list[str]:
    if chunk.slices == 1:
        return []
    slices = parameters.bind(chunk.slices, "UInt64")
    index = parameters.bind(chunk.slice_index, "UInt64")
    return [f"cityHash64({table}.id) % {slices} = {index}"]


def _before(table: str, watermark: Watermark, parameters: Parameters) -> str:
    """Return the condition for rows before a watermark; see `Watermark` and `formats.row_ids`.

    The name of the table selects the stored id, and not the text of the same name.
    """
    row_id = f"{table}.id"
    received = parameters.bind(watermark.received_ms.to_bytes(6, "big").hex(), "String")
    other_logs = [f"substring({row_id}, 1, 6) <= unhex({received})"]
    known_logs: list[str] = []
    for end in watermark.log_ends:
        log = end.number.to_bytes(2, "big")
        offset = end.segment.to_bytes(3, "big") + end.offset.to_bytes(5, "big")
        number = parameters.bind(log.hex(), "String")
        bound = parameters.bind((log + offset).hex(), "String")
        other_logs.append(f"substring({row_id}, {_ROW_ID_LOG}, 2) != unhex({number})")
        known_logs.append(
            f"substring({row_id}, {_ROW_ID_LOG}, 2) = unhex({number}) "
            f"AND substring({row_id}, {_ROW_ID_LOG}) < unhex({bound})"
        )
    alternatives = (" AND ".join(other_logs), *known_logs)
    return f"({' OR '.join(f'({one})' for one in alternatives)})"
