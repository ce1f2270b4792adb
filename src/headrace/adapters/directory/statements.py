"""The SQL statements of the directory: one function for each, over an open transaction."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, delete, insert, select, update

from headrace.adapters.directory.rows import read_organization, read_website
from headrace.adapters.directory.tables import (
    API_KEYS,
    DIRECTORY_REVISION,
    ORGANIZATIONS,
    VISITOR_SALTS,
    WEBSITES,
)
from headrace.base.errors import OperatorError
from headrace.model.tenancy import DEFAULT_ORGANIZATION_NAME, Organization, Website, WebsiteId

_NOUNS = {ORGANIZATIONS.name: "organization", WEBSITES.name: "website", API_KEYS.name: "key"}


class WriteTransaction(NamedTuple):
    """An open transaction that writes: its connection, and the revision of its rows."""

    connection: Connection
    revision: int


def begin_write(connection: Connection, *, bumps_revision: bool) -> WriteTransaction:
    """Increment the revision; where `bumps_revision` is false, only lock it.

    The UPDATE locks the row of the revision until the transaction ends, so writes are serialized.
    """
    step = 1 if bumps_revision else 0
    connection.execute(
        update(DIRECTORY_REVISION).values(revision=DIRECTORY_REVISION.c.revision + step)
    )
    return WriteTransaction(connection, read_revision(connection))


def revoke_row(transaction: WriteTransaction, key_id: str, now_ms: int) -> None:
    """Revoke a key; one that is revoked keeps its time. Raises `OperatorError` without the key."""
    require_row(transaction.connection, API_KEYS, key_id)
    transaction.connection.execute(
        update(API_KEYS)
        .where(API_KEYS.c.id == key_id, API_KEYS.c.revoked_ms.is_(None))
        .values(revoked_ms=now_ms)
    )


def read_revision(connection: Connection) -> int:
    """Return the number of changes of websites, keys and organizations so far."""
    revision: int = connection.execute(select(DIRECTORY_REVISION.c.revision)).scalar_one()
    return revision


def find_salt(connection: Connection, day: str) -> bytes | None:
    """Return the visitor salt of a UTC day (YYYY-MM-DD), or None."""
    return connection.scalar(select(VISITOR_SALTS.c.salt).where(VISITOR_SALTS.c.day == day))


def has_salts(connection: Connection, *, before: str) -> bool:
    """Return whether there is a salt of a day before a UTC day (YYYY-MM-DD)."""
    found = select(VISITOR_SALTS.c.day).where(VISITOR_SALTS.c.day < before).limit(1)
    return connection.scalar(found) is not None


def delete_salts(connection: Connection, *, before: str) -> None:
    """Delete the salts of the days before a UTC day (YYYY-MM-DD)."""
    connection.execute(delete(VISITOR_SALTS).where(VISITOR_SALTS.c.day < before))


def insert_salt(connection: Connection, day: str, salt: bytes) -> None:
    """Insert the salt of a UTC day (YYYY-MM-DD)."""
    connection.execute(insert(VISITOR_SALTS).values(day=day, salt=salt))


def all_rows(connection: Connection, table: Table) -> Sequence[Row[Any]]:
    """Return the rows of a table, oldest first."""
    return connection.execute(select(table).order_by(table.c.revision)).all()


def require_row(connection: Connection, table: Table, row_id: str) -> Row[Any]:
    """Return the row with an id. Raises `OperatorError`, with the id, when it does not exist."""
    # Ids are ASCII. Other text is not queried: a lone surrogate would be an error of the driver.
    found = (
        row_id.isascii() and connection.execute(select(table).where(table.c.id == row_id)).first()
    )
    if not found:
        raise OperatorError(f"no {_NOUNS[table.name]} has the id {row_id!r}")
    return found


def find_default_organization(connection: Connection) -> Organization | None:
    """Return the oldest organization named `default`, or None."""
    row = connection.execute(
        select(ORGANIZATIONS)
        .where(ORGANIZATIONS.c.name == DEFAULT_ORGANIZATION_NAME)
        .order_by(ORGANIZATIONS.c.revision)
    ).first()
    return read_organization(row) if row else None


def require_website(transaction: WriteTransaction, website_id: WebsiteId) -> Website:
    """Return a website. Raises `OperatorError` when it does not exist."""
    return read_website(require_row(transaction.connection, WEBSITES, website_id))


def insert_row(transaction: WriteTransaction, table: Table, values: Mapping[str, object]) -> None:
    """Insert a row with the revision of the transaction."""
    transaction.connection.execute(insert(table).values(**values, revision=transaction.revision))


def update_row(
    transaction: WriteTransaction, table: Table, row_id: str, values: Mapping[str, object]
) -> None:
    """Change columns of a row that exists. Its revision stays: rows are ordered by it."""
    transaction.connection.execute(update(table).where(table.c.id == row_id).values(**values))


def delete_row(transaction: WriteTransaction, table: Table, row_id: str) -> None:
    """Delete a row. Raises `OperatorError` when it does not exist."""
    require_row(transaction.connection, table, row_id)
    transaction.connection.execute(delete(table).where(table.c.id == row_id))
