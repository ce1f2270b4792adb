"""Stores the loader's batches on ClickHouse servers, and creates and migrates the tables.

A batch is one part on one shard, chosen by its token: it is stored wholly or not at all, and a
retry meets the deduplication window of the same shard, whichever host receives it. While a shard
is away, its batches stay in the log.
"""

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping
from io import BytesIO
from typing import Any, Final, NamedTuple
from zlib import crc32

from arro3.io import read_ipc_stream

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import (
    SyncClient,
    SyncClientPool,
    query_rows,
)
from headrace.adapters.store.clickhouse.insertion import (
    HUNG_HOST_SETTINGS,
    MAX_EXECUTION_SHARE,
    insert_settings,
    insert_target,
)
from headrace.adapters.store.clickhouse.preparation import SchemaMigrator
from headrace.adapters.store.dialect.ddl import MIGRATIONS, Migration
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import insert_error
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.base.clock import Clock, SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.formats.arrow_batch import RowKey, first_row, inserted_columns
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES, StoredTable
from headrace.ports.store import BatchRejected

READ_TIMEOUT_S: Final = 60.0
PREPARE_TIMEOUT_S: Final = 10.0
_MAX_PREPARE_TIMEOUT_S: Final = 3600.0
"""A statement that creates tables takes 0.1 s, and 3 s on servers that are ten times overloaded. A
hanging one is retried after `PREPARE_TIMEOUT_S`; each retry doubles the timeout, up to the maximum,
for statements with much to do.
"""

_TRUNCATED_STREAM: Final = frozenset({32, 33})
"""ATTEMPT_TO_READ_AFTER_EOF, CANNOT_READ_ALL_DATA: also reported when another server hangs up."""

_USER_ERRORS: Final[Mapping[int, str]] = {
    497: 'permission denied for user "{user}"',  # ACCESS_DENIED
    516: 'authentication failed for user "{user}"',  # AUTHENTICATION_FAILED
}
"""Codes that only the operator can fix, and their messages."""

_CLUSTER_DOESNT_EXIST: Final = 701

OLDEST_VERSION: Final = (26, 7)
"""The oldest version that the tests run: older ones do not know all settings of inserts."""

_SELECT_SERVER: Final = (
    "SELECT version(), (SELECT toFloat64(count()) FROM system.parts WHERE database = '')"
)

_SELECT_SHARDS: Final = (
    "SELECT max(shard_num), min(replicas), max(replicas) FROM (SELECT shard_num, "
    "toFloat64(count()) AS replicas FROM system.clusters WHERE cluster = {cluster:String} "
    "GROUP BY shard_num)"
)
_COUNT_FIRST_ROW: Final = (
    "SELECT toFloat64(count()), toFloat64(toUnixTimestamp64Milli(now64(3))) "
    "FROM {table} WHERE website_id = {{website:String}} "
    "AND time = fromUnixTimestamp64Milli({{time:Int64}}, 'UTC') AND id = unhex({{id:String}})"
)


