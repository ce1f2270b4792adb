"""Opens the database of the directory. What differs between SQLite and PostgreSQL is only here."""

import contextlib
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from headrace.base.errors import OperatorError

_BUSY_TIMEOUT_S = 10
_BEGIN_OPTION = "headrace_begin"

_SQLITE_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    # Salts and keys that were deleted are overwritten with zeros and not just forgotten.
    "PRAGMA secure_delete = ON",
    # Changes are rare: the rollback journal is as fast as needed, leaves one file to copy and,
    # unlike WAL, keeps no old pages (salts!) in a second file.
    "PRAGMA journal_mode = DELETE",
    # The journal's deletion is durable too: a revoked key stays revoked after a power cut.
    "PRAGMA synchronous = EXTRA",
)

_POSTGRESQL_CONNECT_ARGS: Mapping[str, object] = {
    # What hangs is found within seconds: the snapshot in memory goes on meanwhile.
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
    "prepare_threshold": None,  # a pooler between us may give each transaction another connection
}
"""Arguments of the driver, each for where the URL does not say otherwise."""

_POSTGRESQL_POOL_SIZE = 2
"""Of a process, at most twice as many: one thread follows, another asks for the day's salt."""

_READ_TIMEOUT = "SET LOCAL statement_timeout = '5s'"
_WRITE_TIMEOUT = "SET LOCAL lock_timeout = '30s'"

# Any number will do that nothing else in the same PostgreSQL database uses.
_POSTGRESQL_SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(6453298717)"


class Connections(Struct, frozen=True):
    """How to reach the directory's database.

    A transaction of `read_engine` sees one state throughout. One of `write_engine` sees the newest
    state and, once it has written, keeps other changes waiting. `schema_lock` is what a change of
    the schema must say first, where beginning a change does not lock the database anyway. `scrub`
    is what has deleted salts dropped from the files too, where deleting them does not.
    """

    label: str
    read_engine: Engine
    write_engine: Engine
    schema_lock: str | None
    scrub: tuple[Engine, str] | None = None


@contextlib.contextmanager
def translate_directory_errors(label: str) -> Generator[None]:
    """Turn what a database or its driver raises into an `OperatorError`."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())  # libpq writes several lines
        raise OperatorError(f"cannot use the directory {label}: {reason}") from error
    except SQLAlchemyError as error:
        raise OperatorError(f"cannot use the directory {label}: {error}") from error


def connect(url_or_path: str | Path) -> Connections:
    """Prepare the connections to a database given as a URL, or as the path of an SQLite file.

    A missing file is made, and its directory too, for the owner alone. Raises `OperatorError`
    when the URL is not one of a database that can be used or the file cannot be made.
    """
    url = _parse_url(url_or_path)
    opener = _OPENERS.get(url.get_backend_name())
    if opener is None:
        raise OperatorError(
            f"the directory can be kept in SQLite or PostgreSQL, not in {url.get_backend_name()}"
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
    except (ArgumentError, ValueError):  # their messages would repeat the URL, or a part of it
        raise OperatorError("the directory's URL is not one of a database") from None


def _open_sqlite(url: URL) -> Connections:
    if not url.database or url.database == ":memory:":
        raise OperatorError("the directory needs a file: several processes share it")
    _make_private_file(Path(url.database))
    engine = create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return Connections(
        label=url.database,
        read_engine=engine,
        # A transaction that reads first and then finds that another has written would fail.
        write_engine=engine.execution_options(**{_BEGIN_OPTION: "BEGIN IMMEDIATE"}),
        schema_lock=None,
    )


def _make_private_file(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error


def _set_up_sqlite(dbapi_connection: Any, _record: object) -> None:  # noqa: ANN401 - a driver's
    dbapi_connection.isolation_level = None  # the driver begins no transactions; _begin_sqlite does
    for pragma in _SQLITE_PRAGMAS:
        dbapi_connection.execute(pragma).close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN_OPTION, "BEGIN"))


def _open_postgresql(url: URL) -> Connections:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(
        url,
        pool_pre_ping=True,  # a server that was started again is noticed before it is asked
        pool_size=_POSTGRESQL_POOL_SIZE,
        max_overflow=_POSTGRESQL_POOL_SIZE,
        connect_args={
            name: value for name, value in _POSTGRESQL_CONNECT_ARGS.items() if name not in url.query
        },
    )
    event.listen(engine, "begin", _begin_postgresql)
    return Connections(
        label=url.render_as_string(hide_password=True),
        read_engine=engine.execution_options(
            isolation_level="REPEATABLE READ", **{_BEGIN_OPTION: _READ_TIMEOUT}
        ),
        write_engine=engine.execution_options(
            isolation_level="READ COMMITTED", **{_BEGIN_OPTION: _WRITE_TIMEOUT}
        ),
        schema_lock=_POSTGRESQL_SCHEMA_LOCK,
        scrub=(
            engine.execution_options(isolation_level="AUTOCOMMIT"),
            "VACUUM (FULL) visitor_salts",
        ),
    )


def _begin_postgresql(connection: Connection) -> None:
    begin_statement = connection.get_execution_options().get(_BEGIN_OPTION)
    if begin_statement is not None:
        connection.exec_driver_sql(begin_statement)


_OPENERS: Mapping[str, Callable[[URL], Connections]] = {
    "sqlite": _open_sqlite,
    "postgresql": _open_postgresql,
}
