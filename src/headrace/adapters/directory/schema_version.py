"""The version of the directory's schema, and its check in a file, without SQLAlchemy.

The engine process does not use the directory. Without a check before it starts, it would load the
records of a newer version while a worker finds out who wrote the directory.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import Final

from headrace.base.errors import OperatorError

SCHEMA_VERSION: Final = "0006"
"""The newest migration: a new directory has it at once, and only older ones need Alembic."""

_SELECT_VERSION: Final = "SELECT version_num FROM alembic_version"


def newer_schema_error(label: str, version: str) -> OperatorError:
    """Return the error for a directory that a newer version of Headrace wrote."""
    return OperatorError(
        f"the directory {label} was written by a newer version of Headrace "
        f"(its schema is {version}, this version supports {SCHEMA_VERSION}): use that version"
    )


def check_schema_version(file: Path) -> None:
    """Raise `OperatorError` where a newer version of Headrace wrote an SQLite file.

    Creates nothing. A file that cannot be read passes: opening the directory reports the reason.
    """
    version = _read_version(file) if file.is_file() else None
    if version is not None and version > SCHEMA_VERSION:
        raise newer_schema_error(str(file), version)


def has_older_schema(file: Path) -> bool:
    """Return whether opening an SQLite file as the directory would migrate it. Creates nothing."""
    version = _read_version(file) if file.is_file() else None
    return version is not None and version < SCHEMA_VERSION


def _read_version(file: Path) -> str | None:
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(file)) as connection,
    ):
        # The journal of a killed process is rolled back here, and is kept, as the directory does.
        connection.execute("PRAGMA journal_mode = PERSIST")
        row = connection.execute(_SELECT_VERSION).fetchone()
        return None if row is None else str(row[0])
    return None
