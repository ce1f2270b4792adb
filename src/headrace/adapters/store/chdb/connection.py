"""Opens the store directory with chDB and opens connections to it.

The only module that imports chdb, and only when a store is opened: the import takes 200 MiB, and a
process that has imported it must not fork.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, cast

from headrace.adapters.data_dir.files import create_private_directory
from headrace.adapters.store.chdb.detachments import Detachments
from headrace.adapters.store.chdb.files.broken_mutations import (
    directories_of_tables,
    remove_broken_mutations,
)
from headrace.adapters.store.chdb.files.metadata_copy import restore_metadata
from headrace.adapters.store.chdb.files.misplaced_names import (
    closing_durably,
    lock_file,
    separate_names,
)
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.errors import (
    ClickHouseError,
    parse_error,
    query_error,
)
from headrace.adapters.store.dialect.parameters import (
    EncodedParameters,
    encode_parameters,
    quote_literal,
)
from headrace.adapters.store.dialect.results import (
    READER_SETTINGS,
    RESULT_FORMAT,
    decode_rows,
)
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.base.logs import Logger
from headrace.ports.store import QueryLimits

MEMORY_SHARE: Final = 0.7
"""Share of the machine's or container's memory that chDB may use; workers need the rest."""


class _QueryResult(Protocol):
    def bytes(self) -> bytes: ...


class _Inserter(Protocol):
    def append(self, data: bytes) -> None: ...
    def finish(self) -> object: ...
    def cancel(self) -> None: ...


class _ChdbConnection(Protocol):
    """The part of chdb's connection that is used here: chdb has types for some of it only."""

    def query(self, query: str, format: str, params: dict[str, str]) -> _QueryResult: ...  # noqa: A002
    def send_insert(self, query: str, format: str) -> _Inserter: ...  # noqa: A002
    def close(self) -> None: ...


