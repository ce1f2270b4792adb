"""Replicated ClickHouse servers and Keeper, each on a host of its own, and what can break them."""

import shutil
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.load import TABLES
from chaos.service import RecoveryTimeout
from testing.servers.clickhouse import (
    ClickHouseServer,
    address_of,
    new_database,
    reading_address_of,
)
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.clickhouse_programs import ClickHouseProgram, clickhouse_program
from testing.servers.keeper import Keeper
from testing.servers.network import Host, Network, NetworkMissing
from testing.servers.replicas import REPLICAS, SHARDS, ReplicatedServers

RECOVERY_TIMEOUT_S = 300.0
"""Sessions with Keeper end after 10 s, and an insert that a cut link keeps after 60 s."""

_POLL_S = 0.2


class ClusterUnavailable(Exception):
    """This machine cannot have such a cluster."""


class ReplicaCluster:
    """Two shards of two replicas and Keeper, on hosts whose links can be cut and slowed down.

    `quorum` is the number of replicas that must have a batch; 0 leaves it to the servers.
    """

    def __init__(self, program: ClickHouseProgram, network: Network, *, quorum: int) -> None:
        *hosts, keeper_host = network.hosts
        self.network = network
        self.hosts = hosts
        self.keeper_host = keeper_host
        self.servers = ReplicatedServers(
            program,
            [_server_on(host, program) for host in hosts],
            Keeper(program, host=keeper_host.address, prefix=keeper_host.prefix),
            networks=("127.0.0.1", network.addresses),
        )
        self._database = new_database()
        self._options: Mapping[str, str | int] = {
            "cluster": CLUSTER,
            **({"quorum": quorum} if quorum else {}),
        }

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings with which a service stores its rows here."""
        servers, database = self.servers.servers, self._database
        return {
            "HEADRACE_CLICKHOUSE_URL": address_of(servers, database, **self._options),
            "HEADRACE_CLICKHOUSE_READER_URL": reading_address_of(
                servers, database, **self._options
            ),
        }

    @property
    def host_pairs(self) -> list[tuple[Host, Host]]:
        """The hosts of the two replicas of each shard."""
        return [
            (self.hosts[first], self.hosts[first + 1])
            for first in range(0, SHARDS * REPLICAS, REPLICAS)
        ]

    def heal(self) -> None:
        """Restore all links and start all that was killed or stopped."""
        self.network.heal()
        self.servers.keeper.server.ensure_running()
        started = [server for server in self._all_servers if not server.is_running]
        for server in started:
            server.launch()
        for server in started:
            server.wait_ready()
        for server in self._all_servers:
            server.signal(signal.SIGCONT)

    def wait_until_equal(self) -> None:
        """Wait until the replicas of each shard have the same rows. Raises `RecoveryTimeout`."""
        deadline = time.monotonic() + RECOVERY_TIMEOUT_S
        for table in TABLES.values():
            digest = f"SELECT count(), sum(sipHash64(id)) FROM {self._name(table)}"
            for shard in self.servers.shards:
                while len({server.execute(digest) for server in shard}) > 1:
                    if time.monotonic() > deadline:
                        raise RecoveryTimeout(f"replicas have different rows of {table}")
                    time.sleep(_POLL_S)

    def damage(self) -> None:
        """Delete some rows and store others again, as a store that breaks its promises."""
        events = self._name("events")
        for server, *_ in self.servers.shards:
            server.execute(
                f"ALTER TABLE {events} DELETE WHERE sipHash64(id) % 8 = 0 SETTINGS mutations_sync=2"
            )
            server.execute(
                f"INSERT INTO {events} SELECT * FROM {events} WHERE sipHash64(id) % 8 = 1 "
                f"SETTINGS insert_quorum = {REPLICAS}, insert_deduplicate = 0"
            )

    def keep_logs(self, kept: Path) -> None:
        """Copy the logs of all servers and of Keeper."""
        kept.mkdir()
        for number, server in enumerate(self._all_servers, start=1):
            shutil.copy(server.home / "server.log", kept / f"server-{number}.log")
        shutil.copy(self.servers.keeper.server.home / "server.log", kept / "keeper.log")

    @property
    def _all_servers(self) -> list[ClickHouseServer]:
        return [server for shard in self.servers.shards for server in shard]

    def _name(self, table: str) -> str:
        return f"`{self._database}_shard`.{table}"


def _server_on(host: Host, program: ClickHouseProgram) -> ClickHouseServer:
    return ClickHouseServer(
        program, host=host.address, interserver_host=host.second_address, prefix=host.prefix
    )


@contextmanager
def running_cluster(*, quorum: int) -> Generator[ReplicaCluster]:
    """Run a cluster for the duration of the block. Raises `ClusterUnavailable`."""
    try:
        program = clickhouse_program()
        network = Network(SHARDS * REPLICAS + 1)
    except (NetworkMissing, pytest.skip.Exception) as error:
        raise ClusterUnavailable(str(error)) from None
    try:
        cluster = ReplicaCluster(program, network, quorum=quorum)
        try:
            cluster.servers.start()
            yield cluster
        finally:
            cluster.servers.remove()
    except pytest.skip.Exception as error:  # there is no Keeper
        raise ClusterUnavailable(str(error)) from None
    finally:
        network.remove()
