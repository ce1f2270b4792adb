"""Fixtures for all tests, their Hypothesis profiles, and their timeouts."""

from pathlib import Path
from typing import Any

import pytest

from testing.chdb import chdb_engine, chdb_store, chdb_store_of_module
from testing.distribution import ServersScheduling, in_order
from testing.examples import register_profiles
from testing.servers.clickhouse import clickhouse_servers, dedicated_shards
from testing.servers.encryption import certificate
from testing.servers.replicas import replicated_servers
from testing.servers.shared_state import postgresql, valkey_server
from testing.servers.tables_pool import replicated_tables, server_tables, sharded_tables
from testing.tables import tables, tables_of_module

__all__ = [
    "certificate",
    "chdb_engine",
    "chdb_store",
    "chdb_store_of_module",
    "clickhouse_servers",
    "dedicated_shards",
    "postgresql",
    "replicated_servers",
    "replicated_tables",
    "server_tables",
    "sharded_tables",
    "tables",
    "tables_of_module",
    "valkey_server",
]

TESTS = Path(__file__).parent
LONG_MARKS = ("slow", "browser", "node", "clickhouse")
LONG_SUITES = ("property",)
"""Their tests draw many examples: one took more than two minutes on a slow machine."""

LONG_TIMEOUT_S = 900
"""Ten times what the slowest test takes; npm alone may take 300 s to install ClickHouse."""

MEASURED_SUITES = ("unit", "contract")
"""Other suites pass through code without looking at what it returns: their coverage proves less."""

register_profiles()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Group tests by their servers in the distribution mode of `make test`."""
    if config.getoption("dist") != "loadscope":
        return None
    return ServersScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests, give long ones the long timeout, and measure coverage in two suites.

    Coverage is that of unit and contract tests alone. A timeout on the command line applies to all
    tests.
    """
    items[:] = in_order(items)
    timeout_given = config.getoption("timeout", None) is not None
    for item in items:
        suite = item.path.parts[len(TESTS.parts)]
        is_long = suite in LONG_SUITES or any(map(item.get_closest_marker, LONG_MARKS))
        if not timeout_given and is_long:
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))
        if suite not in MEASURED_SUITES:
            item.add_marker(pytest.mark.no_cover)
