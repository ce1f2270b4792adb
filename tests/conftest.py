"""Fixtures for all tests."""

from tests.chdb_fixture import chdb_engine, chdb_store, chdb_store_of_module
from tests.clickhouse_fixture import clickhouse_servers, dedicated_shards
from tests.servers import postgresql, valkey_server
from tests.tables import tables, tables_of_module

__all__ = [
    "chdb_engine",
    "chdb_store",
    "chdb_store_of_module",
    "clickhouse_servers",
    "dedicated_shards",
    "postgresql",
    "tables",
    "tables_of_module",
    "valkey_server",
]
