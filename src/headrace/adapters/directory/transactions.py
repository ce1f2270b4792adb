"""Transactions of the directory: reads at one snapshot, and writes one after the other."""

import contextlib
from collections.abc import Generator
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, select, update

from headrace.adapters.directory.connection import (
    DirectoryDatabase,
    translate_directory_errors,
)
from headrace.adapters.directory.tables import DIRECTORY_REVISION
from headrace.adapters.directory.tokens import Randomness
from headrace.base.clock import Clock


class Author(Struct, frozen=True):
    """Who writes, as the audit log names it, and where times, ids and secrets come from."""

    name: str
    clock: Clock
    randomness: Randomness


class WriteTransaction(NamedTuple):
    """An open transaction that writes: its connection, the revision of its rows, its author."""

    connection: Connection
    revision: int
    author: Author


@contextlib.contextmanager
def reading(database: DirectoryDatabase) -> Generator[Connection]:
    """Read one snapshot. Raises `OperatorError` when the database fails."""
    with translate_directory_errors(database.label), database.read_engine.connect() as connection:
        yield connection


@contextlib.contextmanager
def writing(
    database: DirectoryDatabase, author: Author, *, bumps_revision: bool = True
) -> Generator[WriteTransaction]:
    """Begin a write; commit it at the end of the block, roll back when the block raises.

    Increments the revision; where `bumps_revision` is false, only locks it. The UPDATE locks the
    row of the revision until the transaction ends, so writes are serialized. Raises `OperatorError`
    when the database fails.
    """
    step = 1 if bumps_revision else 0
    with translate_directory_errors(database.label), database.write_engine.begin() as connection:
        connection.execute(
            update(DIRECTORY_REVISION).values(revision=DIRECTORY_REVISION.c.revision + step)
        )
        yield WriteTransaction(connection, read_revision(connection), author)


def read_revision(connection: Connection) -> int:
    """Return the number of changes of websites, keys and organizations so far."""
    revision: int = connection.execute(select(DIRECTORY_REVISION.c.revision)).scalar_one()
    return revision
