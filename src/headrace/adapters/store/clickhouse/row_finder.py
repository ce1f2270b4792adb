"""Finds the rows and files of erasures on ClickHouse servers, of every shard."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    SyncClient,
    SyncClientPool,
    query_rows,
)
from headrace.adapters.store.clickhouse.layout import FRESH_REPLICAS, system_table
from headrace.adapters.store.clickhouse.wide_parameters import fit_parameters
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.row_deletion import select_replaced_parts
from headrace.model.plan import CompiledQuery
from headrace.model.storage import STORAGE_TABLES

_READ_TIMEOUT_S: Final = 300.0
_SELECT_SETTINGS: Final[Mapping[str, int | str]] = {
    **FRESH_REPLICAS,  # an erasure would miss the rows that a replica has not fetched yet
    "skip_unavailable_shards": 0,
    "log_queries": 0,  # else system.query_log of each server has the identifier to erase
}

_ResultT = TypeVar("_ResultT")


class ClickHouseRowFinder:
    """The `RowFinder` over ClickHouse servers. While a shard is away, every call fails.

    So does `select` while all replicas of a shard are more than a second behind.
    """

    def __init__(
        self, address: ClickHouseAddress, *, read_timeout_s: float = _READ_TIMEOUT_S
    ) -> None:
        self._address = address
        self._pool = SyncClientPool(address, read_timeout_s=read_timeout_s)

    def select(self, query: CompiledQuery) -> Sequence[Sequence[Any]]:
        """Run a SELECT over all shards; see `RowFinder.select`."""
        sql, parameters = fit_parameters(query.sql, query.parameters)

        def read(client: SyncClient) -> list[list[Any]]:
            client.database = self._address.database
            return query_rows(client, sql, parameters, _SELECT_SETTINGS)

        return self._run(lambda: self._pool.run_on_any(read))

    def replaced_parts(self) -> frozenset[str]:
        """Return the names of replaced parts; see `RowFinder.replaced_parts`."""
        sql = select_replaced_parts(system_table(self._address, "parts"), STORAGE_TABLES)
        return frozenset(name for rows in self._on_all_shards(sql) for (name,) in rows)

    def detached_parts(self) -> None:
        """Return None: the users of the servers may not look at detached parts."""

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._pool.close()

    def _on_all_shards(self, sql: str) -> list[list[list[Any]]]:
        """Run a SELECT of system tables on each host that has rows of its own."""
        address = self._address
        parameters = encode_parameters({"database": address.local_database})

        def read(client: SyncClient) -> list[list[Any]]:
            return query_rows(client, sql, parameters)

        if address.cluster and not address.is_replicated:
            return self._run(lambda: [self._pool.run_on(host, read) for host in address.hosts])
        return self._run(lambda: [self._pool.run_on_any(read)])

    @staticmethod
    def _run(work: Callable[[], _ResultT]) -> _ResultT:
        with raising_store_unavailable():
            return work()
