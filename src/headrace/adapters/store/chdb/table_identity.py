"""Identities of the embedded store's tables.

After a power cut a table may be missing, and `CREATE TABLE IF NOT EXISTS` then creates an empty
one. Therefore a file in the directory of each table names it, and the ledger records which tables
it loaded into.
"""

import errno
import re
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

_IDENTITY_BYTES: Final = 16
_CONTENT: Final = re.compile(rb"([0-9a-f]{%d})\n" % (2 * _IDENTITY_BYTES))


def read_identities(directories: Mapping[str, Path]) -> dict[str, str]:
    """Return the identity of each table that has one, from the tables' directories.

    Raises `OSError`, also for a damaged file: with another identity, the table would count as new.
    """
    identities: dict[str, str] = {}
    for table, directory in directories.items():
        with suppress(FileNotFoundError):
            identities[table] = _read_identity(directory / IDENTITY_FILE)
    return identities


def _read_identity(file: Path) -> str:
    found = _CONTENT.fullmatch(file.read_bytes())
    if found is None:
        raise OSError(errno.EIO, f"{file} is damaged: restore a backup")
    return found[1].decode()


def ensure_identities(directories: Mapping[str, Path]) -> None:
    """Give every table without an identity a random one, durably. Raises `OSError`."""
    known = read_identities(directories)
    for table in directories.keys() - known.keys():
        content = f"{secrets.token_hex(_IDENTITY_BYTES)}\n".encode()
        write_atomically(directories[table] / IDENTITY_FILE, content)


def table_directories(chdb: ChdbInstance, database: str = DATABASE) -> dict[str, Path]:
    """Return the directory of each stored table that exists. Raises `ClickHouseError`."""
    rows = chdb.execute(
        f"SELECT name, data_paths[1] FROM system.tables WHERE database = {quote_literal(database)}"  # noqa: S608 - ours
    )
    return {name: Path(directory) for name, directory in rows if name in STORAGE_TABLES}
