"""A cluster on this one machine: two ClickHouse shards, PostgreSQL, Valkey or Redis, and Headrace.

All servers are real and share the same cores, so wall times do not apply to several hosts.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.load.processes import pids_of
from testing.servers.clickhouse import (
    ClickHouseServer,
    ClickHouseServers,
    address_of,
    new_database,
    reading_address_of,
)
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.clickhouse_programs import clickhouse_program
from testing.servers.shared_state import PostgreSQL, ValkeyServer, find_postgresql, find_valkey
from testing.service import Json, Service, bearer, wait_until

SHARDS = 2
COUNT: Json = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
_STORED_TIMEOUT_S = 120.0


class ClusterEnv(NamedTuple):
    """The servers, a folder on the measured disk, and the folder of the data sets."""

    clickhouse: ClickHouseServers
    postgresql: PostgreSQL
    valkey: ValkeyServer
    folder: Path
    datasets: Path


class Deployment:
    """Machines that share the same servers and therefore the same events."""

    def __init__(self, machines: Sequence[Service], servers: Sequence[ClickHouseServer]) -> None:
        self.machines = machines
        self.servers = servers
        self.website = machines[0].website()
        self.key = machines[0].key()

    @property
    def headers(self) -> Mapping[str, str]:
        """The request headers with the key."""
        return bearer(self.key)

    @property
    def machine_pids(self) -> tuple[int, ...]:
        """The ids of all Headrace processes."""
        return tuple(pid for machine in self.machines for pid in pids_of(machine))

    @property
    def server_pids(self) -> tuple[int, ...]:
        """The ids of all ClickHouse processes."""
        return tuple(server.pid for server in self.servers)

    def count_stored(self) -> int:
        """Count the events of the website once every machine has stored what it acknowledged."""
        for machine in self.machines:
            wait_until(
                lambda: machine.send_query(self.website, COUNT, key=self.key).status_code == 200,  # noqa: B023 - called at once
                "what was sent is stored",
                timeout_s=_STORED_TIMEOUT_S,
            )
        return self.machines[0].count(self.website, "events", key=self.key)


@contextmanager
def run_cluster_env(folder: Path, *, datasets: Path) -> Generator[ClusterEnv]:
    """Run all servers, with files flushed as the guide requires."""
    programs, program = find_postgresql(), find_valkey()
    if programs is None or program is None:
        raise SystemExit("the benchmark needs PostgreSQL, and Valkey or Redis: see apt-get install")
    clickhouse = ClickHouseServers(clickhouse_program(), SHARDS)
    postgresql, valkey = PostgreSQL(programs, fsync="on"), ValkeyServer(program)
    try:
        clickhouse.start()
        postgresql.server.start()
        valkey.server.start()
        yield ClusterEnv(clickhouse, postgresql, valkey, folder, datasets)
    finally:
        valkey.server.remove()
        postgresql.server.remove()
        clickhouse.remove()


def store_settings(servers: Sequence[ClickHouseServer]) -> Mapping[str, str]:
    """Return the settings of an empty store on one server, or over shards."""
    options = {"cluster": CLUSTER, "replicated": 0} if len(servers) > 1 else {}
    database = new_database()
    return {
        "HEADRACE_CLICKHOUSE_URL": address_of(servers, database, **options),
        "HEADRACE_CLICKHOUSE_READER_URL": reading_address_of(servers, database, **options),
    }


@contextmanager
def run_deployment(
    env: ClusterEnv, *, machines: int, shards: int, name: str
) -> Generator[Deployment]:
    """Run machines over `shards` shards. They share Valkey only if there are several machines."""
    servers = env.clickhouse.servers[:shards]
    settings = {
        **store_settings(servers),
        "HEADRACE_DATABASE_URL": env.postgresql.new_database(),
        **({"HEADRACE_VALKEY_URL": env.valkey.url} if machines > 1 else {}),
    }
    services = [
        Service(env.folder / f"{name}-{number}" / "data", settings=settings)
        for number in range(machines)
    ]
    try:
        for service in services:
            service.data.parent.mkdir()
            service.launch()
        for service in services:
            service.wait_ready()
        yield Deployment(services, servers)
        for service in services:
            service.stop()
    finally:
        for service in services:
            service.kill()
