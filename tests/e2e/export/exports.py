"""Requests exports of a service and decodes what they return."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import requests
from arro3.core import DataType, RecordBatchReader
from arro3.io import read_ipc_stream, read_parquet

from testing.service import Key, Row, Service, bearer

NOON_MS = 1_767_607_200_000
"""2026-01-05T10:00:00Z."""

FORMATS = ("ndjson", "parquet", "csv", "arrow")


def events(count: int, *, first: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Return a batch of events with one number each."""
    return [
        {"name": "made", "timestamp": NOON_MS + number, "properties": {"number": number}, **fields}
        for number in range(first, first + count)
    ]


def send(service: Service, website: str, batch: list[dict[str, Any]], path: str = "/track") -> None:
    """Send items with the master key; they must be acknowledged."""
    response = service.post(f"{path}?website_id={website}", batch, headers=bearer(service.master))
    assert response.status_code == 200, response.text


def request_export(
    service: Service,
    website: str | None,
    *,
    key: Key | None = None,
    stream: bool = False,
    table: str = "events",
    format_name: str = "ndjson",
    parameters: Mapping[str, str | None] | None = None,
) -> requests.Response:
    """Request an export with a key that may do so; a parameter that is None is not sent."""
    query = {
        "website_id": website,
        "table": table,
        "format": format_name,
        **(parameters or {}),
    }
    return service.get(
        "/v1/export",
        params={name: value for name, value in query.items() if value is not None},
        headers=bearer(key or service.key("manage:data")),
        stream=stream,
    )


def decode(content: bytes, format_name: str) -> list[Row]:
    """Return the rows of an export. CSV has texts only."""
    return _DECODERS[format_name](content)


def _decode_csv(content: bytes) -> list[Row]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def _rows(reader: RecordBatchReader) -> list[Row]:
    table = reader.read_all()
    columns: dict[str, list[Any]] = {}
    for name in table.schema.names:
        field, column = table.schema.field(name), table.column(name)
        is_time = DataType.is_timestamp(field.type)
        values = column.cast(DataType.int64()) if is_time else column
        columns[name] = cast("list[Any]", values.to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_DECODERS: Mapping[str, Callable[[bytes], list[Row]]] = {
    "ndjson": lambda content: [json.loads(line) for line in content.splitlines()],
    "csv": _decode_csv,
    "parquet": lambda content: _rows(read_parquet(io.BytesIO(content))),
    "arrow": lambda content: _rows(read_ipc_stream(io.BytesIO(content))),
}
