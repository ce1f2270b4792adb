"""The formats of the answer of a saved query, by the ending of its path."""

import io
from collections.abc import Mapping

import msgspec
from arro3.io import write_parquet

from headrace.base.settings import Settings
from headrace.http.responses import JSON_TYPE, Response
from headrace.http.routes.formats.query_results import (
    ARROW_TYPE,
    CSV_TYPE,
    Writer,
    record_batch,
    result_formats,
    row_objects,
    table_headers,
)
from headrace.http.routes.rows.export import NDJSON_TYPE, PARQUET_TYPE
from headrace.query.result_values import QueryResult


def saved_formats(settings: Settings) -> Mapping[str, Writer[QueryResult]]:
    """Return the writer of each format."""
    writers = result_formats(settings)
    return {
        "json": writers[JSON_TYPE],
        "csv": writers[CSV_TYPE],
        "arrow": writers[ARROW_TYPE],
        "parquet": write_parquet_file,
        "ndjson": write_ndjson,
    }


def write_ndjson(result: QueryResult, _request_id: str) -> Response:
    """Encode each row as the object that it is in JSON, on a line of its own."""
    body = msgspec.json.Encoder().encode_lines(row_objects(result))
    return Response(200, body, table_headers(result, NDJSON_TYPE))


def write_parquet_file(result: QueryResult, _request_id: str) -> Response:
    """Encode the columns of the Arrow format as a Parquet file."""
    file = io.BytesIO()
    write_parquet(record_batch(result), file)
    return Response(200, file.getvalue(), table_headers(result, PARQUET_TYPE))
