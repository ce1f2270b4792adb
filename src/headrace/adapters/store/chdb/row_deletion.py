"""Deletes rows of the embedded store."""

from collections.abc import Mapping
from typing import Any

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.adapters.store.dialect.row_deletion import (
    count_replaced_parts,
    delete_rows,
    select_mutations,
    select_table_size,
)
from headrace.adapters.store.dialect.statements import render
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import Table
from headrace.ports.rows.deletion import DeletionState, TableSize


class ChdbRowDeleter:
    """The `RowDeleter` over chDB, with a connection of its own."""

    def __init__(self, chdb: ChdbInstance, *, database: str = DATABASE) -> None:
        self._chdb = chdb
        self._database = database
        self._session: ChdbSession | None = None

    def begin(self, table: Table, condition: str) -> None:
        """Begin to delete rows; see `RowDeleter.begin`."""
        self._execute(render(delete_rows(table.name, condition)))

    def state(self, table: Table) -> DeletionState:
        """Return how far the deletions of a table are.

        Also raises `StoreUnavailable` while the table is detached.
        """
        detachments = self._chdb.detachments
        while True:
            count = detachments.count
            if detachments.is_detached(table.name):
                raise StoreUnavailable(f"{table.name} is being reopened")
            state = self._read_state(table)
            if detachments.count == count:
                return state

    def lost_deletions(self) -> int:
        """Return how many deletions were lost; see `RowDeleter.lost_deletions`."""
        return self._chdb.detachments.lost_deletions

    def _read_state(self, table: Table) -> DeletionState:
        names = {"database": self._database, "table": table.name}
        mutations = select_mutations("system.mutations", merges="system.merges")
        ((left, failing, waiting),) = self._execute(mutations, names)
        ((replaced,),) = self._execute(count_replaced_parts("system.parts"), names)
        return DeletionState(
            parts_left=int(left),
            is_failing=bool(failing),
            is_waiting=bool(waiting),
            replaced_parts=int(replaced),
        )

    def size(self, table: Table) -> TableSize:
        """Return the size of a table."""
        names = {"database": self._database, "table": table.name}
        ((rows, size),) = self._execute(select_table_size("system.parts"), names)
        return TableSize(int(rows), int(size))

    def close(self) -> None:
        """Close the connection. May be called twice."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _execute(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[list[Any]]:
        with raising_store_unavailable():
            if self._session is None:
                self._session = self._chdb.session(self._database, writable=True)
            return self._session.execute(sql, parameters)
