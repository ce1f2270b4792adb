"""Compares the rows that the replicas of each shard have: a select reads only one of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.dialect.ddl import VERSION_TABLE
from headrace.model.migration import Digest
from headrace.model.storage import STORAGE_TABLES

RunSelect = Callable[[str, Mapping[str, object]], Sequence[Sequence[Any]]]
"""Runs a select on the cluster, and fails when a replica does not respond."""

_NODES: Final = "SELECT count() FROM system.clusters WHERE cluster = {cluster:String}"
_REPLICA: Final = "getMacro('shard') AS shard, getMacro('replica') AS replica"
_EMPTY: Final = Digest()


def describe_unequal_replicas(address: ClickHouseAddress, run: RunSelect) -> str:
    """Return which replicas of a shard have different rows; an empty string where none have."""
    shards: dict[str, list[str]] = {}
    for shard, replica in run(_select_replicas(address), {}):
        shards.setdefault(shard, []).append(replica)
    found, nodes = sum(map(len, shards.values())), _count_nodes(address, run)
    if found != nodes:  # a new replica has not yet fetched the version of the layout
        return f"{found} of {nodes} replicas have the tables"
    for table in STORAGE_TABLES:
        digests = _read_digests(address, table, run)
        for shard, replicas in shards.items():
            of_shard = {name: digests.get((shard, name), _EMPTY) for name in replicas}
            if len(set(of_shard.values())) > 1:
                return _describe(table, shard, of_shard)
    return ""


def _describe(table: str, shard: str, digests: Mapping[str, Digest]) -> str:
    counts = (f"{replica} has {digest.rows} rows" for replica, digest in sorted(digests.items()))
    return f"of the table {table} in shard {shard} {', '.join(counts)}"


def _count_nodes(address: ClickHouseAddress, run: RunSelect) -> int:
    ((nodes,),) = run(_NODES, {"cluster": address.cluster})
    return int(nodes)


def _select_replicas(address: ClickHouseAddress) -> str:
    """Select the names of all shards and replicas. Only this table has rows on each of them."""
    return f"SELECT DISTINCT {_REPLICA} FROM {_on_all(address, VERSION_TABLE)}"  # noqa: S608 - our own names


def _read_digests(
    address: ClickHouseAddress, table: str, run: RunSelect
) -> Mapping[tuple[str, str], Digest]:
    """Read the digests by shard and replica, without the replicas that have no rows."""
    rows = run(
        f"SELECT {_REPLICA}, toString(count()), toString(sum(sipHash64(id))) "  # noqa: S608 - our own names
        f"FROM {_on_all(address, table)} GROUP BY shard, replica",
        {},
    )
    return {
        (shard, replica): Digest(int(count), int(checksum))
        for shard, replica, count, checksum in rows
    }


def _on_all(address: ClickHouseAddress, table: str) -> str:
    return f"clusterAllReplicas(`{address.cluster}`, `{address.local_database}`, `{table}`)"
