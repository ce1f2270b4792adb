"""The rows of a result as an Arrow stream, made by the library that will read it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def arrow_stream(rows: Rows) -> bytes | None:
    """Return rows as an Arrow stream, or None where neither pyarrow nor polars is installed."""
    if find_spec("pyarrow") is not None:
        return _with_pyarrow(rows)
    return _with_polars(rows) if find_spec("polars") is not None else None


def _with_pyarrow(rows: Rows) -> bytes:
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    table = pyarrow.Table.from_pylist(rows)
    with io.BytesIO() as file:
        with ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        return file.getvalue()


def _with_polars(rows: Rows) -> bytes:
    stream: bytes = import_module("polars").DataFrame(rows).write_ipc_stream(None).getvalue()
    return stream
