"""Transactions of the directory: reads at one snapshot, and writes one after the other."""

import contextlib
from collections.abc import Generator

from sqlalchemy import Connection

from headrace.adapters.directory.connection import (
    DirectoryDatabase,
    translate_directory_errors,
)
from headrace.adapters.directory.statements import WriteTransaction, begin_write


@contextlib.contextmanager
def reading(database: DirectoryDatabase) -> Generator[Connection]:
    """Read one snapshot. Raises `OperatorError` when the database fails."""
    with translate_directory_errors(database.label), database.read_engine.connect() as connection:
        yield connection


@contextlib.contextmanager
def writing(
    database: DirectoryDatabase, *, bumps_revision: bool = True
) -> Generator[WriteTransaction]:
    """Begin a write; commit it at the end of the block, roll back when the block raises.

    Raises `OperatorError` when the database fails.
    """
    with translate_directory_errors(database.label), database.write_engine.begin() as connection:
        yield begin_write(connection, bumps_revision=bumps_revision)
