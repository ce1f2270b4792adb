"""Fixtures for all tests."""

from testing.chdb import chdb_engine, chdb_store, chdb_store_of_module
from testing.clickhouse import clickhouse_servers, dedicated_shards
from testing.servers import postgresql, valkey_server
from testing.tables import tables, tables_of_module

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
