"""A store in memory, for tests of the loader: keeps rows as they would be stored."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from arro3.io import read_ipc_stream

from headrace.formats.arrow_batch import MISSING, inserted_columns
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.store import BatchRejected

Row = Mapping[str, Any]


def _rejects_nothing(_row: Row) -> bool:
    return False


class MemoryStore:
    """A `StoreWriter`. Rejects a batch with a row for which `rejects` returns True."""

    def __init__(self, *, rejects: Callable[[Row], bool] = _rejects_nothing) -> None:
        self._rejects = rejects
        self._tokens: set[tuple[str, str]] = set()
        self.rows: dict[str, list[Row]] = {name: [] for name in STORAGE_TABLES}

    def prepare(self) -> None:
        """See `ports.store.StoreWriter`."""

    def shards(self) -> int | None:
        """See `ports.store.StoreWriter`."""
        return None

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,  # noqa: ARG002 - it has none
        first_attempt: bool = False,
    ) -> None:
        """See `ports.store.StoreWriter`. A first attempt is stored without looking at its token."""
        if not first_attempt and (table.name, token) in self._tokens:
            return
        stored, columns = STORAGE_TABLES[table.name], read_ipc_stream(arrow_stream).read_all()
        names = columns.column_names
        if names != inserted_columns(stored, arrow_stream):
            raise BatchRejected("the columns are not those of the table")
        values = [cast("list[Any]", columns.column(name).to_pylist()) for name in names]  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        missing = {column.name: MISSING.get(column.kind) for column in stored.columns}
        rows = [
            {**missing, **dict(zip(names, row, strict=True))} for row in zip(*values, strict=True)
        ]
        if any(self._rejects(row) for row in rows):
            raise BatchRejected("a row is rejected")
        self._tokens.add((table.name, token))
        self.rows[table.name] += rows
