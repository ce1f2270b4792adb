"""The SQL statements of the directory: one function for each, over an open transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs
from sqlalchemy import Connection, Row, Table, delete, insert, or_, select, update

from headrace.adapters.directory.audit_lines import (
    record_key,
    record_organization,
    record_website,
)
from headrace.adapters.directory.rows import (
    organization_values,
    read_key,
    read_organization,
    read_website,
)
from headrace.adapters.directory.tables import (
    API_KEYS,
    ORGANIZATIONS,
    SIGN_IN_CODES,
    VISITOR_SALTS,
    WEBSITES,
)
from headrace.adapters.directory.tokens import new_id
from headrace.adapters.directory.transactions import WriteTransaction
from headrace.base.errors import OperatorError
from headrace.model.tenancy import (
    DEFAULT_ORGANIZATION_NAME,
    ApiKey,
    KeyId,
    KeyKind,
    Organization,
    OrganizationId,
    Scope,
    SecretHash,
    Website,
    WebsiteId,
)

_NOUNS = {ORGANIZATIONS.name: "organization", WEBSITES.name: "website", API_KEYS.name: "key"}


def revoke_row(transaction: WriteTransaction, key_id: str) -> None:
    """Revoke a key and its sessions; one that is revoked keeps its time.

    Raises `OperatorError` without the key.
    """
    before = read_key(require_row(transaction.connection, API_KEYS, key_id))
    transaction.connection.execute(
        update(API_KEYS)
        .where(
            or_(API_KEYS.c.id == key_id, API_KEYS.c.parent_id == key_id),
            API_KEYS.c.revoked_ms.is_(None),
        )
        .values(revoked_ms=transaction.author.clock.now_ms())
    )
    after = read_key(require_row(transaction.connection, API_KEYS, key_id))
    record_key(transaction, before, after)


def revoke_session(connection: Connection, session_id: str, now_ms: int) -> None:
    """Revoke a session, if there is one with this id that is not revoked."""
    connection.execute(
        update(API_KEYS)
        .where(
            API_KEYS.c.id == session_id,
            API_KEYS.c.kind == KeyKind.SESSION.value,
            API_KEYS.c.revoked_ms.is_(None),
        )
        .values(revoked_ms=now_ms)
    )


def delete_ended_sessions(connection: Connection, now_ms: int) -> None:
    """Delete the sessions and codes whose time is over."""
    is_session = API_KEYS.c.kind == KeyKind.SESSION.value
    connection.execute(delete(API_KEYS).where(is_session, API_KEYS.c.expires_ms <= now_ms))
    connection.execute(delete(SIGN_IN_CODES).where(SIGN_IN_CODES.c.expires_ms <= now_ms))


def find_key(connection: Connection, secret_hash: SecretHash) -> ApiKey | None:
    """Return the key or session with this hash of its secret, or None."""
    found = select(API_KEYS).where(API_KEYS.c.secret_hash == secret_hash)
    row = connection.execute(found).first()
    return read_key(row) if row else None


def insert_code(transaction: WriteTransaction, code: ApiKey) -> None:
    """Insert a sign-in code with the rights of its session."""
    values = {
        "code_hash": code.secret_hash,
        "organization_id": code.organization_id,
        "scopes": sorted(scope.value for scope in code.scopes),
        "website_ids": list(code.website_ids),
        "expires_ms": code.expires_ms,
    }
    insert_row(transaction, SIGN_IN_CODES, values)


def take_code(connection: Connection, code_hash: SecretHash, now_ms: int) -> ApiKey | None:
    """Delete a sign-in code; return the rights of its session, without an id, or None."""
    is_code = SIGN_IN_CODES.c.code_hash == code_hash
    row = connection.execute(select(SIGN_IN_CODES).where(is_code)).first()
    if row is None:
        return None
    connection.execute(delete(SIGN_IN_CODES).where(is_code))
    if row.expires_ms <= now_ms:
        return None
    return ApiKey(
        id=KeyId(""),
        prefix="",
        secret_hash=code_hash,
        organization_id=row.organization_id,
        scopes=frozenset(map(Scope, row.scopes)),
        created_ms=now_ms,
        website_ids=tuple(row.website_ids),
    )


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


def all_rows(
    connection: Connection, table: Table, organization_id: OrganizationId | None = None
) -> Sequence[Row[Any]]:
    """Return the rows of a table, or those of an organization, oldest first."""
    found = select(table).order_by(table.c.revision)
    if organization_id is not None:
        found = found.where(table.c.organization_id == organization_id)
    return connection.execute(found).all()


def require_row(connection: Connection, table: Table, row_id: str) -> Row[Any]:
    """Return the row with an id. Raises `OperatorError`, with the id, when it does not exist."""
    # Ids are ASCII. Other text is not queried: a lone surrogate would be an error of the driver.
    found = (
        row_id.isascii() and connection.execute(select(table).where(table.c.id == row_id)).first()
    )
    if not found:
        raise OperatorError(f"no {_NOUNS[table.name]} has the id {row_id!r}")
    return found


def resolve_organization(
    transaction: WriteTransaction, organization_id: OrganizationId | None
) -> Organization:
    """Return an organization; None means the default one, which is created if missing."""
    if organization_id is not None:
        return read_organization(
            require_row(transaction.connection, ORGANIZATIONS, organization_id)
        )
    return _find_default_organization(transaction.connection) or add_organization(
        transaction, DEFAULT_ORGANIZATION_NAME
    )


def _find_default_organization(connection: Connection) -> Organization | None:
    """Return the oldest organization named `default`, or None."""
    row = connection.execute(
        select(ORGANIZATIONS)
        .where(ORGANIZATIONS.c.name == DEFAULT_ORGANIZATION_NAME)
        .order_by(ORGANIZATIONS.c.revision)
    ).first()
    return read_organization(row) if row else None


def add_organization(transaction: WriteTransaction, name: str) -> Organization:
    """Insert an organization and return it."""
    author = transaction.author
    organization = Organization(
        id=OrganizationId(new_id("org", author.randomness)),
        name=name,
        created_ms=author.clock.now_ms(),
    )
    insert_row(transaction, ORGANIZATIONS, organization_values(organization))
    record_organization(transaction, None, organization)
    return organization


def delete_organization_row(transaction: WriteTransaction, organization_id: OrganizationId) -> None:
    """Delete an organization; the database deletes its keys and takes it from its websites."""
    connection = transaction.connection
    organization = read_organization(require_row(connection, ORGANIZATIONS, organization_id))
    keys = [read_key(row) for row in all_rows(connection, API_KEYS, organization_id)]
    websites = [read_website(row) for row in all_rows(connection, WEBSITES, organization_id)]
    delete_row(transaction, ORGANIZATIONS, organization_id)
    record_organization(transaction, organization, None)
    for key in keys:
        record_key(transaction, key, None)
    for website in websites:
        record_website(transaction, website, structs.replace(website, organization_id=None))


def require_website(transaction: WriteTransaction, website_id: WebsiteId) -> Website:
    """Return a website. Raises `OperatorError` when it does not exist."""
    return read_website(require_row(transaction.connection, WEBSITES, website_id))


def find_owner(connection: Connection, website_ids: tuple[WebsiteId, ...]) -> OrganizationId | None:
    """Return the organization that has all of these websites; None where there is none."""
    owners = connection.execute(
        select(WEBSITES.c.id, WEBSITES.c.organization_id).where(WEBSITES.c.id.in_(website_ids))
    ).all()
    found = {row.organization_id for row in owners}
    return found.pop() if len(found) == 1 and len(owners) == len(website_ids) else None


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
