"""For any result, JSON, CSV and Arrow have the same rows under the same names."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from arro3.io import read_ipc_stream
from hypothesis import given
from hypothesis import strategies as st

from headrace.http.routes.formats.query_results import write_arrow, write_csv, write_json
from headrace.model.plan import OutputKind
from headrace.query.result_values import QueryResult, ReadInfo

Value = Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ("", "a,b", 'say "hi"', "two\r\nlines", "\n", '"', "null", "5", "\\", "\0", " ")
)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
timestamps = st.integers(0, 4_102_444_799_999).map(
    lambda epoch_ms: (
        (_EPOCH + timedelta(milliseconds=epoch_ms))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
)
VALUES: Mapping[OutputKind, st.SearchStrategy[Value]] = {
    OutputKind.TEXT: texts,
    OutputKind.NUMBER: st.none() | numbers,
    OutputKind.BOOLEAN: st.booleans(),
    OutputKind.DATETIME: timestamps,
    OutputKind.JSON: st.none() | texts | numbers | st.booleans() | st.just(2**70),
    OutputKind.NUMBERS: st.lists(st.none() | numbers, max_size=4),
    OutputKind.HOUR: st.just("2026-01-31 23:00:00"),
    OutputKind.DAY: st.just("2026-01-31"),
    OutputKind.WEEK: st.just("2026-01-26"),
    OutputKind.MONTH: st.just("2026-01-01"),
}
ARROW_VALUES: Mapping[OutputKind, Callable[[Value], Value]] = {
    OutputKind.NUMBER: float,
    OutputKind.DATETIME: datetime.fromisoformat,
    OutputKind.JSON: lambda value: msgspec.json.encode(value).decode(),
    OutputKind.NUMBERS: lambda value: msgspec.json.encode(value).decode(),
}


@st.composite
def answers(draw: st.DrawFn) -> QueryResult:
    kinds = tuple(draw(st.lists(st.sampled_from(OutputKind), min_size=1, max_size=5)))
    names = draw(
        st.lists(texts.filter(bool), min_size=len(kinds), max_size=len(kinds), unique=True)
    )
    row = st.tuples(*(VALUES[kind] for kind in kinds)).map(list)
    return QueryResult(
        names=tuple(names),
        kinds=kinds,
        rows=draw(st.lists(row, max_size=6)),
        limit=6,
        truncated=draw(st.booleans()),
        execution_ms=1.5,
        read=ReadInfo(7, 80, draw(st.booleans()), 1_767_607_200_123),
    )


@given(result=answers())
def test_json_rows_are_objects_keyed_by_output_name(result: QueryResult) -> None:
    assert json.loads(write_json(result, "r").body) == {
        "success": True,
        "data": [dict(zip(result.names, row, strict=True)) for row in result.rows],
        "meta": {
            "rowCount": len(result.rows),
            "executionTime": 1.5,
            "limit": 6,
            "truncated": result.truncated,
            "rowsRead": 7,
            "bytesRead": 80,
            "cached": result.read.cached,
            "watermark": "2026-01-05T10:00:00.123Z",
        },
        "requestId": "r",
    }


def as_field(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@given(result=answers())
def test_csv_round_trips(result: QueryResult) -> None:
    response = write_csv(result, "r")
    lines = list(csv.reader(io.StringIO(response.body.decode(), newline="")))
    assert lines == [
        list(result.names),
        *([as_field(value) for value in row] for row in result.rows),
    ]
    assert dict(response.headers)[b"x-row-count"] == b"%d" % len(result.rows)


@given(result=answers())
def test_arrow_round_trips(result: QueryResult) -> None:
    table: Any = read_ipc_stream(io.BytesIO(write_arrow(result, "r").body)).read_all()
    names = [name.replace("\0", "\N{REPLACEMENT CHARACTER}") for name in result.names]
    assert list(table.schema.names) == names
    columns = [table.column(index).to_pylist() for index in range(len(result.names))]
    assert list(map(list, zip(*columns, strict=True))) == [
        [
            None if value is None else ARROW_VALUES.get(kind, lambda same: same)(value)
            for kind, value in zip(result.kinds, row, strict=True)
        ]
        for row in result.rows
    ]
