"""Creates the tables on nodes of a replicated cluster that lack them.

Such a node is one of a shard that was added, or a replica whose disk was replaced. It gets the
tables as another node has them: a replica whose columns are not those of its shard is refused.
What operators have created in the databases stays where it is.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    NO_RESPONSE,
    SyncClient,
    query_rows,
    translate_client_errors,
)
from headrace.adapters.store.clickhouse.insertion import HUNG_HOST_SETTINGS
from headrace.adapters.store.dialect.ddl import VERSION_TABLE
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.statements import on_cluster
from headrace.base.logs import get_logger

_RUNNING_NODES: Final[Mapping[str, Any]] = {**HUNG_HOST_SETTINGS, "skip_unavailable_shards": 1}
_RUNNING_NODES_ALONE: Final[Mapping[str, Any]] = {
    "distributed_ddl_output_mode": "throw_only_active",
    "distributed_ddl_task_timeout": 5,
}
"""A node that is away runs the statements when it is back."""

_CREATION: Final = re.compile(r"^CREATE (TABLE|VIEW) \S+")

_Definitions = Mapping[tuple[str, str], str]


def create_missing_tables(
    client: SyncClient, address: ClickHouseAddress, tables: Collection[str]
) -> None:
    """Create on all running nodes what some of them have and others lack; nothing before that.

    `tables` are the names of Headrace's tables and views, also of those that no node has yet. What
    fails on a node is logged: the machine may start, and store on the other nodes. Raises what the
    client raises where the host does not respond.
    """
    nodes = _definitions(client, address, tables)
    known = {name: text for node in nodes for name, text in node.items()}
    missing = {name for node in nodes for name in known.keys() - node.keys()}
    if not missing or (address.local_database, VERSION_TABLE) not in known:
        return
    try:
        with translate_client_errors():
            for statement in _creations(address, known):
                client.command(statement, settings=dict(_RUNNING_NODES_ALONE))
    except ClickHouseError as failure:
        if failure.code == NO_RESPONSE:
            raise
        get_logger().warning(
            "clickhouse_tables_missing",
            tables=sorted({name for _, name in missing}),
            reason=str(failure),
        )


def _definitions(
    client: SyncClient, address: ClickHouseAddress, tables: Collection[str]
) -> Sequence[_Definitions]:
    """Return the statement that creates each table, by database and name, of each running node."""
    databases = _quoted((address.local_database, address.database))
    rows = query_rows(
        client,
        f"SELECT tables FROM clusterAllReplicas(`{address.cluster}`, view("  # noqa: S608 - our own names
        "SELECT groupArray((database, name, create_table_query)) AS tables FROM system.tables "
        f"WHERE database IN ({databases}) AND name IN ({_quoted(tables)})))",
        settings=_RUNNING_NODES,
    )
    return [{(database, name): text for database, name, text in tables} for (tables,) in rows]


def _quoted(names: Collection[str]) -> str:
    return ", ".join(map(quote_literal, names))


def _creations(address: ClickHouseAddress, known: _Definitions) -> list[str]:
    """Return the statements, in an order in which each finds what it reads."""
    clause = on_cluster(address.cluster)

    def position(name: tuple[str, str]) -> tuple[bool, bool]:
        return name[0] == address.database, known[name].startswith("CREATE VIEW")

    return [
        *(
            f"CREATE DATABASE IF NOT EXISTS `{database}`{clause}"
            for database in (address.local_database, address.database)
        ),
        *(
            _CREATION.sub(rf"CREATE \1 IF NOT EXISTS `{name[0]}`.`{name[1]}`{clause}", known[name])
            for name in sorted(known, key=position)
        ),
    ]
