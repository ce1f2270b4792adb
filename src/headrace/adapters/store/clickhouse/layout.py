"""How the statements of the store's layout are written for servers of ClickHouse.

The one place for what a cluster needs beyond the embedded engine. A cluster's rows are in tables of
a database of its own, one for each shard; tables with the same names that are distributed over
them stand in the store's database, and queries read those.

What needs ClickHouse Keeper (replicas, ON CLUSTER) has only been parsed by a ClickHouse, not run.
"""

import re
from collections.abc import Sequence
from typing import Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.dialect.ddl import CREATE_VERSION_TABLE, VERSION_TABLE, Migration
from headrace.adapters.store.dialect.parameters import quote_literal

DEDUPLICATION_WINDOW: Final = 10_000
DEDUPLICATION_WINDOW_S: Final = 604_800
"""What Keeper remembers of a table's batches by their tokens: so many, and for a week."""

_KEEPER_PATH: Final = "/headrace/{shard_path}/{{database}}/{{table}}"
_TABLE_ENGINE = re.compile(r"ENGINE = (\w*)MergeTree(?:\(([^)]*)\))?")
_WINDOW = re.compile(r"non_replicated_deduplication_window = \d+")
_OBJECT = re.compile(
    r"^((?:CREATE (?:TABLE|VIEW|MATERIALIZED VIEW)|DROP (?:TABLE|VIEW)) (?:IF (?:NOT )?EXISTS )?"
    r"|ALTER TABLE )`(\w+)`"
)
_CREATED = re.compile(r"^CREATE (?:TABLE|VIEW) IF NOT EXISTS `(\w+)`")
_THIS_DATABASE: Final = "currentDatabase()"
"""A view is read within the database of whoever asks, which is not its own on another node."""


def create_databases(address: ClickHouseAddress) -> list[str]:
    """Return the statements that make the databases."""
    names = dict.fromkeys((address.local_database, address.database))
    return [f"CREATE DATABASE IF NOT EXISTS `{name}`{_on_cluster(address)}" for name in names]


def create_version_table(address: ClickHouseAddress) -> str:
    """Return the statement that makes the table of versions; every node of a cluster has all of it.

    It is run in the local database.
    """
    if not address.is_replicated:
        return CREATE_VERSION_TABLE
    return _replicated(address, CREATE_VERSION_TABLE, shard_path="all", replica="{shard}-{replica}")


def local_statements(address: ClickHouseAddress, migration: Migration) -> list[str]:
    """Return the statements of a migration; they are run in the local database."""
    statements = [
        statement.replace(_THIS_DATABASE, quote_literal(address.local_database))
        for statement in migration.statements
    ]
    if not address.is_replicated:
        return statements
    return [_replicated(address, statement) for statement in statements]


def distribute_tables(
    address: ClickHouseAddress, migrations: Sequence[Migration], *, replace_existing: bool
) -> list[str]:
    """Return the statements that make the distributed tables.

    `replace_existing` makes them again, for columns that have been added. They have no sharding
    key: a batch goes to the shard that its insert names, and ClickHouse refuses one that names
    none.
    """
    if not address.cluster:
        return []
    verb = "CREATE OR REPLACE TABLE" if replace_existing else "CREATE TABLE IF NOT EXISTS"
    return [
        f"{verb} `{address.database}`.`{table}`{_on_cluster(address)} "
        f"AS `{address.local_database}`.`{table}` "
        f"ENGINE = Distributed(`{address.cluster}`, `{address.local_database}`, `{table}`)"
        for table in distributed_names(migrations)
    ]


def distributed_names(migrations: Sequence[Migration]) -> list[str]:
    """Return the names of the tables and views that have a distributed table before them."""
    statements = (statement for migration in migrations for statement in migration.statements)
    created = [found[1] for found in map(_CREATED.match, statements) if found]
    return [*created, VERSION_TABLE]


def mutations_table(address: ClickHouseAddress) -> str:
    """Return what FROM names to read the mutations of all nodes that a statement runs on."""
    if not address.is_replicated:
        return "system.mutations"
    return f"clusterAllReplicas(`{address.cluster}`, `system`, `mutations`)"


def _on_cluster(address: ClickHouseAddress) -> str:
    return f" ON CLUSTER `{address.cluster}`" if address.is_replicated else ""


def _replicated(
    address: ClickHouseAddress,
    statement: str,
    *,
    shard_path: str = "{shard}",
    replica: str = "{replica}",
) -> str:
    """Write a statement for all nodes at once, with an engine that keeps replicas alike."""
    path = _KEEPER_PATH.format(shard_path=shard_path)

    def replicated_engine(found: re.Match[str]) -> str:
        arguments = [f"'{path}'", f"'{replica}'", *([found[2]] if found[2] else [])]
        return f"ENGINE = Replicated{found[1]}MergeTree({', '.join(arguments)})"

    qualified, count = _OBJECT.subn(
        rf"\1`{address.local_database}`.`\2`{_on_cluster(address)}", statement, count=1
    )
    if not count:
        raise ValueError(f"this statement cannot be run on a cluster: {statement[:80]}")
    window_settings = (
        f"replicated_deduplication_window = {DEDUPLICATION_WINDOW}, "
        f"replicated_deduplication_window_seconds = {DEDUPLICATION_WINDOW_S}"
    )
    return _WINDOW.sub(window_settings, _TABLE_ENGINE.sub(replicated_engine, qualified, count=1))
