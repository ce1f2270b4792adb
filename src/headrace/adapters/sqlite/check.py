"""Asks SQLite whether a file is sound."""

import sqlite3
from pathlib import Path

_MOST_FAULTS = 10


def sqlite_faults(path: Path) -> list[str]:
    """Return what is wrong with a database, in SQLite's words; nothing where it is sound."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        rows = connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})").fetchall()
    except sqlite3.Error as error:
        return [str(error)]
    finally:
        connection.close()
    return [str(fault) for (fault,) in rows if fault != "ok"]
