"""Saved queries beside the websites, in the same database."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, select, update

from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.statements import insert_row, require_website
from headrace.adapters.directory.tables import SAVED_QUERIES
from headrace.adapters.directory.tokens import new_query_token
from headrace.adapters.directory.transactions import Author, reading, writing
from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import SecretHash, WebsiteId, hash_secret
from headrace.ports.saved_queries import SaveResult


class SqlSavedQueries:
    """The `SavedQueries` port over the directory's database. Safe to use from several threads.

    No method increments the revision: workers read saved queries when they answer them, and need
    not read websites and keys again.
    """

    def __init__(self, database: DirectoryDatabase, author: Author) -> None:
        self._database = database
        self._author = author

    def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool = False
    ) -> SaveResult:
        """Save or replace a query; see `SavedQueries.save`."""
        now_ms, token = self._author.clock.now_ms(), new_query_token(self._author.randomness)
        token_hash = hash_secret(token)
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            found = _find(transaction.connection, _is_named(website_id, name))
            if found is None:
                require_website(transaction, website_id)
                made = SavedQuery(website_id, name, body, token_hash, now_ms, now_ms)
                insert_row(transaction, SAVED_QUERIES, _values(made))
                return SaveResult(made, token, is_new=True)
            changed = replace(
                found,
                body=body,
                token_hash=token_hash if rotate else found.token_hash,
                updated_ms=now_ms,
            )
            transaction.connection.execute(
                update(SAVED_QUERIES).where(_is_named(website_id, name)).values(**_values(changed))
            )
        return SaveResult(changed, token if rotate else None, is_new=False)

    def find(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        """Return a saved query, or None."""
        with reading(self._database) as connection:
            return _find(connection, _is_named(website_id, name))

    def find_by_token(self, token_hash: SecretHash) -> SavedQuery | None:
        """Return the saved query that has this token, or None."""
        with reading(self._database) as connection:
            return _find(connection, SAVED_QUERIES.c.token_hash == token_hash)

    def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        """Return all saved queries of a website, by name."""
        columns = (SAVED_QUERIES.c[name] for name in SavedQueryEntry.__struct_fields__)
        statement = select(*columns).where(SAVED_QUERIES.c.website_id == website_id)
        with reading(self._database) as connection:
            rows = connection.execute(statement).all()
        entries = (SavedQueryEntry(*row) for row in rows)
        return tuple(sorted(entries, key=lambda entry: entry.name))  # servers have collations

    def delete(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        """Delete a saved query; return what was deleted, or None."""
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            found = _find(transaction.connection, _is_named(website_id, name))
            transaction.connection.execute(delete(SAVED_QUERIES).where(_is_named(website_id, name)))
        return found


def _is_named(website_id: WebsiteId, name: str) -> ColumnElement[bool]:
    return and_(SAVED_QUERIES.c.website_id == website_id, SAVED_QUERIES.c.name == name)


def _find(connection: Connection, condition: ColumnElement[bool]) -> SavedQuery | None:
    row = connection.execute(select(SAVED_QUERIES).where(condition)).first()
    return _read(row) if row else None


def _values(query: SavedQuery) -> Mapping[str, object]:
    """Return a saved query's column values, without the revision."""
    return {
        "website_id": query.website_id,
        "name": query.name,
        "body": query.body,
        "token_hash": query.token_hash,
        "created_ms": query.created_ms,
        "updated_ms": query.updated_ms,
    }


def _read(row: Row[Any]) -> SavedQuery:
    return SavedQuery(
        website_id=row.website_id,
        name=row.name,
        body=bytes(row.body),
        token_hash=SecretHash(bytes(row.token_hash)),
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
    )
