"""Replicated ClickHouse servers for tests: two shards of two replicas, and Keeper or ZooKeeper."""

import contextlib
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from headrace.adapters.store.dialect.ddl import MIGRATIONS, VERSION_TABLE
from testing.servers.clickhouse import ClickHouseServer, ClickHouseServers, ClickHouseTables
from testing.servers.clickhouse_configuration import CLUSTER, replica_xml, users_xml
from testing.servers.clickhouse_programs import ClickHouseProgram, clickhouse_program
from testing.servers.keeper import Keeper

SHARDS = 2
REPLICAS = 2
_INTERSERVER_HOST = "127.0.0.2"


class ReplicatedServers(ClickHouseServers):
    """The servers of a replicated cluster by shard and replica, and its Keeper."""

    def __init__(
        self,
        program: ClickHouseProgram,
        servers: Sequence[ClickHouseServer],
        keeper: Keeper,
        *,
        networks: Sequence[str] = ("127.0.0.1",),
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="headrace-clickhouse-replicas-"))
        self.keeper = keeper
        self.shards = [
            servers[first : first + REPLICAS] for first in range(0, SHARDS * REPLICAS, REPLICAS)
        ]
        self._servers = list(servers)
        users = self.home / "users.xml"
        users.write_text(users_xml(replicated=True, networks=networks))
        for server in servers:
            server.configuration.write_text(
                replica_xml(
                    users,
                    self.shards,
                    node=server,
                    keeper=f"{keeper.host}:{keeper.port}",
                    is_official=program.is_official,
                )
            )

    def start(self) -> None:
        """Start Keeper and all servers."""
        self.keeper.server.start()
        super().start()

    def remove(self) -> None:
        """Kill everything and delete the directories."""
        super().remove()
        self.keeper.server.remove()


@contextlib.contextmanager
def running_replicas() -> Generator[ReplicatedServers]:
    """Run two shards of two replicas and Keeper for the duration of the block."""
    program = clickhouse_program()
    servers = [
        ClickHouseServer(program, interserver_host=_INTERSERVER_HOST)
        for _ in range(SHARDS * REPLICAS)
    ]
    running = ReplicatedServers(program, servers, Keeper(program))
    try:
        running.start()
        yield running
    finally:
        running.remove()


@contextlib.contextmanager
def fetches_stopped(tables: ClickHouseTables, servers: ReplicatedServers) -> Generator[None]:
    """Keep the first replica of each shard, which selects prefer, from fetching rows."""
    table = f"`{tables.address.local_database}`.events"
    lagging = [shard[0] for shard in servers.shards]
    for server in lagging:
        server.execute(f"SYSTEM STOP FETCHES {table}")
    try:
        yield
    finally:
        for server in lagging:
            server.execute(f"SYSTEM START FETCHES {table}")


class TablesPool:
    """Keeps tables for the next test: creating them on all replicas takes two seconds."""

    def __init__(self, servers: ReplicatedServers) -> None:
        self._servers = servers
        self._free: list[ReplicatedTables] = []

    def take(self) -> "ReplicatedTables":
        """Return empty tables of the newest layout."""
        self._servers.restart_dead()
        return self._free.pop() if self._free else ReplicatedTables(self._servers.servers, self)

    def give_back(self, tables: "ReplicatedTables") -> bool:
        """Keep the tables, emptied, unless a test has changed their layout."""
        ((version,),) = tables.rows(f"SELECT max(version) FROM {VERSION_TABLE}")
        if version != MIGRATIONS[-1].version:
            return False
        tables.empty()
        self._free.append(tables)
        return True

    def close(self) -> None:
        """Drop all tables."""
        for tables in self._free:
            tables.drop()


class ReplicatedTables(ClickHouseTables):
    """Tables on all replicas. What is inserted is on both replicas of a shard, as tests read."""

    def __init__(self, servers: Sequence[ClickHouseServer], pool: TablesPool) -> None:
        super().__init__(servers, cluster=CLUSTER, quorum=REPLICAS)
        self._pool = pool

    def close(self) -> None:
        """Give the tables back to the pool."""
        if not self._pool.give_back(self):
            self.drop()

    def drop(self) -> None:
        """Drop the databases."""
        super().close()


@pytest.fixture(scope="session")
def replicated_tables(replicated_servers: ReplicatedServers) -> Iterator[TablesPool]:
    """Tables on the shared replicas."""
    pool = TablesPool(replicated_servers)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def replicated_servers() -> Iterator[ReplicatedServers]:
    """Two shards of two replicas, shared by tests. A test restarts what it kills."""
    with running_replicas() as running:
        yield running
