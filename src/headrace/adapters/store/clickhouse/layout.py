"""The layout of the store on ClickHouse servers: what a cluster needs beyond chDB.

A cluster keeps its rows in the tables of a database of its own, one on each shard. The store's
database has distributed tables of the same names over them, which queries read.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.dialect.ddl import (
    CREATE_VERSION_TABLE,
    NON_REPLICATED_WINDOW,
    VERSION_TABLE,
    Migration,
)
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.statements import (
    CreateTable,
    CreateView,
    Replication,
    Target,
    on_cluster,
    render,
)

DEDUPLICATION_WINDOW: Final = 100_000
DEDUPLICATION_WINDOW_S: Final = 604_800
"""A table remembers the tokens of this many batches; with replicas, for a week at most.

A batch takes effect within its deadline (`insertion`) or never. The window must outlast that, also
with many machines that store ten batches a second each.
"""

FRESH_REPLICAS: Final[Mapping[str, str]] = {
    "max_replica_delay_for_distributed_queries": "1",
    "fallback_to_stale_replicas_for_distributed_queries": "0",
}
"""Settings of a SELECT over the shards: it reads no replica that is more than a second behind."""

_WINDOW: Final = {NON_REPLICATED_WINDOW: {NON_REPLICATED_WINDOW: DEDUPLICATION_WINDOW}}
_REPLICATED_WINDOW: Final = {
    NON_REPLICATED_WINDOW: {
        "replicated_deduplication_window": DEDUPLICATION_WINDOW,
        "replicated_deduplication_window_seconds": DEDUPLICATION_WINDOW_S,
    }
}


def create_databases(address: ClickHouseAddress) -> list[str]:
    """Return the statements that create the databases."""
    clause = on_cluster(_statement_cluster(address))
    names = dict.fromkeys((address.local_database, address.database))
    return [f"CREATE DATABASE IF NOT EXISTS `{name}`{clause}" for name in names]


def create_version_table(address: ClickHouseAddress) -> str:
    """Return the statement that creates the version table; it runs in the local database.

    All nodes of a cluster are replicas of this one table, whatever their shard.
    """
    return render(
        CREATE_VERSION_TABLE, _target(address, shard_path="all", replica="{shard}-{replica}")
    )


def local_target(address: ClickHouseAddress) -> Target:
    """Return the target of the migrations' statements, which run in the local database."""
    return _target(address, shard_path="{shard}", replica="{replica}")


def distribute_tables(
    address: ClickHouseAddress, migrations: Sequence[Migration], *, replace_existing: bool
) -> list[str]:
    """Return the statements that create the distributed tables.

    `replace_existing` creates them again, with columns that were added. They have no sharding key:
    an insert names the shard of its batch, and ClickHouse rejects one that names none.
    """
    if not address.cluster:
        return []
    verb = "CREATE OR REPLACE TABLE" if replace_existing else "CREATE TABLE IF NOT EXISTS"
    return [
        f"{verb} `{address.database}`.`{table}`{on_cluster(_statement_cluster(address))} "
        f"AS `{address.local_database}`.`{table}` "
        f"ENGINE = Distributed(`{address.cluster}`, `{address.local_database}`, `{table}`)"
        for table in distributed_names(migrations)
    ]


def distributed_names(migrations: Sequence[Migration]) -> list[str]:
    """Return the names of the tables and views that have a distributed table over them."""
    statements = (statement for migration in migrations for statement in migration.statements)
    created = [one.name for one in statements if isinstance(one, CreateTable | CreateView)]
    return [*created, VERSION_TABLE]


def system_table(address: ClickHouseAddress, name: str) -> str:
    """Return SQL for FROM: a table of `system`, of all nodes that a statement runs on."""
    if not address.is_replicated:
        return f"system.{name}"
    return f"clusterAllReplicas(`{address.cluster}`, `system`, `{name}`)"


def _target(address: ClickHouseAddress, *, shard_path: str, replica: str) -> Target:
    view_database = quote_literal(address.local_database)
    if not address.is_replicated:
        return Target(view_database=view_database, replaced_settings=_WINDOW)
    return Target(
        database=address.local_database,
        cluster=address.cluster,
        view_database=view_database,
        replication=Replication(
            path=f"'/headrace/{shard_path}/{{database}}/{{table}}'",
            replica=f"'{replica}'",
        ),
        replaced_settings=_REPLICATED_WINDOW,
    )


def _statement_cluster(address: ClickHouseAddress) -> str:
    """Return the cluster whose nodes run a statement together: only Keeper distributes them."""
    return address.cluster if address.is_replicated else ""
