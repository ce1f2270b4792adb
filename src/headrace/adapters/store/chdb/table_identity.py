"""Identities of the embedded store's tables, and the durability of the store's own files.

chDB renames the files of its metadata without a sync of their directories. After a power cut a
table may be missing, and `CREATE TABLE IF NOT EXISTS` then creates an empty one. Therefore a file
in the directory of each table names it, and the ledger records which tables it loaded into.
"""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.adapters.data_dir.files import write_atomically
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.model.storage import STORAGE_TABLES

IDENTITY_FILE: Final = "headrace-identity.txt"
"""In the directory of a table, beside its parts. ClickHouse ignores names that are not a part's."""

_DEPTH_OF_TABLES = 3
"""A table's directory is `store/abc/abcd…`; parts are below it."""


def read_identities(directories: Mapping[str, Path]) -> dict[str, str]:
    """Return the identity of each table that has one, from the tables' directories.

    Raises `OSError`.
    """
    identities: dict[str, str] = {}
    for table, directory in directories.items():
        with suppress(FileNotFoundError):
            identities[table] = (directory / IDENTITY_FILE).read_text(encoding="ascii").strip()
    return identities


def ensure_identities(directories: Mapping[str, Path]) -> None:
    """Give every table without an identity a random one, durably. Raises `OSError`."""
    known = read_identities(directories)
    for table in directories.keys() - known.keys():
        content = f"{secrets.token_hex(16)}\n".encode()
        write_atomically(directories[table] / IDENTITY_FILE, content)


def table_directories(chdb: ChdbInstance, database: str = DATABASE) -> dict[str, Path]:
    """Return the directory of each stored table that exists. Raises `ClickHouseError`."""
    rows = chdb.execute(
        f"SELECT name, data_paths[1] FROM system.tables WHERE database = {quote_literal(database)}"  # noqa: S608 - ours
    )
    return {name: Path(directory) for name, directory in rows if name in STORAGE_TABLES}


def sync_store_files(store: Path) -> None:
    """Fsync metadata, directories and links of a store, and its name in its parent directory.

    Parts are left out: inserts and merges sync them. Raises `OSError`.
    """
    walked: list[Path] = []
    for root, directories, files in os.walk(store):
        here = Path(root)
        walked.append(here)
        if len(here.relative_to(store).parts) >= _DEPTH_OF_TABLES:
            directories.clear()
        for file in (here / name for name in files):
            if not file.is_symlink():
                _sync(file)
    for directory in (*walked, store.parent):
        _sync(directory)


def _sync(path: Path) -> None:
    """Fsync a file or a directory; chDB may have renamed or removed one meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
