"""Replicated ClickHouse servers for tests: two shards of two replicas, and Keeper or ZooKeeper."""

import contextlib
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from testing.servers.clickhouse import ClickHouseServer, ClickHouseServers, ClickHouseTables
from testing.servers.clickhouse_configuration import replica_xml, users_xml
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


@pytest.fixture(scope="session")
def replicated_servers() -> Iterator[ReplicatedServers]:
    """Two shards of two replicas, shared by tests. A test restarts what it kills."""
    with running_replicas() as running:
        yield running
