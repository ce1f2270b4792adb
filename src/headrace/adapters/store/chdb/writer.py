"""Stores the loader's batches in chDB, and creates and migrates its tables."""

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from headrace.adapters.store.chdb.batches import has_batch, insert_statement, read_batch
from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.files.broken_mutations import remove_broken_mutations
from headrace.adapters.store.chdb.files.deduplication_log import newest_part, sync_log
from headrace.adapters.store.chdb.files.metadata_copy import make_metadata_durable
from headrace.adapters.store.chdb.files.write_order import OrderWrites, order_of_writes
from headrace.adapters.store.chdb.preparation import prepare_tables
from headrace.adapters.store.chdb.rollup import Rollup
from headrace.adapters.store.chdb.table_identity import (
    ensure_identities,
    table_directories,
)
from headrace.adapters.store.dialect.ddl import (
    DATABASE,
    MIGRATIONS,
    Migration,
)
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import insert_error, raising_store_unavailable
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.formats.arrow_batch import ArrowTimes
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES, StoredTable
from headrace.ports.store import ChangeListener, NullChangeListener

_REOPEN_EVERY = 16
"""Reopen the tables at each 16th failure: that is every three minutes at most, and chDB keeps old
parts for eight."""


class ChdbWriter:
    """The `StoreWriter` over chDB; used from one thread, with a connection of its own.

    `rollup` is checked when the tables are prepared or reopened; another thread rebuilds it.
    `order_of_writes` returns what the file system of a directory needs after each batch.
    """

    def __init__(
        self,
        chdb: ChdbInstance,
        *,
        database: str = DATABASE,
        migrations: tuple[Migration, ...] = MIGRATIONS,
        change_listener: ChangeListener | None = None,
        order_of_writes: Callable[[Path], OrderWrites] = order_of_writes,
    ) -> None:
        self._chdb = chdb
        self._database = database
        self._migrations = migrations
        self._change_listener = change_listener or NullChangeListener()
        self.rollup = Rollup(chdb, database=database)
        self._session: ChdbSession | None = None
        self._stop_requested = False
        self._failures = 0
        self._failures_of_tokens: Counter[str] = Counter()
        self._directories: dict[str, Path] = {}
        self._find_order_of_writes = order_of_writes
        self._order_writes: OrderWrites | None = None

    def prepare(self) -> None:
        """Create or migrate the tables. Safe to call at every start.

        Raises `OperatorError` when a newer Headrace wrote them, else `StoreUnavailable`.
        """
        with raising_store_unavailable(f"cannot prepare the store {self._chdb.directory}"):
            self._chdb.execute(f"CREATE DATABASE IF NOT EXISTS `{self._database}`")
            session = self._open_session()
            prepare_tables(self._chdb, session, self._migrations, database=self._database)
            self.rollup.check()
            self._make_durable()

    def _make_durable(self) -> None:
        """Name the tables, and sync what chDB leaves to the system: nothing is loaded before.

        Raises `ClickHouseError` or `OSError`.
        """
        self._directories.update(table_directories(self._chdb, self._database))
        ensure_identities(self._directories)
        make_metadata_durable(self._chdb.directory, self._database)

    def shards(self) -> int | None:
        """Return None: the store is in one process."""
        return None

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,  # noqa: ARG002 - it has none
        first_attempt: bool = False,
    ) -> None:
        """Store a batch; see `StoreWriter.insert`. Up to a million rows are one part."""
        stored = STORAGE_TABLES[table.name]
        with self._counting_failures(token):
            self._insert(stored, arrow_stream, token, first_attempt=first_attempt)

    def _insert(
        self, stored: StoredTable, arrow_stream: bytes, token: str, *, first_attempt: bool
    ) -> None:
        with raising_store_unavailable("cannot sync the store"):
            try:
                self._insert_once(stored, arrow_stream, token, first_attempt=first_attempt)
                self._sync_stored_batch(stored)
                self._reopen_after_failures()
            except ClickHouseError as failure:
                error = insert_error(failure)
                if isinstance(error, StoreUnavailable):
                    self._close_session()
                raise error from failure

    def reopen(self) -> None:
        """Detach and attach all tables: chDB then sets broken parts aside and may restore sources.

        Called between two inserts, on their thread. Raises `StoreUnavailable`.
        """
        with raising_store_unavailable():
            self._reopen_all()

    def request_stop(self) -> None:
        """Reject every batch after the running one; from any thread, before `close`."""
        self._stop_requested = True

    def close(self) -> None:
        """Close the connection. No insert may run meanwhile. May be called twice."""
        self.request_stop()
        self._close_session()

    def _open_session(self) -> ChdbSession:
        if self._stop_requested:
            raise StoreUnavailable("the store is closing")
        if self._session is None:
            self._session = self._chdb.session(self._database, writable=True)
        return self._session

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    @contextlib.contextmanager
    def _counting_failures(self, token: str) -> Generator[None]:
        try:
            yield
            del self._failures_of_tokens[token]
        except StoreUnavailable:
            if not self._stop_requested and self._failures % _REOPEN_EVERY == 0:
                with contextlib.suppress(StoreUnavailable, ClickHouseError):
                    self._reopen_all()
            self._failures += 1
            self._failures_of_tokens[token] += 1
            raise

    def _reopen_after_failures(self) -> None:
        if self._failures:
            self._reopen_all()
            self._failures = 0

    def _reopen_all(self) -> None:
        """Reopen all tables, so that chDB sets aside their broken parts, merged ones included.

        On a full disk a merge can leave a broken part, too. chDB restores the sources of a merge
        while it still has them, for `old_parts_lifetime`: so the tables are reopened while the
        failures last, and after them.
        """
        for table in STORAGE_TABLES.values():
            self._reopen(self._open_session(), table)

    def _insert_once(
        self, table: StoredTable, arrow_stream: bytes, token: str, *, first_attempt: bool
    ) -> None:
        """Insert a batch unless it is stored, and verify that it is stored afterwards.

        chDB reports success for a part that it could not commit. It also writes a token just
        before the part: a crash or a full disk in between leaves a token without rows, which
        rejects every retry as a duplicate. The second attempt therefore uses another token, and
        each retry another one again: on a full disk both may be left without rows. Retries are
        counted for each token, because a retry of a load stores other tables before this one.
        Raises `StoreUnavailable` where the second attempt fails, too.
        """
        batch = read_batch(table, arrow_stream)
        if batch is None:
            return
        times = ArrowTimes(table.name, arrow_stream)
        with self._change_listener.rows_changing(batch.websites, times):
            if not first_attempt and self._find_batch(table, batch.first_row):
                return
            for attempt in (token, f"{token}-again-{self._failures_of_tokens[token]}"):
                statement = insert_statement(table.name, batch.columns, attempt)
                self._open_session().insert(statement, arrow_stream)
                if self._find_inserted_batch(table, batch.first_row):
                    return
            raise StoreUnavailable(f"chDB did not keep a batch of {table.name}")

    def _find_inserted_batch(self, table: StoredTable, row: Mapping[str, object]) -> bool:
        """Search the newest part, and all parts where that does not contain the batch.

        Searching all parts takes several times as long, and longer with each part.
        """
        part = newest_part(self._deduplication_log(table.name))
        if part is not None:
            with contextlib.suppress(ClickHouseError):  # `_find_batch` meets it, too, and repairs
                if has_batch(self._open_session(), table, row, part=part):
                    return True
        return self._find_batch(table, row)

    def _find_batch(self, table: StoredTable, row: Mapping[str, object]) -> bool:
        """Search a batch's first row; where the search fails, reopen the table and repeat it."""
        session = self._open_session()
        with contextlib.suppress(ClickHouseError):
            return has_batch(session, table, row)
        self._reopen(session, table)
        with raising_store_unavailable(f"cannot read {table.name}"):  # it blames no row
            return has_batch(session, table, row)

    def _reopen(self, session: ChdbSession, table: StoredTable) -> None:
        """Detach and attach a table: chDB sets broken parts aside when it opens a table.

        On a full disk it keeps parts that it could not write completely, and every select that
        meets one fails. The log still has their rows: an offset is committed only after the rows
        of its batch were read back.
        """
        get_logger().error("table_reopened", table=table.name)
        with raising_store_unavailable(f"cannot reopen {table.name}"):
            with (
                self._change_listener.all_rows_changing(),
                self.rollup.reopening(),
                self._chdb.detachments.detaching(table.name),
            ):
                self._detach_and_attach(session, table.name)
            self._make_durable()
        self._chdb.log_broken_parts()

    def _detach_and_attach(self, session: ChdbSession, table: str) -> None:
        directory = self._directory(table)
        with contextlib.suppress(ClickHouseError):  # an earlier attempt may have detached it
            session.execute(f"DETACH TABLE `{self._database}`.`{table}` SYNC")
        if removed := remove_broken_mutations(directory):
            self._chdb.detachments.note_lost_deletions(removed)
            get_logger().error("broken_mutations_removed", table=table, mutations=removed)
        session.execute(f"ATTACH TABLE IF NOT EXISTS `{self._database}`.`{table}`")

    def _sync_stored_batch(self, table: StoredTable) -> None:
        """Sync what ClickHouse leaves to the system, before the batch counts as stored.

        A power cut within some seconds could else store a retried batch twice, since its token was
        lost, or take its part where nothing orders the removal of older parts before it.
        """
        sync_log(self._deduplication_log(table.name))
        if self._order_writes is None:
            self._order_writes = self._find_order_of_writes(self._chdb.directory)
        self._order_writes()

    def _deduplication_log(self, table: str) -> Path:
        return self._directory(table) / "deduplication_logs"

    def _directory(self, table: str) -> Path:
        """Return the directory of a table, which is known from when it was attached."""
        if table not in self._directories:
            self._directories.update(table_directories(self._chdb, self._database))
        return self._directories[table]
