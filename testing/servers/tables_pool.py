"""Tables on shared ClickHouse servers that one test after another uses.

To create them takes longer than most tests: half a second on one server, two on replicas.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headrace.adapters.store.dialect.ddl import MIGRATIONS, VERSION_TABLE
from testing.servers.clickhouse import ClickHouseServer, ClickHouseServers, ClickHouseTables
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.replicas import REPLICAS, ReplicatedServers


class TablesPool:
    """Tables in one layout: on the first `count` servers, with the `options` of their URL."""

    def __init__(
        self, servers: ClickHouseServers, count: int | None = None, **options: Any
    ) -> None:
        self._servers = servers
        self._count = count
        self._options = options
        self._free: list[PooledTables] = []

    def take(self) -> "PooledTables":
        """Return empty tables of the newest layout."""
        servers = self._servers.servers
        if self._free:
            return self._free.pop()
        return PooledTables(servers[: self._count], self, **self._options)

    def give_back(self, tables: "PooledTables") -> bool:
        """Keep the tables, emptied, unless a test has changed their layout."""
        ((version,),) = tables.rows(f"SELECT max(version) FROM {VERSION_TABLE}")
        if version != MIGRATIONS[-1].version:
            return False
        tables.empty_all()
        self._free.append(tables)
        return True

    def close(self) -> None:
        """Drop all tables."""
        for tables in self._free:
            tables.drop()


class PooledTables(ClickHouseTables):
    """Tables of a pool."""

    def __init__(
        self, servers: Sequence[ClickHouseServer], pool: TablesPool, **options: Any
    ) -> None:
        super().__init__(servers, **options)
        self._pool = pool

    def close(self) -> None:
        """Give the tables back to the pool."""
        if not self._pool.give_back(self):
            self.drop()

    def drop(self) -> None:
        """Drop the databases."""
        super().close()


def replicas_pool(servers: ReplicatedServers) -> TablesPool:
    """Return a pool whose inserts are on both replicas of a shard, as tests read."""
    return TablesPool(servers, cluster=CLUSTER, quorum=REPLICAS)


@pytest.fixture(scope="session")
def server_tables(clickhouse_servers: ClickHouseServers) -> Iterator[TablesPool]:
    """Tables on one of the shared servers."""
    pool = TablesPool(clickhouse_servers, 1)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def sharded_tables(clickhouse_servers: ClickHouseServers) -> Iterator[TablesPool]:
    """Tables over the shared shards, without replicas."""
    pool = TablesPool(clickhouse_servers, cluster=CLUSTER, replicated=0)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def replicated_tables(replicated_servers: ReplicatedServers) -> Iterator[TablesPool]:
    """Tables on the shared replicas."""
    pool = replicas_pool(replicated_servers)
    yield pool
    pool.close()