class ChdbSession:
    """One connection; any thread may use it, one at a time."""

    def __init__(self, connection: _ChdbConnection, *, memory_ceiling: int) -> None:
        self._connection = connection
        self._memory_ceiling = memory_ceiling

    def execute(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[list[Any]]:
        """Run an internal statement and return its rows. Raises `ClickHouseError`."""
        return decode_rows(self._query(statement, encode_parameters(parameters or {})))

    def select(
        self, sql: str, parameters: EncodedParameters, limits: QueryLimits, query_id: str
    ) -> bytes:
        """Run one SELECT and return its rows in the format that `decode_rows` reads.

        `query_id` names it for `ChdbInstance.kill`. Raises `QueryTimedOut`, `QueryTooLarge`,
        `StoreUnavailable` when it was killed or all memory is in use, else `ClickHouseError`.
        """
        memory = min(limits.max_memory_bytes, self._memory_ceiling)
        limited = (  # not by SET: it is a statement of its own and takes half a millisecond
            f"{sql}\nSETTINGS max_execution_time = {limits.timeout_s:f}, "
            f"max_memory_usage = {memory:d}, max_result_rows = {limits.max_rows:d}, "
            f"log_comment = {quote_literal(query_id)}"
        )
        try:
            return self._query(limited, parameters)
        except ClickHouseError as failure:
            error = query_error(failure)
            if error is None:
                raise
            raise error from failure

    def insert(self, statement: str, arrow_stream: bytes) -> None:
        """Run an INSERT with an Arrow IPC stream as its rows. Raises `ClickHouseError`.

        Returning does not promise that the rows are stored: chDB 4.4 reports success for a part
        that it could not commit, for example on a full disk. The caller must look for the rows.
        """
        with _translate_chdb_errors():
            inserter = self._connection.send_insert(statement, "ArrowStream")
            try:
                inserter.append(arrow_stream)
                inserter.finish()
            finally:
                inserter.cancel()  # does nothing after `finish`

    def fetch(self, sql: str, parameters: EncodedParameters, result_format: str) -> bytes:
        """Run an internal SELECT and return its rows in a ClickHouse format.

        Raises `ClickHouseError`.
        """
        try:
            with _translate_chdb_errors():
                return self._connection.query(sql, result_format, parameters).bytes()
        except ClickHouseError:
            self._discard_output()
            raise

    def close(self) -> None:
        """Close the connection. No call may run meanwhile. May be called twice."""
        self._connection.close()

    def _discard_output(self) -> None:
        """Discard what a failed statement has written: else the next result begins with it."""
        with contextlib.suppress(RuntimeError):
            self._connection.query("SELECT 1", RESULT_FORMAT, {})

    def _query(self, sql: str, parameters: EncodedParameters) -> bytes:
        return self.fetch(sql, parameters, RESULT_FORMAT)


class ChdbInstance:
    """One store directory, opened by this process alone. Its methods may be called from any thread.

    chDB opens one directory per process: a second one cannot be open at the same time.
    `directory` is the absolute path.
    """

    def __init__(self, directory: Path, *, log: Logger) -> None:
        self.directory = directory.absolute()  # importing chdb changes the directory temporarily
        self._log = log
        self._control: ChdbSession | None = None
        self._control_lock = threading.Lock()
        self._memory_ceiling = 0
        self.detachments = Detachments()

    def open(self) -> None:
        """Import chdb and open the directory, which is created if missing; takes about 0.3 s.

        Raises `OperatorError` when another process has it open or it cannot be opened.
        """
        _check_path(str(self.directory))
        try:
            create_private_directory(self.directory)
            self._repair_files()
            self._control = self._connect(f"max_server_memory_usage_to_ram_ratio={MEMORY_SHARE}")
        except OSError as error:
            raise OperatorError(
                f"cannot create the store directory {self.directory}: {system_reason(error)}"
            ) from error
        except RuntimeError as error:
            raise self._open_error() from error
        self._memory_ceiling = self._query_memory_limit()
        self.log_broken_parts()

    def session(self, database: str = DATABASE, *, writable: bool = False) -> ChdbSession:
        """Open a connection to a database, read-only unless `writable`; takes 0.5 ms."""
        session = self._connect("" if writable else "mode=ro")
        session.execute(f"USE `{database}`")
        if not writable:
            settings = (
                f"{name} = {quote_literal(value)}" for name, value in READER_SETTINGS.items()
            )
            session.execute(f"SET {', '.join(settings)}")
        return session

    def execute(self, statement: str) -> list[list[Any]]:
        """Run a short internal statement on the control connection. Raises `ClickHouseError`."""
        with self._control_lock:
            if self._control is None:
                raise StoreUnavailable("the store is closed")
            return self._control.execute(statement)

    def kill(self, query_id: str) -> None:
        """Request the end of a running select, which ends at its next block. Safe to repeat."""
        self.execute(f"KILL QUERY WHERE Settings['log_comment'] = {quote_literal(query_id)} ASYNC")

    def close(self) -> None:
        """Close the store. All sessions must be closed before. May be called twice."""
        with self._control_lock:
            if self._control is not None:
                with closing_durably(self.directory):
                    self._control.close()
                self._control = None

    def _connect(self, options: str) -> ChdbSession:
        # chDB cannot be imported where TZ is a rule, such as CET-1CEST, and not the name of a file.
        os.environ["TZ"] = "UTC"
        # Its import creates a directory there, and fails where TMPDIR or /tmp cannot be written.
        os.environ["TMPDIR"] = tempfile.gettempdir()
        from chdb.state.sqlitelike import Connection  # noqa: PLC0415 - see the module docstring

        connection = Connection(f"{self.directory}?{options}" if options else str(self.directory))
        return ChdbSession(cast("_ChdbConnection", connection), memory_ceiling=self._memory_ceiling)

    def _repair_files(self) -> None:
        """Repair what chDB would stop at, or silently open an empty store for. Raises `OSError`."""
        if _is_locked(lock_file(self.directory)):
            return
        if separated := separate_names(self.directory):
            self._log.error("store_names_separated", paths=separated)
        if restored := restore_metadata(self.directory):
            self._log.error("store_metadata_restored", paths=restored)
        if removed := sum(map(remove_broken_mutations, directories_of_tables(self.directory))):
            self._log.error("broken_mutations_removed", mutations=removed)

    def _open_error(self) -> OperatorError:
        """Find the cause by the lock file: chDB's error does not name one."""
        if _is_locked(lock_file(self.directory)):
            return OperatorError(f"the store {self.directory} is in use by another process")
        return OperatorError(
            f"cannot open the store {self.directory}: chDB has written the reason to standard "
            "error; if a file is damaged, restore a backup"
        )

    def _query_memory_limit(self) -> int:
        """Return half of chDB's memory limit.

        A query that needed all of it would fail as "all memory in use", be retried, and fail again.
        """
        ((limit,),) = self.execute(
            "SELECT toUInt64(value) FROM system.server_settings "
            "WHERE name = 'max_server_memory_usage' "
            "SETTINGS output_format_json_quote_64bit_integers = 0"
        )
        return int(limit) // 2

    def log_broken_parts(self) -> None:
        """Log the parts that chDB has detached because it could not read them."""
        rows = self.execute(
            "SELECT database, table, name, reason FROM system.detached_parts "
            "WHERE startsWith(reason, 'broken') ORDER BY ALL"
        )
        for database, table, name, reason in rows:
            self._log.error(
                "broken_part_set_aside", database=database, table=table, part=name, reason=reason
            )


@contextlib.contextmanager
def _translate_chdb_errors() -> Generator[None]:
    try:
        yield
    except RuntimeError as error:
        raise parse_error(str(error)) from None  # the message may hold values of a caller


def _check_path(path: str) -> None:
    """Raise `OperatorError` for a path that chDB cannot open: it takes a URL in UTF-8."""
    if "?" in path:
        raise OperatorError(f"the path of the store {path} must not have a '?'")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise OperatorError(f"the path of the store {path!r} must be UTF-8") from error


def _is_locked(file: Path) -> bool:
    try:
        with file.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
