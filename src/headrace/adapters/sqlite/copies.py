"""Copies of SQLite files that others use, through SQLite itself."""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

_BUSY_TIMEOUT_S = 10
_SALTS = "visitor_salts"


def copy_sqlite(source: Path, into: Path) -> None:
    """Copy a database as of one moment; nothing where there is none. Raises `sqlite3.Error`."""
    if source.exists():
        with _connected(source) as connection:
            copy_open_sqlite(connection, into)


def copy_open_sqlite(connection: sqlite3.Connection, into: Path) -> None:
    """Copy the database of a connection as of one moment. Raises `sqlite3.Error`."""
    with _connected(into) as copy:
        into.chmod(0o600)
        copy.execute("PRAGMA synchronous = OFF")  # what becomes of the copy is synced, not it
        connection.backup(copy)


def copy_directory_database(source: Path, into: Path) -> None:
    """Copy websites and keys without the day's visitor salt.

    A salt is destroyed when its day is over; a copy of it would outlive that in a backup. Raises
    `sqlite3.Error`.
    """
    copy_sqlite(source, into)
    if not into.exists():
        return
    with _connected(into) as copy:
        copy.execute("PRAGMA journal_mode = MEMORY")
        if copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_SALTS,)).fetchone():
            copy.execute(f"DELETE FROM {_SALTS}")  # noqa: S608 - our own name
            copy.execute("VACUUM")  # rebuilds the file: nothing of it stays in free pages


@contextlib.contextmanager
def _connected(path: Path) -> Generator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
    try:
        yield connection
    finally:
        connection.close()


_MAX_ERRORS = 10


def integrity_errors(path: Path) -> list[str]:
    """Return what is wrong with a database, in SQLite's words; nothing where it is sound."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        rows = connection.execute(f"PRAGMA integrity_check({_MAX_ERRORS})").fetchall()
    except sqlite3.Error as error:
        return [str(error)]
    finally:
        connection.close()
    return [str(error) for (error,) in rows if error != "ok"]
