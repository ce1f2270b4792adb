"""Finds the rows and files of erasures in the embedded store."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.adapters.store.dialect.row_deletion import (
    count_detached_parts,
    select_replaced_parts,
)
from headrace.model.plan import CompiledQuery
from headrace.model.storage import STORAGE_TABLES


class ChdbRowFinder:
    """The `RowFinder` over chDB, with a read-only connection of its own."""

    def __init__(self, chdb: ChdbInstance, *, database: str = DATABASE) -> None:
        self._chdb = chdb
        self._database = database
        self._session: ChdbSession | None = None

    def select(self, query: CompiledQuery) -> Sequence[Sequence[Any]]:
        """Run a SELECT; see `RowFinder.select`."""
        return self._execute(query.sql, query.parameters)

    def replaced_parts(self) -> frozenset[str]:
        """Return the names of replaced parts; see `RowFinder.replaced_parts`."""
        sql = select_replaced_parts("system.parts", STORAGE_TABLES)
        return frozenset(name for (name,) in self._execute(sql, {"database": self._database}))

    def detached_parts(self) -> int:
        """Return the number of parts that were set aside."""
        sql = count_detached_parts("system.detached_parts", STORAGE_TABLES)
        ((parts,),) = self._execute(sql, {"database": self._database})
        return int(parts)

    def close(self) -> None:
        """Close the connection. May be called twice."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _execute(self, sql: str, parameters: Mapping[str, object]) -> list[list[Any]]:
        with raising_store_unavailable():
            if self._session is None:
                self._session = self._chdb.session(self._database)
            return self._session.execute(sql, parameters)
