"""Which test process runs which tests, and in which order.

Each process starts the servers that its tests need. Tests over the same servers therefore go to
one process; all other tests go by module. What takes long comes first, so that no process is left
with it at the end.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

_SERVERS = "servers"
_REPLICAS = "replicas"
_KINDS = {
    "server": _SERVERS,
    "cluster": _SERVERS,
    "shards": _SERVERS,
    "replicas": _REPLICAS,
    "test_clickhouse": _SERVERS,
    "test_clickhouse_encryption": _SERVERS,
    "test_clickhouse_export": _SERVERS,
    "test_clickhouse_replicas": _REPLICAS,
    "test_clickhouse_servers": _SERVERS,
    "test_erasures_of_machines": _SERVERS,
    "test_migrate_store": _REPLICAS,
    "test_store_copy": _REPLICAS,
}
"""Kinds of servers by a parameter of the test or by its module. What is missing here costs time."""

_WITH_SERVERS_OF_THEIR_OWN = ("e2e", "property")
"""Suites long enough for that: servers without replicas start in a few seconds."""

_LONGEST_FIRST = ("e2e", "property", "contract")
_PARTS = re.compile(r"[\[\]/.:-]+")


class ServersScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives all tests over one kind of servers to one process, and other tests by module."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return the servers that a test runs on, or its module."""
    module, _, test = nodeid.partition("::")
    _, _, parameters = test.partition("[")
    words = (*_PARTS.split(parameters), PurePosixPath(module).stem)
    kind = next((_KINDS[word] for word in words if word in _KINDS), None)
    if kind == _SERVERS and _suite_of(nodeid) in _WITH_SERVERS_OF_THEIR_OWN:
        return f"{kind} of {_suite_of(nodeid)}"
    return kind or module


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of the slow suites first, otherwise in the order that they have."""
    return sorted(items, key=lambda item: _rank(item.nodeid))


def _suite_of(nodeid: str) -> str:
    return nodeid.split("/")[1]


def _rank(nodeid: str) -> int:
    """Return the place of a test: replicas take longest, then other servers, then by suite."""
    scope = scope_of(nodeid)
    if scope == _REPLICAS:
        return -2
    if scope.startswith(_SERVERS):
        return -1
    suite = _suite_of(nodeid)
    return _LONGEST_FIRST.index(suite) if suite in _LONGEST_FIRST else len(_LONGEST_FIRST)
