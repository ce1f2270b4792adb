"""Copies SQLite files that other processes use, and checks their integrity."""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

from headrace.adapters.data_dir.sqlite_files import close_durably

_BUSY_TIMEOUT_S = 10
_SHORT_LIVED = (
    ("visitor_salts", "salt", "DELETE FROM visitor_salts"),
    ("sign_in_codes", "code_hash", "DELETE FROM sign_in_codes"),
    ("api_keys", "kind", "DELETE FROM api_keys WHERE kind = 'session'"),
)
"""Rows that a backup leaves out: a column of their table, and the statement that deletes them."""
_MAX_ERRORS = 10
_PRIMARY_CODE = 0xFF
_UNCHECKED = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN})
"""Codes that say nothing about the file: a full disk also has them, where the WAL has no index."""


def copy_sqlite(source: Path, into: Path) -> None:
    """Copy a consistent snapshot of a database, if it exists. Raises `sqlite3.Error`."""
    if source.exists():
        with _connected(source) as connection:
            copy_open_sqlite(connection, into)


def copy_open_sqlite(connection: sqlite3.Connection, into: Path) -> None:
    """Copy a consistent snapshot of a connection's database. Raises `sqlite3.Error`."""
    with _connected(into) as copy:
        into.chmod(0o600)
        copy.execute("PRAGMA synchronous = OFF")  # the archive made of the copy is synced instead
        connection.backup(copy)


def copy_directory_database(source: Path, into: Path) -> None:
    """Copy the directory's database without the visitor salt of the day, sessions and codes.

    They end within a day, and a backup with them would be kept longer. Raises `sqlite3.Error`.
    """
    copy_sqlite(source, into)
    if not into.exists():
        return
    with _connected(into) as copy:
        copy.execute("PRAGMA journal_mode = MEMORY")
        for table, column, statement in _SHORT_LIVED:
            found = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
            if copy.execute(found, (table, column)).fetchone():  # not in every schema
                copy.execute(statement)
        copy.execute("VACUUM")  # rebuilds the file: nothing of it remains in free pages


@contextlib.contextmanager
def _connected(path: Path) -> Generator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
    try:
        yield connection
    finally:
        close_durably(connection, path)


def integrity_errors(path: Path, *, quick: bool = False) -> list[str]:
    """Return what SQLite's integrity check finds, at most ten phrases; empty if intact.

    Each says of the file that it is damaged, or that it cannot be checked. A `quick` check does not
    compare indexes with their tables.
    """
    check = "quick_check" if quick else "integrity_check"
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        rows = connection.execute(f"PRAGMA {check}({_MAX_ERRORS})").fetchall()
    except sqlite3.Error as error:
        is_unchecked = error.sqlite_errorcode & _PRIMARY_CODE in _UNCHECKED
        return [f"{'cannot be checked' if is_unchecked else 'is damaged'}: {error}"]
    finally:
        close_durably(connection, path)
    return [f"is damaged: {error}" for (error,) in rows if error != "ok"]
