"""Opens the directory's database. All differences between SQLite and PostgreSQL are here."""

import contextlib
import os
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from headrace.adapters.data_dir.files import create_file_durably, create_private_directory
from headrace.base.errors import OperatorError, system_reason
from headrace.ports.directory import ChangeMarker

_BUSY_TIMEOUT_S = 10
_BEGIN_OPTION = "headrace_begin"

_SQLITE_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    # Deleted salts and keys are overwritten with zeros, not only unlinked.
    "PRAGMA secure_delete = ON",
    # Changes are rare, so the rollback journal is fast enough. It is kept and not deleted, because
    # it has old pages (salts!): `scrub` overwrites them, which needs a file.
    "PRAGMA journal_mode = PERSIST",
    # A revoked key stays revoked after a power cut.
    "PRAGMA synchronous = EXTRA",
)

_POSTGRESQL_CONNECT_ARGS: Mapping[str, object] = {
    # A hanging server is detected within seconds. The snapshot in memory is used meanwhile.
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
    "prepare_threshold": None,  # behind a pooler each transaction may have another connection
}
"""Defaults of libpq's and the driver's arguments; the URL's query overrides each of them."""

_POSTGRESQL_POOL_SIZE = 2
"""Per process, with as many in overflow: one thread polls, another fetches the day's salt."""

_VACUUM_ATTEMPTS = 10
_VACUUM_PAUSE_S = 0.05
"""Longer than the reads of other processes take. Callers try again later."""

_READ_TIMEOUT = "SET LOCAL statement_timeout = '5s'"
_WRITE_TIMEOUT = "SET LOCAL lock_timeout = '30s'"

# An arbitrary number that nothing else in the same PostgreSQL database uses.
_POSTGRESQL_SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(6453298717)"


class DirectoryDatabase(Struct, frozen=True):
    """The directory's database: two engines over one connection pool, and its own statements.

    `label` names it in messages, without a password. A transaction of `read_engine` reads one
    snapshot. One of `write_engine` reads the latest committed data and, once it has written, blocks
    other writers. `schema_lock` is the statement that a schema migration must run first; None where
    the beginning of a write locks the database. `scrub` removes what was deleted from a table, by
    its name, from the database's files; it raises what SQLAlchemy raises, `OSError`, or
    `OperatorError` while the table is in use.
    `change_marker` is that of `Directory`.
    """

    label: str
    read_engine: Engine
    write_engine: Engine
    schema_lock: str | None
    scrub: Callable[[str], None]
    change_marker: Callable[[], ChangeMarker]


