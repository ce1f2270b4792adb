"""Fixtures for all tests, their Hypothesis profiles, and their timeouts."""

import pytest

from testing.chdb import chdb_engine, chdb_store, chdb_store_of_module
from testing.clickhouse import clickhouse_servers, dedicated_shards
from testing.examples import register_profiles
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

LONG_MARKS = ("slow", "browser", "node", "clickhouse")
LONG_TIMEOUT_S = 900
"""Ten times what the slowest test takes; npm alone may take 300 s to install ClickHouse."""

register_profiles()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give marked tests the long timeout, unless the command line gives one for all tests."""
    if config.getoption("timeout", None) is not None:
        return
    for item in items:
        if any(map(item.get_closest_marker, LONG_MARKS)):
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))
