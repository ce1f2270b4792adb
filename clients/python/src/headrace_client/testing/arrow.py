"""The rows of a result as an Arrow stream, made by the library that will read it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Rows = Sequence[Mapping[str, Any]]
Columns = Mapping[str, Sequence[Any]]

_PREVIOUS = "previous"
_PROPERTY = "properties."
_AS_THEY_ARE: Sequence[set[type]] = ({str}, {bool}, set())
"""Types of the values of a column."""


def arrow_stream(rows: Rows) -> bytes | None:
    """Return rows as an Arrow stream, or None where neither pyarrow nor polars is installed."""
    if find_spec("pyarrow") is not None:
        return _with_pyarrow(arrow_columns(rows))
    return _with_polars(arrow_columns(rows)) if find_spec("polars") is not None else None


def arrow_columns(rows: Rows) -> Columns:
    """Return the columns of rows as the service writes them, but for datetimes, which stay texts.

    Numbers are floats and properties JSON texts, as is what has several types. Those of the object
    `previous` are last.
    """
    flat = [_flat(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    ordered = sorted(names, key=lambda name: name.startswith(f"{_PREVIOUS}."))
    return {name: _values(name, [row.get(name) for row in flat]) for name in ordered}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in row.items() if name != _PREVIOUS}
    previous: Mapping[str, Any] = row.get(_PREVIOUS) or {}
    return {**rest, **{f"{_PREVIOUS}.{name}": value for name, value in previous.items()}}


def _values(name: str, values: Sequence[Any]) -> Sequence[Any]:
    types: set[type] = {type(value) for value in values if value is not None}
    if types and types <= {int, float} and not name.startswith(_PROPERTY):
        return [None if value is None else float(value) for value in values]
    if name.startswith(_PROPERTY) or types not in _AS_THEY_ARE:
        return [None if value is None else json.dumps(value) for value in values]
    return values


def _with_pyarrow(columns: Columns) -> bytes:
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    table = pyarrow.table(columns)
    with io.BytesIO() as file:
        with ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        return file.getvalue()


def _with_polars(columns: Columns) -> bytes:
    stream: bytes = import_module("polars").DataFrame(columns).write_ipc_stream(None).getvalue()
    return stream
