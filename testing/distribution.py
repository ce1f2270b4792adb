"""Which test process runs which tests, and in which order.

Each process starts the servers that its tests need. Tests over the same servers therefore go to
one process; all other tests go by module. What takes long comes first, so that no process is left
with it at the end.
"""

import re
from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadScopeScheduling

_SERVERS = "servers"
_REPLICAS = "replicas"
_KINDS = {
    "server": _SERVERS,
    "cluster": _SERVERS,
    "shards": _SERVERS,
    "replicas": _REPLICAS,
    "test_clickhouse_replicas": _REPLICAS,
    "test_clickhouse_servers": _SERVERS,
    "test_clickhouse_export": _SERVERS,
    "test_clickhouse": _SERVERS,
}
"""Kinds of servers by a parameter of the test or by its module. What is missing here costs time."""

_LONGEST_FIRST = ("e2e", "property", "contract")
_PARTS = re.compile(r"[\[\]/.:-]+")


class ServersScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives all tests over one kind of servers to one process, and other tests by module."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return the kind of servers that a test runs on, or its module."""
    module, _, test = nodeid.partition("::")
    _, _, parameters = test.partition("[")
    words = (*_PARTS.split(parameters), *_PARTS.split(module))
    return next((_KINDS[word] for word in words if word in _KINDS), module)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of the slow suites first, otherwise in the order that they have."""
    return sorted(items, key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    if scope_of(nodeid) in _KINDS.values():
        return -1
    suite = nodeid.split("/")[1]
    return _LONGEST_FIRST.index(suite) if suite in _LONGEST_FIRST else len(_LONGEST_FIRST)
