"""Stores the loader's batches in chDB, and creates and migrates its tables."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.deduplication_log import newest_part, sync_log
from headrace.adapters.store.chdb.preparation import prepare_tables
from headrace.adapters.store.chdb.rollup import Rollup
from headrace.adapters.store.chdb.table_identity import (
    ensure_identities,
    sync_store_files,
    table_directories,
)
from headrace.adapters.store.dialect.ddl import (
    DATABASE,
    MIGRATIONS,
    Migration,
)
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import insert_error, raising_store_unavailable
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.base.errors import StoreUnavailable
from headrace.base.telemetry import get_logger
from headrace.formats.arrow_batch import ArrowTimes, inserted_columns, read_batch_metadata
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES, StoredTable
from headrace.ports.store import BatchRejected, ChangeListener, NullChangeListener

_REOPEN_EVERY = 16
"""Reopen the tables at each 16th failure: that is every three minutes at most, and chDB keeps old
parts for eight."""

_NO_SUCH_PART = 232
_CORRUPTED = 246


class ChdbWriter:
    """The `StoreWriter` over chDB; used from one thread, with a connection of its own.

    `rollup` is checked when the tables are prepared or reopened; another thread rebuilds it.
    """

    def __init__(
        self,
        chdb: ChdbInstance,
        *,
        database: str = DATABASE,
        migrations: tuple[Migration, ...] = MIGRATIONS,
        change_listener: ChangeListener | None = None,
    ) -> None:
        self._chdb = chdb
        self._database = database
        self._migrations = migrations
        self._change_listener = change_listener or NullChangeListener()
        self.rollup = Rollup(chdb, database=database)
        self._session: ChdbSession | None = None
        self._stop_requested = False
        self._failures = 0
        self._deduplication_logs: dict[str, Path] = {}

    def prepare(self) -> None:
        """Create or migrate the tables. Safe to call at every start.

        Raises `OperatorError` when a newer Headrace wrote them, else `StoreUnavailable`.
        """
        with raising_store_unavailable("cannot prepare the store"):
            self._chdb.execute(f"CREATE DATABASE IF NOT EXISTS `{self._database}`")
            session = self._open_session()
            prepare_tables(self._chdb, session, self._migrations, database=self._database)
            self.rollup.check()
            self._make_durable()

    def _make_durable(self) -> None:
        """Name the tables, and sync what chDB leaves to the system: nothing is loaded before.

        Raises `ClickHouseError` or `OSError`.
        """
        ensure_identities(table_directories(self._chdb, self._database))
        sync_store_files(self._chdb.directory)

    def insert(
        self, table: Table, arrow_stream: bytes, *, token: str, first_attempt: bool = False
    ) -> None:
        """Store a batch; see `StoreWriter.insert`. Up to a million rows are one part."""
        stored = STORAGE_TABLES[table.name]
        with self._counting_failures():
            self._insert(stored, arrow_stream, token, first_attempt=first_attempt)

    def _insert(
        self, stored: StoredTable, arrow_stream: bytes, token: str, *, first_attempt: bool
    ) -> None:
        with raising_store_unavailable("cannot sync the store"):
            try:
                self._insert_once(stored, arrow_stream, token, first_attempt=first_attempt)
                self._sync_deduplication_log(stored)
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
    def _counting_failures(self) -> Generator[None]:
        try:
            yield
        except StoreUnavailable:
            if not self._stop_requested and self._failures % _REOPEN_EVERY == 0:
                with contextlib.suppress(StoreUnavailable, ClickHouseError):
                    self._reopen_all()
            self._failures += 1
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
        rejects every retry as a duplicate. The second attempt therefore uses another token.
        Raises `StoreUnavailable` where that fails, too.
        """
        batch = _read_batch(table, arrow_stream)
        if batch is None:
            return
        times = ArrowTimes(table.name, arrow_stream)
        with self._change_listener.rows_changing(batch.websites, times):
            if not first_attempt and self._find_batch(table, batch.first_row):
                return
            for attempt in (token, f"{token}-again"):
                statement = _insert_statement(table.name, batch.columns, attempt)
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
                if _has_batch(self._open_session(), table, row, part=part):
                    return True
        return self._find_batch(table, row)

    def _find_batch(self, table: StoredTable, row: Mapping[str, object]) -> bool:
        """Search a batch's first row; where the search fails, reopen the table and repeat it."""
        session = self._open_session()
        with contextlib.suppress(ClickHouseError):
            return _has_batch(session, table, row)
        self._reopen(session, table)
        with raising_store_unavailable(f"cannot read {table.name}"):  # it blames no row
            return _has_batch(session, table, row)

    def _reopen(self, session: ChdbSession, table: StoredTable) -> None:
        """Detach and attach a table: chDB sets broken parts aside when it opens a table.

        On a full disk it keeps parts that it could not write completely, and every select that
        meets one fails. The log still has their rows: an offset is committed only after the rows
        of its batch were read back.
        """
        get_logger().error("table_reopened", table=table.name)
        with raising_store_unavailable(f"cannot reopen {table.name}"):
            with self._change_listener.all_rows_changing(), self.rollup.reopening():
                self._detach_and_attach(session, table.name)
            self._make_durable()
        self._chdb.log_broken_parts()

    def _detach_and_attach(self, session: ChdbSession, table: str) -> None:
        with contextlib.suppress(ClickHouseError):  # an earlier attempt may have detached it
            session.execute(f"DETACH TABLE `{self._database}`.`{table}` SYNC")
        session.execute(f"ATTACH TABLE IF NOT EXISTS `{self._database}`.`{table}`")

    def _sync_deduplication_log(self, table: StoredTable) -> None:
        """Fsync the token of the stored batch, too: ClickHouse leaves that to the system.

        Otherwise a power cut within some seconds could store a retried batch twice.
        """
        sync_log(self._deduplication_log(table.name))

    def _deduplication_log(self, table: str) -> Path:
        if table not in self._deduplication_logs:
            ((paths,),) = self._chdb.execute(
                f"SELECT data_paths FROM system.tables WHERE name = {quote_literal(table)} "  # noqa: S608 - ours
                f"AND database = {quote_literal(self._database)}"
            )
            self._deduplication_logs[table] = Path(paths[0], "deduplication_logs")
        return self._deduplication_logs[table]