class ClickHouseWriter:
    """The `StoreWriter` over ClickHouse servers; used from one thread."""

    def __init__(
        self,
        address: ClickHouseAddress,
        *,
        migrations: tuple[Migration, ...] = MIGRATIONS,
        read_timeout_s: float = READ_TIMEOUT_S,
        prepare_timeout_s: float = PREPARE_TIMEOUT_S,
        oldest_version: tuple[int, int] = OLDEST_VERSION,
        clock: Clock | None = None,
    ) -> None:
        self._address = address
        self._clock = clock or SystemClock()
        self._migrator = SchemaMigrator(address, migrations)
        self._read_timeout_s = read_timeout_s
        self._prepare_timeout_s = prepare_timeout_s
        self._oldest_version = oldest_version
        self._pool = SyncClientPool(address, read_timeout_s=read_timeout_s)
        self._shards: int | None = None
        self._stop_requested = False
        self._not_kept: Counter[str] = Counter()

    @property
    def is_prepared(self) -> bool:
        """Whether the tables were found or created, and no insert has failed since."""
        return self._shards is not None

    @property
    def current_statement(self) -> str:
        """The statement that `prepare` runs, or ran last, shortened; from any thread."""
        return self._migrator.statement

    def prepare(self) -> None:
        """Create or migrate the tables. Safe at every start, on several machines at once.

        Raises `OperatorError` when a newer Headrace wrote them, the server is too old, the cluster
        is unknown or the user lacks a privilege, else `StoreUnavailable` with the statement.
        """
        began_s = self._clock.monotonic_s()
        self._migrator.statement = ""
        try:
            self._shards = self._prepare()
        except ClickHouseError as failure:
            raise _operator_error(failure, self._address) or StoreUnavailable(
                f"{failure}; the statement was: {self.current_statement or 'a check of the layout'}"
            ) from failure
        except StoreUnavailable:
            self._address = self._address.rotated(1)  # the first host may be the one that hangs
            raise
        finally:
            if self._clock.monotonic_s() - began_s > self._prepare_timeout_s:
                self._prepare_timeout_s = min(self._prepare_timeout_s * 2, _MAX_PREPARE_TIMEOUT_S)

    def shards(self) -> int | None:
        """Return the number of shards of the cluster, None without one; see `StoreWriter.shards`.

        Prepares the tables where that is not done. Raises what `prepare` raises.
        """
        if self._shards is None:
            self.prepare()
        return self._shards or None

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,
        first_attempt: bool = False,  # noqa: ARG002 - every attempt searches the servers
    ) -> None:
        """Store a batch; see `StoreWriter.insert`. Up to a million rows are one part."""
        stored = STORAGE_TABLES[table.name]
        row = _first_row(arrow_stream)
        if row is None:
            return
        if self._stop_requested:
            raise StoreUnavailable("the store is closing")
        if not self.is_prepared:
            self.prepare()
        try:
            self._insert_once(stored, arrow_stream, row, f"{token}-{row.row_id.hex()}", shards)
        except ClickHouseError as failure:
            error: Exception = insert_error(failure)
            if failure.code in _TRUNCATED_STREAM:
                _check_complete(arrow_stream)
                error = StoreUnavailable(str(failure))
            if isinstance(error, StoreUnavailable):
                self._shards = None  # the next attempt prepares again: tables may have changed
                self._pool.begin_with_next_host()  # a read-only replica may have an intact one
            raise error from failure

    def request_stop(self) -> None:
        """Reject every batch after the running one; from any thread, before `close`."""
        self._stop_requested = True
        self._migrator.request_stop()

    def close(self) -> None:
        """Close the connections. No insert may run meanwhile. May be called twice."""
        self.request_stop()
        self._pool.close()

    def _prepare(self) -> int:
        address, prepare = self._address, self._migrator.prepare
        with contextlib.closing(
            SyncClientPool(address, read_timeout_s=self._prepare_timeout_s)
        ) as pool:
            pool.run_on_any(self._check_server)
            shards = pool.run_on_any(self._count_shards)
            if address.cluster and not address.is_replicated:
                for host in address.hosts:  # without Keeper a statement changes one host alone
                    pool.run_on(host, prepare)
            else:
                pool.run_on_any(prepare)
            return shards

    def _check_server(self, client: SyncClient) -> None:
        """Raise `OperatorError` for a server that is too old.

        Erasures read `system.parts`: the client raises here where the user may not.
        """
        ((version, _),) = query_rows(client, _SELECT_SERVER)
        numbers = tuple(int(number) for number in str(version).split(".")[:2])
        if numbers < self._oldest_version:
            oldest = ".".join(map(str, self._oldest_version))
            raise OperatorError(
                f"ClickHouse has the version {version}: Headrace needs {oldest} or newer"
            )

    def _count_shards(self, client: SyncClient) -> int:
        """Return the shards of the cluster, 0 without one.

        Raises `OperatorError` for a cluster that is not the one which the address describes:
        rows would be stored on one replica of several, or never.
        """
        cluster, quorum = self._address.cluster, self._address.quorum
        if not cluster:
            return 0
        parameters = encode_parameters({"cluster": cluster})
        ((shards, fewest, most),) = query_rows(client, _SELECT_SHARDS, parameters)
        if not shards:
            raise OperatorError(f'ClickHouse has no cluster "{cluster}"')
        if most > 1 and not self._address.is_replicated:
            raise OperatorError(
                f'the cluster "{cluster}" of ClickHouse has shards with replicas: the URL must not '
                "say replicated=0"
            )
        if not self._address.is_replicated and shards > len(self._address.hosts):
            raise OperatorError(
                f'the cluster "{cluster}" of ClickHouse has {shards:.0f} shards: with replicated=0 '
                f"the URL must list a host of each, and lists {len(self._address.hosts)}"
            )
        if fewest < quorum:
            raise OperatorError(
                f"the URL of ClickHouse says quorum={quorum}, but a shard of the cluster "
                f'"{cluster}" has replicas: {fewest:.0f}'
            )
        return int(shards)

    def _insert_once(
        self,
        table: StoredTable,
        arrow_stream: bytes,
        row: RowKey,
        token: str,
        shards: int | None,
    ) -> None:
        """Insert a batch unless it is stored, and verify that it is stored afterwards.

        A server without Keeper writes a token just before the part: a crash in between leaves a
        token without rows, which rejects every retry as a duplicate. The second attempt therefore
        uses another token, and once the server has answered that one and has no rows, the next
        retry another one again. Keeper commits token and part together; there a verification could
        read a replica that is behind, so there is none.
        """
        again = () if self._address.is_replicated else (f"{token}-again-{self._not_kept[token]}",)
        settings = self._insert_settings(token, shards)
        for attempt in (token, *again):
            search = self._find_batch(table, row)
            if search.is_found:
                return
            settings["insert_deduplication_token"] = attempt
            self._insert(table, arrow_stream, settings, searched_ms=search.time_ms)
        if again and not self._find_batch(table, row).is_found:
            self._not_kept[token] += 1
            raise StoreUnavailable(f"ClickHouse did not keep a batch of {table.name}")

    def _insert(
        self,
        table: StoredTable,
        arrow_stream: bytes,
        settings: Mapping[str, Any],
        *,
        searched_ms: int,
    ) -> None:
        target = insert_target(
            self._address.database,
            table,
            inserted_columns(table, arrow_stream),
            deadline_ms=searched_ms + int(self._read_timeout_s * 1000),
        )
        self._pool.run_on_any(
            lambda client: client.raw_insert(
                target,
                None,
                arrow_stream,
                dict(settings),
                "ArrowStream",
            )
        )

    def _insert_settings(self, token: str, shards: int | None) -> dict[str, Any]:
        """Return the settings of a batch: its shard is one of those that it began with.

        An attempt whose client is gone may still run there, and only that shard rejects another
        one. Where the cluster has fewer shards by now, that one may be gone.
        """
        settings = insert_settings(read_timeout_s=self._read_timeout_s, quorum=self._address.quorum)
        if self._shards:
            settings["distributed_foreground_insert"] = 1
            settings["insert_shard_id"] = _shard_of(
                token, min(shards or self._shards, self._shards)
            )
        return settings

    def _find_batch(self, table: StoredTable, row: RowKey) -> "_Search":
        """Search a batch by its first row: a batch is one part, stored wholly or not at all.

        Row ids depend on the log offset alone, so every attempt of a batch has the same ones.
        Raises `StoreUnavailable` where some replicas have it, but fewer than the quorum.
        """
        address = self._address
        source = f"`{address.database}`.`{table.name}`"
        if address.is_replicated:
            local = f"`{address.local_database}`, `{table.name}`"
            source = f"clusterAllReplicas(`{address.cluster}`, {local})"
        ((found, time_ms),) = self._pool.run_on_any(
            lambda client: query_rows(
                client,
                _COUNT_FIRST_ROW.format(table=source),
                encode_parameters(
                    {"website": row.website_id, "time": row.time_ms, "id": row.row_id.hex()}
                ),
                {
                    **HUNG_HOST_SETTINGS,
                    "skip_unavailable_shards": int(address.is_replicated),
                    "max_execution_time": self._read_timeout_s * MAX_EXECUTION_SHARE,
                },
            )
        )
        if 0 < found < address.quorum:
            raise StoreUnavailable(f"too few replicas have a batch of {table.name} yet")
        return _Search(bool(found), int(time_ms))


