"""Makes and changes the tables on servers of ClickHouse, where that is not done yet."""

from collections.abc import Mapping, Sequence
from typing import Final

from millrace.adapters.clickhouse.address import ClickHouseAddress
from millrace.adapters.clickhouse.connection import BlockingClient, query_rows
from millrace.adapters.clickhouse.layout import (
    create_databases,
    create_version_table,
    distribute_tables,
    distributed_names,
    local_statements,
)
from millrace.adapters.sql.ddl import (
    VERSION_TABLE,
    Migration,
    pending_migrations,
    record_version,
)
from millrace.adapters.sql.parameters import encode_parameters
from millrace.base.errors import StoreUnavailable

_SHOWN_CHARACTERS: Final = 100
_VERSION: Final = f"SELECT max(version) FROM `{{database}}`.`{VERSION_TABLE}`"  # noqa: S608 - our own names
_COLUMNS: Final = (
    "SELECT table, toString(arraySort(groupArray((position, name, type)))) FROM system.columns "
    "WHERE database = {database:String} GROUP BY table"
)


class Preparation:
    """Brings the tables of an address to the newest layout; used from one thread.

    Every step may be run twice, and by several machines at once. Where all is done it only looks: a
    statement for all nodes of a cluster fails while one of them is away, and a machine must be able
    to start, and to load again after a failure, without that replica.
    """

    def __init__(self, address: ClickHouseAddress, migrations: tuple[Migration, ...]) -> None:
        self._address = address
        self._migrations = migrations
        self._refusing = False
        self.statement = ""

    def refuse(self) -> None:
        """Run no further statement; from any thread."""
        self._refusing = True

    def prepare(self, client: BlockingClient) -> None:
        """Do what is left to do through one host; what needs no Keeper is done on that host alone.

        Raises `OperatorError` when a newer Millrace wrote the tables, `StoreUnavailable` after
        `refuse`, or what the client raises.
        """
        client.database = "default"
        found = self._version(client)
        if pending_migrations(found, self._migrations) or not self._is_distributed(client):
            self._make(client)
        client.database = self._address.database

    def _make(self, client: BlockingClient) -> None:
        address = self._address
        self._run(client, create_databases(address))
        client.database = address.local_database
        self._run(client, [create_version_table(address)])
        for migration in pending_migrations(self._version(client), self._migrations):
            if self._version(client) < migration.version:  # another machine may be quicker
                statements = local_statements(address, migration)
                self._run(client, [*statements, record_version(migration)])
        anew = bool(self._columns(client, address.database)) and not self._is_distributed(client)
        self._run(client, distribute_tables(address, self._migrations, anew=anew))

    def _version(self, client: BlockingClient) -> int:
        """Return the version of what stands on this host; 0 where nothing does."""
        database = self._address.local_database
        if VERSION_TABLE not in self._columns(client, database):
            return 0
        ((version,),) = query_rows(client, _VERSION.format(database=database))
        return int(version)

    def _is_distributed(self, client: BlockingClient) -> bool:
        """Tell whether every distributed table is there, and has the columns of what it is over."""
        address = self._address
        if not address.cluster:
            return True
        local = self._columns(client, address.local_database)
        distributed = self._columns(client, address.database)
        return all(
            name in local and distributed.get(name) == local[name]
            for name in distributed_names(self._migrations)
        )

    def _columns(self, client: BlockingClient, database: str) -> Mapping[str, str]:
        """Return the columns of each table of a database, as one text."""
        parameters = encode_parameters({"database": database})
        return dict(query_rows(client, _COLUMNS, parameters))

    def _run(self, client: BlockingClient, statements: Sequence[str]) -> None:
        for statement in statements:
            if self._refusing:
                raise StoreUnavailable("the store is closing")
            self.statement = " ".join(statement.split())[:_SHOWN_CHARACTERS]
            client.command(statement)
