"""The files that SQLite keeps beside a database, and what a power cut may leave under their names.

The last connection that is closed removes the WAL and its index, and SQLite does not sync that. On
a file system without a journal their inodes can belong to something else when the power fails, a
part of the store or a segment of a log, while the names still lead to them. So the files are kept
open until their names are gone from the disk, and what cannot be SQLite's loses its name before a
database is opened.
"""

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.adapters.data_dir.files import kept_open, set_aside, sync_directory, write_atomically
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import get_logger

SQLITE_SUFFIXES: Final = ("-wal", "-shm", "-journal")


def close_durably(connection: sqlite3.Connection, database: Path) -> None:
    """Close a connection; return when the names of the files that it removed are off the disk."""
    # Elsewhere than on Linux, closing what keeps them open would end locks of this process.
    with kept_open(_files_beside(database) if hasattr(os, "O_PATH") else ()):
        connection.close()
        with suppress(OSError):  # the names stay then, and lead to empty files
            sync_directory(database.parent)


def separate_sqlite_files(root: Path) -> None:
    """Separate the files beside the databases of a data directory from what is not SQLite's.

    What is no file is moved into `damaged/`. A file that has another name, too, is replaced by a
    copy: SQLite would write into what belongs to that name. Both are logged. Call it under the lock
    of the directory, before a database is opened. Raises `OperatorError`.
    """
    paths = DataDirPaths(root)
    for database in (paths.ledger, paths.directory, paths.idempotency):
        for file in _files_beside(database):
            try:
                _separate(file, paths.damaged)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise OperatorError(f"cannot separate {file}: {system_reason(error)}") from error


def _separate(file: Path, damaged: Path) -> None:
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode):
        set_aside(file, damaged)
    elif status.st_nlink > 1:
        write_atomically(file, file.read_bytes())
    else:
        return
    get_logger().warning("sqlite_file_separated", path=str(file))


def _files_beside(database: Path) -> list[Path]:
    return [database.with_name(f"{database.name}{suffix}") for suffix in SQLITE_SUFFIXES]