def _insert_statement(table: str, columns: Sequence[str], token: str) -> str:
    column_list = ", ".join(f"`{column}`" for column in columns)
    return (
        f"INSERT INTO `{table}` ({column_list}) SETTINGS "
        "async_insert = 0, "  # on by default
        "input_format_null_as_default = 0, "
        "input_format_arrow_allow_missing_columns = 0, "
        f"insert_deduplication_token = {quote_literal(token)}"
    )


def _has_batch(
    session: ChdbSession, table: StoredTable, row: Mapping[str, object], *, part: str | None = None
) -> bool:
    """Return whether the first row of a batch is stored. A batch is one part: all of it, or none.

    Row ids depend on the log offset alone, so every attempt of a batch has the same ones. `part`
    limits the search to one part. Raises `ClickHouseError` where the part is damaged.
    """
    part_condition = "" if part is None else f"_part = {quote_literal(part)} AND "
    sql = (
        f"SELECT _part FROM `{table.name}` WHERE {part_condition}website_id = {{website:String}} "  # noqa: S608 - our own name
        "AND time = fromUnixTimestamp64Milli({time:Int64}, 'UTC') AND hex(id) = {id:String} LIMIT 1"
    )
    for (found,) in session.execute(sql, row):
        _check_part(session, table, found)
        return True
    return False


def _check_part(session: ChdbSession, table: StoredTable, part: str) -> None:
    """Compare a part with its checksums; a part that was merged meanwhile was intact."""
    check = f"CHECK TABLE `{table.name}` PART {quote_literal(part)}"
    try:
        ((is_intact,),) = session.execute(f"{check} SETTINGS check_query_single_value_result = 1")
    except ClickHouseError as failure:
        if failure.code == _NO_SUCH_PART:
            return
        raise
    if not is_intact:
        raise ClickHouseError(_CORRUPTED, "CORRUPTED_DATA")


class _Batch(Struct, frozen=True):
    """The key of a batch's first row, the websites of its rows, and the names of its columns."""

    first_row: Mapping[str, object]
    websites: list[str]
    columns: list[str]


def _read_batch(table: StoredTable, arrow_stream: bytes) -> _Batch | None:
    """Read a stream's metadata; None for a stream without rows. Raises `BatchRejected`."""
    try:
        metadata = read_batch_metadata(arrow_stream)
        columns = inserted_columns(table, arrow_stream)
    except MemoryError:
        raise  # no fault of the stream
    except Exception as error:  # what arro3 raises has no narrower class
        raise BatchRejected(f"not an Arrow stream of the table: {error}") from error
    if metadata is None:
        return None
    first = metadata.first
    row = {"website": first.website_id, "time": first.time_ms, "id": first.row_id.hex().upper()}
    return _Batch(row, sorted(metadata.websites), columns)
