"""Creates and migrates the tables on ClickHouse servers, where they are not current yet."""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import SyncClient, query_rows
from headrace.adapters.store.clickhouse.layout import (
    create_databases,
    create_version_table,
    distribute_tables,
    distributed_names,
    local_target,
    system_table,
)
from headrace.adapters.store.clickhouse.missing_tables import create_missing_tables
from headrace.adapters.store.dialect.ddl import (
    VERSION_TABLE,
    Migration,
    pending_migrations,
    record_versions,
)
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.statements import AlterTable, Statement, render
from headrace.base.errors import OperatorError, StoreUnavailable

_SHOWN_CHARACTERS: Final = 100
_VERSION: Final = f"SELECT max(version) FROM `{{database}}`.`{VERSION_TABLE}`"  # noqa: S608 - our own names
_POLL_S: Final = 1.0
_RUNNING_MUTATIONS: Final = (
    "SELECT count(), countIf(latest_fail_reason != '') FROM {mutations} "
    "WHERE database = {{database:String}} AND table = {{table:String}} "
    "AND position(command, {{command:String}}) > 0 AND NOT is_done"
)
_ENGINE: Final = (
    "SELECT engine FROM system.tables WHERE database = {database:String} AND name = {table:String}"
)
_COLUMNS: Final = (
    "SELECT table, toString(arraySort(groupArray((position, name, type)))) FROM system.columns "
    "WHERE database = {database:String} GROUP BY table"
)


class SchemaMigrator:
    """Brings the tables of an address to the newest layout; used from one thread.

    Every step may be run twice, and by several machines at once. Where the layout is current it
    only reads: a statement for all nodes of a cluster fails while one of them is away, and a
    machine must be able to start, and to load again after a failure, without that replica.
    """

    def __init__(self, address: ClickHouseAddress, migrations: tuple[Migration, ...]) -> None:
        self._address = address
        self._migrations = migrations
        self._stop_requested = threading.Event()
        self.statement = ""

    def request_stop(self) -> None:
        """Run no further statement; from any thread."""
        self._stop_requested.set()

    def prepare(self, client: SyncClient) -> None:
        """Run the pending steps through one host; without Keeper they change that host alone.

        Raises `OperatorError` when a newer Headrace wrote the tables, or they are of one server and
        the address names a cluster, or the other way round; `StoreUnavailable` after
        `request_stop`, or what the client raises.
        """
        client.database = "default"
        self._check_engine(client)
        if self._address.is_replicated:
            names = distributed_names(self._migrations)
            create_missing_tables(client, self._address, names)
        current_version = self._version(client)
        if pending_migrations(current_version, self._migrations) or not self._is_distributed(
            client
        ):
            self._migrate(client)
        client.database = self._address.database

    def _check_engine(self, client: SyncClient) -> None:
        """Check that the tables are distributed where there is a cluster, and only there.

        Else each host would have its own rows, or nothing could be stored.
        """
        database, cluster = self._address.database, self._address.cluster
        names = encode_parameters({"database": database, "table": VERSION_TABLE})
        found = query_rows(client, _ENGINE, names)
        if not found or (found[0][0] == "Distributed") == bool(cluster):
            return
        if cluster:
            raise OperatorError(
                f'the database "{database}" of ClickHouse has the tables of one server: with the '
                "option cluster the URL needs another database"
            )
        raise OperatorError(
            f'the tables of the database "{database}" of ClickHouse are distributed over a '
            "cluster: the URL needs the option cluster"
        )

    def _migrate(self, client: SyncClient) -> None:
        address = self._address
        self._run_all(client, create_databases(address))
        client.database = address.local_database
        self._run(client, create_version_table(address))
        for migration in pending_migrations(self._version(client), self._migrations):
            if self._version(client) < migration.version:  # another machine may be quicker
                for statement in migration.statements:
                    self._apply(client, statement)
                self._run(client, record_versions(migration))
        replace_existing = bool(
            self._columns(client, address.database)
        ) and not self._is_distributed(client)
        self._run_all(
            client, distribute_tables(address, self._migrations, replace_existing=replace_existing)
        )

    def _version(self, client: SyncClient) -> int:
        """Return the version of the tables on this host; 0 where there are none."""
        database = self._address.local_database
        if VERSION_TABLE not in self._columns(client, database):
            return 0
        ((version,),) = query_rows(client, _VERSION.format(database=database))
        return int(version)

    def _is_distributed(self, client: SyncClient) -> bool:
        """Return whether every distributed table exists and has the columns of its local one."""
        address = self._address
        if not address.cluster:
            return True
        local = self._columns(client, address.local_database)
        distributed = self._columns(client, address.database)
        return all(
            name in local and distributed.get(name) == local[name]
            for name in distributed_names(self._migrations)
        )

    def _columns(self, client: SyncClient, database: str) -> Mapping[str, str]:
        """Return the columns of each table of a database, as one text."""
        parameters = encode_parameters({"database": database})
        return dict(query_rows(client, _COLUMNS, parameters))

    def _apply(self, client: SyncClient, statement: Statement) -> None:
        sql = render(statement, local_target(self._address))
        self._announce(sql)
        if isinstance(statement, AlterTable) and statement.is_mutation:
            self._wait_for_running_mutation(client, statement)
        client.command(sql)

    def _run_all(self, client: SyncClient, statements: Sequence[str]) -> None:
        for statement in statements:
            self._run(client, statement)

    def _run(self, client: SyncClient, sql: str) -> None:
        self._announce(sql)
        client.command(sql)

    def _announce(self, sql: str) -> None:
        """Publish the next statement in `statement`. Raises `StoreUnavailable` after a stop."""
        self._check_not_stopped()
        self.statement = " ".join(sql.split())[:_SHOWN_CHARACTERS]

    def _wait_for_running_mutation(self, client: SyncClient, mutation: AlterTable) -> None:
        """Wait while the same mutation runs already, however long that takes.

        A server continues a mutation after its client has timed out. A second one would rewrite
        all parts once more after the first. Raises `StoreUnavailable`.
        """
        while self._is_mutation_running(client, mutation):
            self._stop_requested.wait(_POLL_S)
            self._check_not_stopped()

    def _is_mutation_running(self, client: SyncClient, mutation: AlterTable) -> bool:
        sql = _RUNNING_MUTATIONS.format(mutations=system_table(self._address, "mutations"))
        parameters = {
            "database": self._address.local_database,
            "table": mutation.name,
            "command": mutation.change,
        }
        ((running, failing),) = query_rows(client, sql, encode_parameters(parameters))
        if failing:
            raise StoreUnavailable(
                f"ClickHouse fails at {mutation.change}: see latest_fail_reason in system.mutations"
            )
        return bool(running)

    def _check_not_stopped(self) -> None:
        if self._stop_requested.is_set():
            raise StoreUnavailable("the store is closing")