@contextlib.contextmanager
def translate_directory_errors(label: str) -> Generator[None]:
    """Translate errors of SQLAlchemy and of the driver to `OperatorError`."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())  # libpq writes several lines
        raise OperatorError(f"cannot use the directory {label}: {reason}") from error
    except SQLAlchemyError as error:
        raise OperatorError(f"cannot use the directory {label}: {error}") from error


def open_database(url_or_path: str | Path) -> DirectoryDatabase:
    """Open a database given as a URL, or as the path of an SQLite file.

    Creates a missing SQLite file and its directory, private to the owner. Connects at the first
    transaction. Raises `OperatorError` when the URL is invalid or names another database system,
    its driver is not installed, or the file cannot be created.
    """
    url = _parse_url(url_or_path)
    opener = _OPENERS.get(url.get_backend_name())
    if opener is None:
        raise OperatorError(
            f"the directory must be in SQLite or PostgreSQL, not in {url.get_backend_name()}"
        )
    try:
        return opener(url)
    except (ImportError, NoSuchModuleError) as error:
        raise OperatorError(
            f"the driver that the directory's URL asks for is not installed: {error}"
        ) from error


def _parse_url(url_or_path: str | Path) -> URL:
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return URL.create("sqlite", database=str(url_or_path))
    try:
        return make_url(url_or_path)
    except (ArgumentError, ValueError):  # their messages quote the URL, with its password
        raise OperatorError("the directory's URL is not a database URL") from None


def _open_sqlite(url: URL) -> DirectoryDatabase:
    if not url.database or url.database == ":memory:":
        raise OperatorError("the directory must be a file: several processes share it")
    _make_private_file(Path(url.database))
    engine = create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    # A deferred transaction that reads before it writes fails when another wrote meanwhile.
    write_engine = engine.execution_options(**{_BEGIN_OPTION: "BEGIN IMMEDIATE"})
    return DirectoryDatabase(
        label=url.database,
        read_engine=engine,
        write_engine=write_engine,
        schema_lock=None,
        scrub=partial(_scrub_journal, write_engine, Path(f"{url.database}-journal")),
        change_marker=partial(_file_marker, Path(url.database)),
    )


def _file_marker(path: Path) -> ChangeMarker:
    """Return which file it is and when it was written last.

    A commit writes the file while readers wait. The file is not opened: closing it would release
    the locks that SQLite has on it in this process.
    """
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _scrub_journal(engine: Engine, journal: Path, _table: str) -> None:
    """Overwrite the journal with zeros, whatever table its pages are of.

    A transaction that writes nothing does not use the journal, and its lock keeps others from it.
    `secure_delete` has overwritten the row in the database itself.
    """
    with engine.begin(), contextlib.suppress(FileNotFoundError), journal.open("r+b") as file:
        file.write(bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())


def _make_private_file(path: Path) -> None:
    try:
        create_private_directory(path.parent)
        create_file_durably(path)
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {system_reason(error)}") from error


def _set_up_sqlite(dbapi_connection: Any, _record: object) -> None:  # noqa: ANN401 - a driver's
    dbapi_connection.isolation_level = None  # `_begin_sqlite` begins transactions, not the driver
    for pragma in _SQLITE_PRAGMAS:
        dbapi_connection.execute(pragma).close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN_OPTION, "BEGIN"))


def _open_postgresql(url: URL) -> DirectoryDatabase:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(
        url,
        pool_pre_ping=True,  # replaces connections to a restarted server before their use
        pool_size=_POSTGRESQL_POOL_SIZE,
        max_overflow=_POSTGRESQL_POOL_SIZE,
        connect_args={
            name: value for name, value in _POSTGRESQL_CONNECT_ARGS.items() if name not in url.query
        },
    )
    event.listen(engine, "begin", _begin_postgresql)
    return DirectoryDatabase(
        label=_label(url),
        read_engine=engine.execution_options(
            isolation_level="REPEATABLE READ", **{_BEGIN_OPTION: _READ_TIMEOUT}
        ),
        write_engine=engine.execution_options(
            isolation_level="READ COMMITTED", **{_BEGIN_OPTION: _WRITE_TIMEOUT}
        ),
        schema_lock=_POSTGRESQL_SCHEMA_LOCK,
        scrub=partial(_vacuum, engine.execution_options(isolation_level="AUTOCOMMIT")),
        change_marker=tuple[int, ...],
    )


def _label(url: URL) -> str:
    """Return a URL without its passwords, of which libpq's options may be some, too."""
    secret = [name for name in url.query if "password" in name]
    return url.difference_update_query(secret).render_as_string(hide_password=True)


def _vacuum(engine: Engine, table: str) -> None:
    """Write a table again without its dead rows. The server's WAL has them until it is reused.

    Raises `OperatorError` while the table is read for long, as by a dump of the database: who waits
    for its lock keeps all who come later waiting.
    """
    file = text("SELECT pg_relation_filenode(CAST(:table AS regclass))").bindparams(table=table)
    with engine.connect() as connection:
        before = connection.scalar(file)
        for _ in range(_VACUUM_ATTEMPTS):
            connection.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {table}")
            if connection.scalar(file) != before:
                return
            time.sleep(_VACUUM_PAUSE_S)
    raise OperatorError(f"the table {table} is in use: its deleted rows are still on the disk")


def _begin_postgresql(connection: Connection) -> None:
    begin_statement = connection.get_execution_options().get(_BEGIN_OPTION)
    if begin_statement is not None:
        connection.exec_driver_sql(begin_statement)


_OPENERS: Mapping[str, Callable[[URL], DirectoryDatabase]] = {
    "sqlite": _open_sqlite,
    "postgresql": _open_postgresql,
}
