"""Parquet files, read as the lines of an NDJSON export."""

import io
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, Table
from arro3.io import write_parquet

from headrace.adapters.imports.line_files import DamagedFile
from headrace.adapters.imports.parquet_files import ParquetFile
from headrace.base.errors import OperatorError

NOON_MS = 1_768_478_400_000


def parquet(rows: int) -> bytes:
    times = Array([NOON_MS + number for number in range(rows)], DataType.int64())
    properties = ('{"a":[1.50]}', "", "{", '"b"')
    columns: dict[str, Any] = {
        "time": times.cast(DataType.timestamp("ms", tz="UTC")),
        "properties": Array([properties[number % 4] for number in range(rows)], DataType.utf8()),
        "value": Array([None, 0.5][:rows] + [1.0] * (rows - 2), DataType.float64()),
    }
    file = io.BytesIO()
    write_parquet(Table.from_pydict(columns), file)  # pyright: ignore[reportUnknownMemberType]
    return file.getvalue()


def test_row_becomes_the_line_of_an_ndjson_export(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet(4))
    with closing(ParquetFile(tmp_path / "a.parquet")) as file:
        (chunk,) = file.chunks()
    assert (chunk.file, chunk.first_line) == (str(tmp_path / "a.parquet"), 1)
    assert b'{"a":[1.50]}' in chunk.lines[0]
    found = [json.loads(line) for line in chunk.lines]
    assert [row["properties"] for row in found] == [{"a": [1.5]}, None, "{", "b"]
    assert [row["value"] for row in found] == [None, 0.5, 1.0, 1.0]
    assert found[1]["time"] == "2026-01-15T12:00:00.001000Z"


def test_chunks_number_their_rows(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet(5000))
    with closing(ParquetFile(tmp_path / "a.parquet")) as file:
        chunks = list(file.chunks(chunk_rows=2000))
    firsts = [chunk.first_line for chunk in chunks]
    ends = [chunk.first_line + len(chunk.lines) for chunk in chunks]
    assert len(chunks) > 1
    assert [*firsts, 5001] == [1, *ends]


def test_file_is_read_to_its_end_with_its_last_rows(tmp_path: Path) -> None:
    """Its footer was read first."""
    (tmp_path / "a.parquet").write_bytes(parquet(5000))
    with closing(ParquetFile(tmp_path / "a.parquet")) as file:
        positions = [file.position() for _ in file.chunks(chunk_rows=2000)]
        assert positions[0] < file.size
        assert positions[-1] == file.size


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no Parquet PAR1")
    with pytest.raises(OperatorError, match="it is no Parquet file"):
        ParquetFile(tmp_path / "a.parquet")


def test_damaged_pages_are_reported(tmp_path: Path) -> None:
    content = bytearray(parquet(5000))
    content[4:4000] = bytes(3996)
    (tmp_path / "a.parquet").write_bytes(content)
    with closing(ParquetFile(tmp_path / "a.parquet")) as file, pytest.raises(DamagedFile) as caught:
        list(file.chunks())
    assert caught.value.line == 1


def test_rows_before_a_time_that_no_row_can_have_are_returned(tmp_path: Path) -> None:
    times = Array([0] * 3000 + [1 << 62], DataType.int64()).cast(DataType.timestamp("us"))
    table = Table.from_pydict({"time": times})  # pyright: ignore[reportUnknownMemberType]
    write_parquet(table, tmp_path / "a.parquet")
    with closing(ParquetFile(tmp_path / "a.parquet")) as file:
        chunks = file.chunks()
        before = next(chunks)
        with pytest.raises(DamagedFile) as caught:
            next(chunks)
    assert caught.value.line == len(before.lines) + 1 > 1
    # What follows differs by the version of Python.
    assert re.fullmatch(r"the file is damaged: year .*\b148108\b.*", str(caught.value))
