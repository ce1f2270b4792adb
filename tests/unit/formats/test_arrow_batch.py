"""The loader's Arrow streams: one record batch, the non-empty columns, and batch metadata."""

from array import array
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, cast

import pytest
from arro3.core import RecordBatch
from arro3.io import read_ipc_stream, write_ipc_stream

from headrace.formats.arrow_batch import (
    BatchMetadata,
    RowKey,
    StreamWriter,
    first_row,
    inserted_columns,
    read_batch_metadata,
)
from headrace.formats.indexed_column import ROW_INDEX_TYPE, IndexedColumn
from headrace.formats.packed_column import PackedColumn
from headrace.model.catalog import EVENTS
from headrace.model.storage import STORAGE_TABLES

VITALS = STORAGE_TABLES["performance"]


def columns(*ids: int, website: str = "web_a", **given: Sequence[Any]) -> Mapping[str, Any]:
    rows = len(ids)
    return {
        "id": [number.to_bytes(16, "big") for number in ids],
        "website_id": [website] * rows,
        "metric_name": ["LCP"] * rows,
        "path": ["/"] * rows,
        "time": [1000 + number for number in ids],
        "metric_value": [1.5] * rows,
        **given,
    }


def stream_of(*chunks: Mapping[str, Any]) -> bytes:
    writer = StreamWriter(VITALS)
    for chunk in chunks:
        writer.add(chunk)
    return writer.finish()


def batches_of(stream: bytes) -> list[RecordBatch]:
    return list(read_ipc_stream(BytesIO(stream)))


def values_of(batch: RecordBatch, name: str) -> list[Any]:
    return cast("list[Any]", batch[name].to_pylist())  # pyright: ignore[reportUnknownMemberType] - missing from the stubs


def without_notes(stream: bytes) -> bytes:
    (batch,) = batches_of(stream)
    plain = BytesIO()
    write_ipc_stream(batch.with_schema(batch.schema.remove_metadata()), plain, compression=None)
    return plain.getvalue()


def test_chunks_become_one_record_batch_with_columns_in_the_order_of_the_table() -> None:
    (batch,) = batches_of(stream_of(columns(1, 2), columns(3, country=["DE"]), columns(4, 5)))
    given = {*columns(1), "country"}
    assert batch.schema.names == [c.name for c in VITALS.columns if c.name in given]
    assert [value[-1] for value in values_of(batch, "id")] == [1, 2, 3, 4, 5]


def test_column_that_a_chunk_does_not_have_is_missing_in_its_rows() -> None:
    (batch,) = batches_of(stream_of(columns(1), columns(2, country=["DE"])))
    assert values_of(batch, "country") == ["", "DE"]


@pytest.mark.parametrize(
    ("name", "values"),
    [("country", ["", ""]), ("is_bot", [False, False])],
)
def test_column_that_no_row_fills_is_not_written(name: str, values: Sequence[Any]) -> None:
    (batch,) = batches_of(stream_of({**columns(1, 2), name: values}))
    assert name not in batch.schema.names


def test_number_that_is_zero_in_every_row_is_written() -> None:
    (batch,) = batches_of(stream_of(columns(1, 2, metric_value=[0.0, 0.0])))
    assert values_of(batch, "metric_value") == [0.0, 0.0]


def test_indexed_column_has_the_value_of_each_row() -> None:
    indexes = array(ROW_INDEX_TYPE, [1, 0, 1])
    country, is_bot = IndexedColumn(["", "DE"], indexes), IndexedColumn([True, False], indexes)
    assert (list(country), country[1], list(country[1:])) == (["DE", "", "DE"], "", ["", "DE"])
    (batch,) = batches_of(stream_of(columns(1, 2, 3, country=country, is_bot=is_bot)))
    assert values_of(batch, "country") == ["DE", "", "DE"]
    assert values_of(batch, "is_bot") == [False, True, False]


def test_packed_column_has_the_value_of_each_row() -> None:
    event_key = PackedColumn(b"\0first\xff\0second \0")
    assert (list(event_key), event_key[-1]) == ([b"\0first\xff\0", b"second \0"], b"second \0")
    assert event_key[1:] == [b"second \0"]
    (batch,) = batches_of(stream_of(columns(1, 2, event_key=event_key)))
    assert values_of(batch, "event_key") == [b"\0first\xff\0", b"second \0"]


def test_indexed_column_whose_values_are_all_missing_is_not_written() -> None:
    country = IndexedColumn([""], array(ROW_INDEX_TYPE, [0, 0]))
    (batch,) = batches_of(stream_of(columns(1, 2, country=country)))
    assert "country" not in batch.schema.names


@pytest.mark.parametrize(
    "texts",
    [["ü", "ü", "ü"], ["a", "b", "a"], ["a", "", "a"], ["", "", "a"]],
    ids=["all equal", "first equals last", "one missing", "only the last"],
)
def test_text_column_has_the_text_of_each_row(texts: Sequence[str]) -> None:
    (batch,) = batches_of(stream_of(columns(1, 2, 3, country=texts)))
    assert values_of(batch, "country") == list(texts)


def test_value_of_a_wrong_type_is_rejected_where_all_are_equal() -> None:
    with pytest.raises(TypeError):
        stream_of(columns(1, 2, country=[1, 1]))


def test_insert_lists_present_and_required_columns() -> None:
    stream = stream_of(columns(1, website="", country=["DE"]))
    given = {*columns(1), "country"}
    assert inserted_columns(VITALS, stream) == [c.name for c in VITALS.columns if c.name in given]
    events = STORAGE_TABLES[EVENTS.name]
    named = given & {column.name for column in events.columns}
    assert set(inserted_columns(events, stream)) == named | {"received_at"}


def test_number_that_is_missing_is_null_and_zero_is_zero() -> None:
    (batch,) = batches_of(stream_of(columns(1, 2, metric_value=[None, 0.0])))
    assert values_of(batch, "metric_value") == [None, 0.0]


def test_stream_metadata_has_first_row_and_websites() -> None:
    stream = stream_of(columns(7, 8), columns(9, website="web ü"))
    first = RowKey("web_a", 1007, (7).to_bytes(16, "big"))
    assert read_batch_metadata(stream) == BatchMetadata(first, frozenset({"web_a", "web ü"}))
    assert first_row(stream) == first


def test_metadata_is_the_same_when_read_from_the_rows() -> None:
    stream = stream_of(columns(7, 8), columns(9, website="web_b"))
    assert read_batch_metadata(without_notes(stream)) == read_batch_metadata(stream)


@pytest.mark.parametrize("chunks", [(), (columns(),)], ids=["no-chunk", "empty-chunk"])
def test_stream_without_rows_has_no_metadata(chunks: Sequence[Mapping[str, Any]]) -> None:
    stream = stream_of(*chunks)
    assert (read_batch_metadata(stream), first_row(stream)) == (None, None)
