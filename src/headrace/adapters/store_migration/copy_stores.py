"""The stores that rows are copied between: chDB and ClickHouse. Blocking, for one thread."""

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, Protocol

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    SyncClientPool,
    bind_parameters,
    query_rows,
)
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store_migration.replica_digests import describe_unequal_replicas
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.catalog import Table
from headrace.model.storage import StoredTable
from headrace.ports.store import BatchRejected

_ARROW: Final = "ArrowStream"
_READ_TIMEOUT_S: Final = 3600.0
REPLICATION_TIMEOUT_S: Final = 60.0
_REPLICATION_POLL_S: Final = 0.5
_REQUIRE_ALL_SHARDS: Final = {"skip_unavailable_shards": 0}

Parameters = Mapping[str, object]


class CopyStore(Protocol):
    """A store to copy from or to. Every method raises `OperatorError`, with the reason."""

    def prepare(self) -> None:
        """Create or migrate the tables."""
        ...

    def rows(self, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Run a select."""
        ...

    def arrow(self, sql: str, parameters: Parameters) -> bytes:
        """Run a select; return an Arrow IPC stream."""
        ...

    def insert(self, table: Table, arrow_stream: bytes, *, token: str) -> None:
        """Store a chunk once, however often it is retried; see `StoreWriter.insert`."""
        ...

    def id_source(self, table: StoredTable) -> str:
        """Return SQL for FROM that finds every stored id, including those on delayed replicas."""
        ...

    def is_eventually_consistent(self) -> bool:
        """Return whether a select may miss rows that an insert has just stored."""
        ...

    def wait_until_consistent(self) -> None:
        """Wait until no select misses a stored row. Needs a store that nobody inserts into."""
        ...

    def close(self) -> None:
        """Close the store. May be called twice."""
        ...


class ChdbCopyStore:
    """The `CopyStore` over a store directory that no other process has open."""

    def __init__(self, chdb: ChdbInstance) -> None:
        self._chdb = chdb
        self._writer = ChdbWriter(chdb)
        self._session: ChdbSession | None = None

    def prepare(self) -> None:
        """Open the store and prepare its tables; see `CopyStore`."""
        with _translate_store_errors("the store in the data directory"):
            self._chdb.open()
            self._writer.prepare()
            self._session = self._chdb.session(writable=True)
            self._session.execute("SET session_timezone = 'UTC'")

    def rows(self, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Run a select; see `CopyStore`."""
        with _translate_store_errors("the store in the data directory"):
            return self._require_session().execute(sql, parameters)

    def arrow(self, sql: str, parameters: Parameters) -> bytes:
        """Run a select; see `CopyStore`."""
        with _translate_store_errors("the store in the data directory"):
            return self._require_session().fetch(sql, encode_parameters(parameters), _ARROW)

    def insert(self, table: Table, arrow_stream: bytes, *, token: str) -> None:
        """Store a chunk; see `CopyStore`."""
        with _translate_store_errors("the store in the data directory"):
            self._writer.insert(table, arrow_stream, token=token)

    def id_source(self, table: StoredTable) -> str:
        """Return the table; see `CopyStore`."""
        return f"`{table.name}`"

    def is_eventually_consistent(self) -> bool:
        """Return False; see `CopyStore`."""
        return False

    def wait_until_consistent(self) -> None:
        """Return at once; see `CopyStore`."""

    def close(self) -> None:
        """Close the store; see `CopyStore`."""
        self._writer.close()
        if self._session is not None:
            self._session.close()
            self._session = None
        self._chdb.close()

    def _require_session(self) -> ChdbSession:
        if self._session is None:
            raise StoreUnavailable("it is closed")
        return self._session


class ClickHouseCopyStore:
    """The `CopyStore` over ClickHouse servers."""

    def __init__(
        self, address: ClickHouseAddress, *, replication_timeout_s: float = REPLICATION_TIMEOUT_S
    ) -> None:
        self._address = address
        self._replication_timeout_s = replication_timeout_s
        self._writer = ClickHouseWriter(address)
        self._pool = SyncClientPool(address, read_timeout_s=_READ_TIMEOUT_S)

    def prepare(self) -> None:
        """Create or migrate the tables; see `CopyStore`."""
        with _translate_store_errors("ClickHouse"):
            self._writer.prepare()

    def rows(self, sql: str, parameters: Parameters) -> Sequence[Sequence[Any]]:
        """Run a select; see `CopyStore`."""
        texts = encode_parameters(parameters)
        with _translate_store_errors("ClickHouse"):
            return self._pool.run_on_any(
                lambda client: query_rows(
                    client, self._with_database(client, sql), texts, _REQUIRE_ALL_SHARDS
                )
            )

    def arrow(self, sql: str, parameters: Parameters) -> bytes:
        """Run a select; see `CopyStore`."""
        values = bind_parameters(encode_parameters(parameters))
        with _translate_store_errors("ClickHouse"):
            return self._pool.run_on_any(
                lambda client: client.raw_query(
                    self._with_database(client, sql),
                    values,
                    settings=dict(_REQUIRE_ALL_SHARDS),
                    fmt=_ARROW,
                )
            )

    def insert(self, table: Table, arrow_stream: bytes, *, token: str) -> None:
        """Store a chunk; see `CopyStore`."""
        with _translate_store_errors("ClickHouse"):
            self._writer.insert(table, arrow_stream, token=token)

    def id_source(self, table: StoredTable) -> str:
        """Return the table, on all replicas if it has any; see `CopyStore`."""
        address = self._address
        if not address.is_replicated:
            return f"`{table.name}`"
        return (
            f"clusterAllReplicas(`{address.cluster}`, `{address.local_database}`, `{table.name}`)"
        )

    def is_eventually_consistent(self) -> bool:
        """Return whether shards have replicas; see `CopyStore`."""
        return self._address.is_replicated

    def wait_until_consistent(self) -> None:
        """Wait until the replicas of each shard have the same rows; see `CopyStore`.

        A select reads one replica of each shard, and one that is behind lacks rows.
        """
        if not self._address.is_replicated:
            return
        clock = SystemClock()
        deadline_s = clock.monotonic_s() + self._replication_timeout_s
        while unequal := describe_unequal_replicas(self._address, self.rows):
            if clock.monotonic_s() > deadline_s:
                raise OperatorError(
                    f"the replicas of ClickHouse did not become equal within "
                    f"{self._replication_timeout_s:g} s: {unequal}; "
                    "the copied rows stay, and the same command continues"
                )
            time.sleep(_REPLICATION_POLL_S)

    def close(self) -> None:
        """Close the connections; see `CopyStore`."""
        self._writer.close()
        self._pool.close()

    def _with_database(self, client: Any, sql: str) -> str:  # noqa: ANN401 - a client of the library
        client.database = self._address.database
        return sql


@contextlib.contextmanager
def _translate_store_errors(store: str) -> Generator[None]:
    try:
        yield
    except (ClickHouseError, StoreUnavailable) as error:
        raise OperatorError(
            f"{store} failed: {error}; the copied rows stay, and the same command continues"
        ) from error
    except BatchRejected as error:
        raise OperatorError(f"{store} rejects rows: {error}") from error
