"""Deletes rows on ClickHouse servers, of every shard.

Without Keeper each host deletes its own rows; with it one statement is for all nodes. A replica
that is away deletes them when it is back: the deletion is in Keeper. A host without Keeper writes a
deletion to a file that a power cut may take.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    NO_RESPONSE,
    SyncClient,
    SyncClientPool,
    query_rows,
)
from headrace.adapters.store.clickhouse.insertion import HUNG_HOST_SETTINGS
from headrace.adapters.store.clickhouse.layout import local_target, system_table
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.row_deletion import (
    count_replaced_parts,
    delete_rows,
    select_mutations,
    select_table_size,
)
from headrace.adapters.store.dialect.statements import render
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import Table
from headrace.ports.rows.deletion import DeletionState, TableSize

_READ_TIMEOUT_S: Final = 60.0

_ALL_NODES_SETTINGS: Final[Mapping[str, int | str]] = {
    "distributed_ddl_output_mode": "throw_only_active",
    "distributed_ddl_task_timeout": 10,
}
"""Wait for the nodes that have a session with Keeper, and for a hung one no longer than so many
seconds: this machine loads nothing and answers no query meanwhile.
"""

_RUNNING_REPLICAS: Final[Mapping[str, Any]] = {**HUNG_HOST_SETTINGS, "skip_unavailable_shards": 1}
_ALL_SERVERS: Final[Mapping[str, Any]] = {**HUNG_HOST_SETTINGS, "skip_unavailable_shards": 0}

_ResultT = TypeVar("_ResultT")


class ClickHouseRowDeleter:
    """The `RowDeleter` over ClickHouse servers. While a shard is away, every call fails."""

    def __init__(self, address: ClickHouseAddress) -> None:
        self._address = address
        self._hosts_lost = 0
        self._pool = SyncClientPool(address, read_timeout_s=_READ_TIMEOUT_S)

    def begin(self, table: Table, condition: str) -> None:
        """Begin to delete rows; see `RowDeleter.begin`."""

        statement = delete_rows(table.name, condition)
        if self._address.is_replicated:
            settings = {**statement.settings, **_ALL_NODES_SETTINGS}
            statement = replace(statement, settings=settings)

        def run(client: SyncClient) -> None:
            client.database = self._address.local_database
            client.command(render(statement, local_target(self._address)))

        self._on_all_shards(run)

    def state(self, table: Table) -> DeletionState:
        """Return how far the deletions of a table are, on all shards together.

        While a replica is away, that is how far the others are until they have finished, and then
        it raises `StoreUnavailable`.
        """
        names = encode_parameters({"database": self._address.local_database, "table": table.name})
        mutations = select_mutations(system_table(self._address, "mutations"))
        parts = count_replaced_parts(system_table(self._address, "parts"))

        def read(client: SyncClient) -> DeletionState:
            ((left, failing, waiting),) = query_rows(client, mutations, names, _RUNNING_REPLICAS)
            if not left:
                ((left, failing, waiting),) = query_rows(client, mutations, names, _ALL_SERVERS)
            ((replaced,),) = query_rows(client, parts, names, _RUNNING_REPLICAS)
            return DeletionState(
                parts_left=int(left),
                is_failing=bool(failing),
                is_waiting=bool(waiting),
                replaced_parts=int(replaced),
            )

        states = self._on_all_shards(read)
        unfinished = [state for state in states if state.parts_left]
        return DeletionState(
            parts_left=sum(state.parts_left for state in states),
            is_failing=any(state.is_failing for state in states),
            is_waiting=bool(unfinished) and all(state.is_waiting for state in unfinished),
            replaced_parts=sum(state.replaced_parts for state in states),
        )

    def lost_deletions(self) -> int:
        """Return how often a host without Keeper did not respond; see the module docstring.

        One that reports an error runs, and so do its deletions.
        """
        return self._hosts_lost

    def size(self, table: Table) -> TableSize:
        """Return the size of a table on all shards together."""
        names = encode_parameters({"database": self._address.local_database, "table": table.name})
        select = select_table_size(system_table(self._address, "parts"))

        def read(client: SyncClient) -> TableSize:
            ((rows, size),) = query_rows(client, select, names)
            return TableSize(int(rows), int(size))

        sizes = self._on_all_shards(read)
        return TableSize(sum(one.rows for one in sizes), sum(one.bytes for one in sizes))

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._pool.close()

    def _on_all_shards(self, work: Callable[[SyncClient], _ResultT]) -> list[_ResultT]:
        """Run `work` on each host that has rows of its own, or on any of equal ones."""
        address = self._address
        try:
            with raising_store_unavailable():
                if address.cluster and not address.is_replicated:
                    return [self._pool.run_on(host, work) for host in address.hosts]
                return [self._pool.run_on_any(work)]
        except StoreUnavailable as error:
            if not address.is_replicated and not _has_responded(error):
                self._hosts_lost += 1
            raise


def _has_responded(error: StoreUnavailable) -> bool:
    """Return whether a server reported the error."""
    cause = error.__cause__
    return isinstance(cause, ClickHouseError) and cause.code != NO_RESPONSE
