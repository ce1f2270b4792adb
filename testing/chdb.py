"""chDB for tests: one directory for the whole run, a fresh database for each test.

chDB supports one directory per process, so no test may open another in the test process.
"""

import asyncio
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.table_identity import table_directories
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.results import decode_result, decode_rows
from headrace.base.logs import get_logger
from headrace.formats.arrow_batch import write_stream
from headrace.model.catalog import Kind, Table
from headrace.model.plan import CompiledQuery
from headrace.model.storage import STORAGE_TABLES, StoredColumn
from headrace.ports.store import CHDB_DIALECT, QueryLimits, StoreResult

LIMITS = QueryLimits(timeout_s=120, max_memory_bytes=1_000_000_000)
"""Limits that no test reaches, not even on a busy machine."""

ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE number % 7 = 3"
"""A SELECT that runs until it is cancelled."""

Row = Mapping[str, Any]

_NUMBERS = itertools.count(1)
_MISSING: Mapping[Kind, Any] = {
    Kind.TEXT: "",
    Kind.NUMBER: None,
    Kind.DATETIME: 1_700_000_000_000,
    Kind.BOOLEAN: False,
    Kind.JSON: b"",
    Kind.DIGEST: bytes(8),
}


class Selectable(ABC):
    """Tables of a store that run SELECTs."""

    def select(self, query: CompiledQuery, limits: QueryLimits = LIMITS) -> list[list[Any]]:
        """Run a compiled query as the service does, and return its rows."""
        return self.rows(query.sql, query.parameters, limits)

    def result(self, query: CompiledQuery, limits: QueryLimits = LIMITS) -> StoreResult:
        """Run a compiled query and return its rows, its totals and what it has read."""
        return decode_result(self._output(query.sql, query.parameters, limits))

    def rows(
        self,
        sql: str,
        parameters: Mapping[str, object] | None = None,
        limits: QueryLimits = LIMITS,
    ) -> list[list[Any]]:
        """Run a SELECT with values by parameter name and return its rows."""
        return decode_rows(self._output(sql, parameters or {}, limits))

    @abstractmethod
    def _output(self, sql: str, parameters: Mapping[str, object], limits: QueryLimits) -> bytes:
        """Run a SELECT and return its result as the store writes it."""


class FreshStore(Selectable):
    """The three tables, empty, in a database of their own."""

    def __init__(self, engine: ChdbInstance) -> None:
        self.engine = engine
        self.database = f"test_{next(_NUMBERS)}"
        self.writer = ChdbWriter(engine, database=self.database)
        self.writer.prepare()
        self.dialect = CHDB_DIALECT
        self._filled: set[str] = set()
        self._session: ChdbSession = engine.session(self.database)

    def insert(self, table: Table, rows: Sequence[Row], *, token: str | None = None) -> None:
        """Insert rows by column name. Columns may be absent. Datetimes are epoch milliseconds."""
        self._filled.add(table.name)
        self.writer.insert(
            table, arrow_stream(table, rows), token=token or f"test {next(_NUMBERS)}"
        )

    def _output(self, sql: str, parameters: Mapping[str, object], limits: QueryLimits) -> bytes:
        texts = encode_parameters(parameters)
        return self._session.select(sql, texts, limits, f"test-{next(_NUMBERS)}")

    def empty(self) -> None:
        """Delete what `insert` has stored and keep the tables."""
        while self._filled:
            self.engine.execute(f"TRUNCATE TABLE `{self.database}`.`{self._filled.pop()}`")

    def close(self) -> None:
        """Drop the database."""
        self._session.close()
        self.writer.close()
        self.engine.execute(f"DROP DATABASE `{self.database}` SYNC")


async def until_running(store: FreshStore, sql: str, count: int) -> None:
    """Wait until `count` queries with this text are running in chDB."""
    running = "SELECT count() FROM system.processes WHERE startsWith(query, {sql:String})"
    async with asyncio.timeout(90):
        while store.rows(running, {"sql": sql}) != [[count]]:  # noqa: ASYNC110 - chDB has no event
            await asyncio.sleep(0.01)


def cut_off_newest_mutation(store: FreshStore, table: Table) -> None:
    """Leave the file of the last mutation empty, as a full disk does."""
    directory = table_directories(store.engine, store.database)[table.name]
    newest = max(directory.glob("mutation_*.txt"), key=lambda file: file.stat().st_mtime)
    newest.write_bytes(b"")


def arrow_stream(table: Table, rows: Sequence[Row]) -> bytes:
    """Encode rows by column name as the loader does."""
    stored = STORAGE_TABLES[table.name]
    return write_stream(
        stored, {column.name: [_value(column, row) for row in rows] for column in stored.columns}
    )


def _value(column: StoredColumn, row: Row) -> Any:
    if column.name in row:
        return row[column.name]
    return os.urandom(16) if column.kind is Kind.IDENTIFIER else _MISSING[column.kind]


@pytest.fixture(scope="session")
def chdb_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChdbInstance]:
    """The chDB instance of the test process."""
    engine = ChdbInstance(tmp_path_factory.mktemp("chdb") / "store", log=get_logger())
    engine.open()
    yield engine
    engine.close()


@pytest.fixture
def chdb_store(chdb_engine: ChdbInstance) -> Iterator[FreshStore]:
    """Empty tables for one test."""
    store = FreshStore(chdb_engine)
    yield store
    store.close()


@pytest.fixture(scope="module")
def chdb_store_of_module(chdb_engine: ChdbInstance) -> Iterator[FreshStore]:
    """Empty tables shared by the tests of a module, for property tests over the same rows."""
    store = FreshStore(chdb_engine)
    yield store
    store.close()
