"""How tests are distributed over test processes."""

import pytest

from testing.distribution import scope_of

MODULE = "tests/contract/store/test_store.py"


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        (f"{MODULE}::test_rows[server-events]", "servers"),
        (f"{MODULE}::test_rows[events-cluster]", "servers"),
        (f"{MODULE}::test_rows[replicas]", "replicas"),
        (f"{MODULE}::test_rows[embedded-a server]", MODULE),
        (f"{MODULE}::test_replicas", MODULE),
        ("tests/contract/store/clickhouse/test_clickhouse_replicas.py::test_rows", "replicas"),
        ("tests/e2e/cluster/test_clickhouse.py::test_rows[a]", "servers of e2e"),
        ("tests/property/queries/test_rows.py::test_rows[server]", "servers of property"),
        ("tests/e2e/cluster/test_migrate_store.py::test_rows", "replicas"),
        (
            "tests/contract/http/server/test_half_close.py::test_rows",
            "tests/contract/http/server/test_half_close.py",
        ),
    ],
)
def test_tests_over_the_same_servers_have_one_scope(nodeid: str, scope: str) -> None:
    assert scope_of(nodeid) == scope