def _shard_of(token: str, shards: int) -> int:
    return crc32(token.encode()) % shards + 1


class _Search(NamedTuple):
    """Whether a batch is stored, and the server's time of the search, in epoch milliseconds."""

    is_found: bool
    time_ms: int


def _operator_error(failure: ClickHouseError, address: ClickHouseAddress) -> OperatorError | None:
    if failure.code == _CLUSTER_DOESNT_EXIST:
        return OperatorError(f'ClickHouse has no cluster "{address.cluster}"')
    if failure.code not in _USER_ERRORS:
        return None
    reason = _USER_ERRORS[failure.code].format(user=address.user)
    return OperatorError(f"ClickHouse: {reason}{failure.grant}")


def _first_row(arrow_stream: bytes) -> RowKey | None:
    with _translate_arrow_errors():
        return first_row(arrow_stream)


def _check_complete(arrow_stream: bytes) -> None:
    with _translate_arrow_errors():
        read_ipc_stream(BytesIO(arrow_stream)).read_all()


@contextlib.contextmanager
def _translate_arrow_errors() -> Generator[None]:
    try:
        yield
    except MemoryError:
        raise  # no fault of the stream
    except Exception as error:  # what arro3 raises has no narrower class
        raise BatchRejected(f"not an Arrow stream of the table: {error}") from error
