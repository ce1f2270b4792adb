"""The stores of a long run: each process has its own engine or servers."""

import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.logs import get_logger
from testing.chdb import FreshStore
from testing.servers.clickhouse import ClickHouseTables, running_servers
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.replicas import running_replicas
from testing.servers.tables_pool import replicas_pool
from testing.tables import Tables


@contextmanager
def _embedded() -> Generator[Tables]:
    with tempfile.TemporaryDirectory() as folder:
        engine = ChdbInstance(Path(folder) / "store", log=get_logger())
        engine.open()
        tables = FreshStore(engine)
        try:
            yield tables
        finally:
            tables.close()
            engine.close()


@contextmanager
def _server() -> Generator[Tables]:
    with running_servers(1) as running:
        tables = ClickHouseTables(running.servers)
        try:
            yield tables
        finally:
            tables.close()


@contextmanager
def _shards() -> Generator[Tables]:
    with running_servers(2) as running:
        tables = ClickHouseTables(running.servers, cluster=CLUSTER, replicated=0)
        try:
            yield tables
        finally:
            tables.close()


@contextmanager
def _replicas() -> Generator[Tables]:
    with running_replicas() as running:
        pool = replicas_pool(running)
        tables = pool.take()
        try:
            yield tables
        finally:
            tables.drop()


STORES: Final[Mapping[str, Callable[[], AbstractContextManager[Tables]]]] = {
    "embedded": _embedded,
    "server": _server,
    "shards": _shards,
    "replicas": _replicas,
}
