"""What the directory says to its database: one function for each statement or two."""

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


class Change(NamedTuple):
    """One changing transaction: its connection, and the revision that it makes."""

    connection: Connection
    revision: int


def begin_change(connection: Connection, *, bumps_revision: bool) -> Change:
    """Count the revision up, or only wait in line where `bumps_revision` is false.

    The statement holds the row, and with it every other change, until the transaction ends.
    """
    step = 1 if bumps_revision else 0
    connection.execute(
        update(DIRECTORY_REVISION).values(revision=DIRECTORY_REVISION.c.revision + step)
    )
    return Change(connection, read_revision(connection))


def revoke_row(change: Change, key_id: str, now_ms: int) -> None:
    """Revoke a key that is not revoked yet; raises `OperatorError` where there is none."""
    require_row(change.connection, API_KEYS, key_id)
    change.connection.execute(
        update(API_KEYS)
        .where(API_KEYS.c.id == key_id, API_KEYS.c.revoked_ms.is_(None))
        .values(revoked_ms=now_ms)
    )


def read_revision(connection: Connection) -> int:
    """Return how often websites, keys and organizations were changed."""
    revision: int = connection.execute(select(DIRECTORY_REVISION.c.revision)).scalar_one()
    return revision


def find_salt(connection: Connection, day: str) -> bytes | None:
    """Return the visitor salt of a UTC day (YYYY-MM-DD), if it was made."""
    return connection.scalar(select(VISITOR_SALTS.c.salt).where(VISITOR_SALTS.c.day == day))


def replace_salts(connection: Connection, day: str, salt: bytes) -> None:
    """Keep the salt of a day, and delete those of the days before."""
    connection.execute(delete(VISITOR_SALTS).where(VISITOR_SALTS.c.day < day))
    connection.execute(insert(VISITOR_SALTS).values(day=day, salt=salt))


def all_rows(connection: Connection, table: Table) -> Sequence[Row[Any]]:
    """Return a table's rows, oldest first."""
    return connection.execute(select(table).order_by(table.c.revision)).all()


def require_row(connection: Connection, table: Table, row_id: str) -> Row[Any]:
    """Return the row with an id; raises `OperatorError` naming it where there is none."""
    # Ids are ASCII. Other text is not even asked for: half a character would be a driver's error.
    found = (
        row_id.isascii() and connection.execute(select(table).where(table.c.id == row_id)).first()
    )
    if not found:
        raise OperatorError(f"no {_NOUNS[table.name]} has the id {row_id!r}")
    return found


def find_default_organization(connection: Connection) -> Organization | None:
    """Return the oldest organization named `default`, if there is one."""
    row = connection.execute(
        select(ORGANIZATIONS)
        .where(ORGANIZATIONS.c.name == DEFAULT_ORGANIZATION_NAME)
        .order_by(ORGANIZATIONS.c.revision)
    ).first()
    return read_organization(row) if row else None


def require_website(change: Change, website_id: WebsiteId) -> Website:
    """Return a website; raises `OperatorError` where there is none with that id."""
    return read_website(require_row(change.connection, WEBSITES, website_id))


def insert_row(change: Change, table: Table, values: Mapping[str, object]) -> None:
    """Insert a row as of the revision that the change makes."""
    change.connection.execute(insert(table).values(**values, revision=change.revision))


def delete_row(change: Change, table: Table, row_id: str) -> None:
    """Delete a row; raises `OperatorError` where there is none with that id."""
    require_row(change.connection, table, row_id)
    change.connection.execute(delete(table).where(table.c.id == row_id))
