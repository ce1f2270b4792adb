"""Empty stored tables for tests: in chDB, and on ClickHouse servers in each layout."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.ddl import MIGRATIONS, Migration
from headrace.model.catalog import Table
from headrace.model.plan import CompiledQuery
from headrace.ports.store import Dialect, QueryLimits, StoreResult, StoreWriter
from testing.chdb import LIMITS, FreshStore, Row
from testing.servers.clickhouse import ClickHouseTables
from testing.servers.tables_pool import TablesPool


class Tables(Protocol):
    """The interface that the stores share in tests."""

    database: str
    dialect: Dialect

    @property
    def writer(self) -> StoreWriter:
        """The writer of the loader."""
        ...

    def insert(self, table: Table, rows: Sequence[Row], *, token: str | None = None) -> None:
        """Insert rows by column name. Columns may be absent. Datetimes are epoch milliseconds."""
        ...

    def select(self, query: CompiledQuery, limits: QueryLimits = LIMITS) -> list[list[Any]]:
        """Run a compiled query."""
        ...

    def result(self, query: CompiledQuery, limits: QueryLimits = LIMITS) -> StoreResult:
        """Run a compiled query and return its rows, its totals and what it has read."""
        ...

    def rows(
        self,
        sql: str,
        parameters: Mapping[str, object] | None = None,
        limits: QueryLimits = LIMITS,
    ) -> list[list[Any]]:
        """Run a SELECT with values by parameter name and return its rows."""
        ...

    def empty(self) -> None:
        """Delete what `insert` has stored and keep the tables."""
        ...

    def close(self) -> None:
        """Drop the tables."""
        ...


def _embedded(request: pytest.FixtureRequest) -> Tables:
    engine: ChdbInstance = request.getfixturevalue("chdb_engine")
    return FreshStore(engine)


def _of_pool(fixture: str) -> Callable[[pytest.FixtureRequest], Tables]:
    def take(request: pytest.FixtureRequest) -> Tables:
        pool: TablesPool = request.getfixturevalue(fixture)
        return pool.take()

    return take


STORES: Mapping[str, Callable[[pytest.FixtureRequest], Tables]] = {
    "embedded": _embedded,
    "server": _of_pool("server_tables"),
    "cluster": _of_pool("sharded_tables"),
    "replicas": _of_pool("replicated_tables"),
}
EACH_STORE = [
    pytest.param(name, marks=() if name == "embedded" else (pytest.mark.clickhouse,))
    for name in STORES
]
"""The parameters of tests of what is written."""

EACH_QUERIED_STORE = [param for param in EACH_STORE if param.values != ("cluster",)]
"""The parameters of tests of results alone: `replicas` are shards, too, with the same statements.

Tables without replicas differ in what writes them, for which there is `EACH_STORE`.
"""


def writer_of(
    tables: Tables, migrations: tuple[Migration, ...] = MIGRATIONS
) -> ChdbWriter | ClickHouseWriter:
    """Return another writer of the same tables, as after a restart or on another machine."""
    if isinstance(tables, FreshStore):
        return ChdbWriter(tables.engine, database=tables.database, migrations=migrations)
    assert isinstance(tables, ClickHouseTables)
    return ClickHouseWriter(tables.address, migrations=migrations)


@contextmanager
def made_tables(request: pytest.FixtureRequest, store: str) -> Generator[Tables]:
    """Create empty tables in one of the stores and drop them at the end."""
    tables = STORES[store](request)
    try:
        yield tables
    finally:
        tables.close()


@pytest.fixture(params=EACH_STORE)
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Empty tables for one test, in each of the stores."""
    with made_tables(request, request.param) as made:
        yield made


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def tables_of_module(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Empty tables that the tests of one module share, in each kind of store that is queried."""
    with made_tables(request, request.param) as made:
        yield made
