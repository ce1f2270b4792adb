"""The directory of websites, keys and organizations in SQLite or PostgreSQL.

Every change increments the revision first. Workers poll the revision. Its row lock serializes
changes, so each of them sees the previous one.
"""

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from headrace.adapters.directory.audit_lines import (
    record_key,
    record_organization,
    record_website,
)
from headrace.adapters.directory.connection import (
    DirectoryDatabase,
    open_database,
    translate_directory_errors,
)
from headrace.adapters.directory.rows import (
    key_values,
    read_key,
    read_organization,
    read_website,
    website_values,
)
from headrace.adapters.directory.rules import (
    changed_website,
    check_key,
    normalize_name,
    normalize_origins,
    normalize_text,
)
from headrace.adapters.directory.schema import migrate_schema
from headrace.adapters.directory.sql_audit_log import SqlAuditLog
from headrace.adapters.directory.sql_saved_queries import SqlSavedQueries
from headrace.adapters.directory.sql_sessions import SqlSessions
from headrace.adapters.directory.sql_shared_erasures import SqlSharedErasures
from headrace.adapters.directory.statements import (
    add_organization,
    all_rows,
    delete_organization_row,
    delete_row,
    delete_salts,
    find_salt,
    has_salts,
    insert_row,
    insert_salt,
    require_row,
    require_website,
    resolve_organization,
    revoke_row,
    update_row,
)
from headrace.adapters.directory.tables import (
    API_KEYS,
    ORGANIZATIONS,
    VISITOR_SALTS,
    WEBSITES,
)
from headrace.adapters.directory.tokens import PREFIX_LENGTH, Randomness, new_id, new_secret
from headrace.adapters.directory.transactions import Author, read_revision, reading, writing
from headrace.base.clock import Clock
from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import get_logger
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    KeyKind,
    Organization,
    OrganizationId,
    Scope,
    SecretHash,
    TenancySnapshot,
    Website,
    WebsiteChange,
    WebsiteId,
    hash_secret,
)
from headrace.ports.directory import ChangeMarker

_SALT_BYTES = 32
_SERVICE = "headrace"
"""The author of changes that nobody asked for."""


def open_directory(
    url_or_path: str | Path, clock: Clock, *, randomness: Randomness = secrets.token_bytes
) -> "SqlDirectory":
    """Open a directory; create or migrate its tables where needed.

    Takes the path of an SQLite file or a database URL. Raises `OperatorError` when the database
    cannot be used or a newer version of Headrace wrote it.
    """
    database = open_database(url_or_path)
    directory = SqlDirectory(database, Author(_SERVICE, clock, randomness))
    try:
        with translate_directory_errors(database.label):
            migrate_schema(database)
    except BaseException:
        directory.close()
        raise
    return directory


class SqlDirectory:
    """The `Directory` port over SQLAlchemy Core. Safe to use from several threads.

    Every method raises `OperatorError` when the database fails or an id is unknown.
    """

    def __init__(self, database: DirectoryDatabase, author: Author) -> None:
        self._database = database
        self._clock = author.clock
        self._randomness = author.randomness
        self._author = author
        self._has_scrubbed = False

    def acting_as(self, name: str) -> "SqlDirectory":
        """Return the same directory, whose changes the audit log shows as made by `name`."""
        return SqlDirectory(self._database, replace(self._author, name=name))

    @property
    def sessions(self) -> SqlSessions:
        """The sessions, which stand beside the keys."""
        return SqlSessions(self._database, self._author)

    @property
    def audit_log(self) -> SqlAuditLog:
        """The lines of all changes."""
        return SqlAuditLog(self._database, self._author)

    @property
    def shared_erasures(self) -> SqlSharedErasures:
        """The erasures that machines share."""
        return SqlSharedErasures(self._database, self._author)

    @property
    def saved_queries(self) -> SqlSavedQueries:
        """The saved queries, which stand beside the websites."""
        return SqlSavedQueries(self._database, self._author)

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._database.read_engine.dispose()

    def create_organization(self, name: str) -> Organization:
        """Create an organization."""
        name = normalize_name("an organization", name)
        with writing(self._database, self._author) as transaction:
            return add_organization(transaction, name)

    def organizations(self) -> tuple[Organization, ...]:
        """All organizations, oldest first."""
        with reading(self._database) as connection:
            return tuple(map(read_organization, all_rows(connection, ORGANIZATIONS)))

    def rename_organization(self, organization_id: OrganizationId, name: str) -> Organization:
        """Rename an organization and return it."""
        name = normalize_name("an organization", name)
        with writing(self._database, self._author) as transaction:
            row = require_row(transaction.connection, ORGANIZATIONS, organization_id)
            before = read_organization(row)
            organization = replace(before, name=name)
            update_row(transaction, ORGANIZATIONS, organization_id, {"name": name})
            record_organization(transaction, before, organization)
        return organization

    def delete_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization and its keys. Its websites remain, without an organization."""
        with writing(self._database, self._author) as transaction:
            delete_organization_row(transaction, organization_id)

    def create_website(
        self,
        *,
        name: str,
        domain: str = "",
        organization_id: OrganizationId | None = None,
        public: bool = False,
        origins: tuple[str, ...] = (),
        retention: RetentionChange = RetentionChange(),  # noqa: B008 - frozen
    ) -> Website:
        """Create a website; without an organization it belongs to the default one."""
        name = normalize_name("a website", name)
        domain = normalize_text("the domain of a website", domain)
        origins = normalize_origins(origins)
        with writing(self._database, self._author) as transaction:
            website = Website(
                id=WebsiteId(new_id("web", self._randomness)),
                name=name,
                domain=domain,
                organization_id=resolve_organization(transaction, organization_id).id,
                created_ms=self._clock.now_ms(),
                public=public,
                origins=origins,
            )
            website = changed_website(website, WebsiteChange(retention=retention))
            insert_row(transaction, WEBSITES, website_values(website))
            record_website(transaction, None, website)
        return website

    def websites(self) -> tuple[Website, ...]:
        """All websites, oldest first."""
        with reading(self._database) as connection:
            return tuple(map(read_website, all_rows(connection, WEBSITES)))

    def update_website(self, website_id: WebsiteId, change: WebsiteChange) -> Website:
        """Change a website and return it."""
        with writing(self._database, self._author) as transaction:
            if change.organization_id is not UNSET:
                require_row(transaction.connection, ORGANIZATIONS, change.organization_id)
            before = require_website(transaction, website_id)
            website = changed_website(before, change)
            update_row(transaction, WEBSITES, website_id, website_values(website))
            record_website(transaction, before, website)
        return website

    def delete_website(self, website_id: WebsiteId) -> None:
        """Delete a website. Its stored events remain."""
        with writing(self._database, self._author) as transaction:
            website = require_website(transaction, website_id)
            delete_row(transaction, WEBSITES, website_id)
            record_website(transaction, website, None)

    def create_key(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
        default_website_id: WebsiteId | None = None,
        expires_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its secret; only a hash of the secret is stored.

        Rejects websites of another organization, and a home that the key may not write.
        """
        secret = new_secret(self._randomness)
        with writing(self._database, self._author) as transaction:
            organization = resolve_organization(transaction, organization_id)
            websites = [require_website(transaction, each) for each in dict.fromkeys(website_ids)]
            home = (
                require_website(transaction, default_website_id)
                if default_website_id is not None
                else None
            )
            check_key(scopes=scopes, organization_id=organization.id, websites=websites, home=home)
            key = ApiKey(
                id=KeyId(new_id("key", self._randomness)),
                prefix=secret[:PREFIX_LENGTH],
                secret_hash=hash_secret(secret),
                organization_id=organization.id,
                scopes=scopes,
                created_ms=self._clock.now_ms(),
                website_ids=tuple(website.id for website in websites),
                default_website_id=home.id if home else None,
                expires_ms=expires_ms,
            )
            insert_row(transaction, API_KEYS, key_values(key))
            record_key(transaction, None, key)
        return key, secret

    def keys(self) -> tuple[ApiKey, ...]:
        """All keys and sessions, revoked ones included, oldest first."""
        with reading(self._database) as connection:
            return tuple(map(read_key, all_rows(connection, API_KEYS)))

    def revoke_key(self, key_id: KeyId) -> None:
        """Revoke a key. Safe to call twice: the first call sets the time."""
        with writing(self._database, self._author) as transaction:
            revoke_row(transaction, key_id)

    def revision(self) -> int:
        """Return a number that grows with every change of websites, keys or organizations."""
        with reading(self._database) as connection:
            return read_revision(connection)

    def change_marker(self) -> ChangeMarker:
        """Return what is different after a change made on this machine."""
        return self._database.change_marker()

    def tenancy(self) -> TenancySnapshot:
        """Read the snapshot for the hot path, at one revision."""
        with reading(self._database) as connection:
            revision = read_revision(connection)
            websites = [read_website(row) for row in all_rows(connection, WEBSITES)]
            keys = [read_key(row) for row in all_rows(connection, API_KEYS)]
        by_organization: defaultdict[OrganizationId, list[WebsiteId]] = defaultdict(list)
        for website in websites:
            if website.organization_id is not None:
                by_organization[website.organization_id].append(website.id)
        return TenancySnapshot(
            revision=revision,
            websites={website.id: website for website in websites},
            keys=_by_secret(keys, KeyKind.KEY),
            websites_by_organization={owner: tuple(ids) for owner, ids in by_organization.items()},
            sessions=_by_secret(keys, KeyKind.SESSION),
        )

    def visitor_salt(self, day: str) -> bytes:
        """Return the secret salt of a UTC day (YYYY-MM-DD): the same for all processes.

        The first call of a day creates it and destroys the salts of earlier days. The revision
        does not change, so workers do not read websites and keys again.
        """
        with reading(self._database) as connection:
            salt = find_salt(connection, day)
        if salt is not None:
            return salt
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            salt = find_salt(transaction.connection, day)
            if salt is not None:
                return salt
            salt = self._randomness(_SALT_BYTES)
            delete_salts(transaction.connection, before=day)
            insert_salt(transaction.connection, day, salt)
        self._scrub()
        return salt

    def forget_visitor_salts(self, before: str) -> None:
        """Destroy the salts of the days before a UTC day; see `ports.directory.Directory`."""
        with reading(self._database) as connection:
            is_due = has_salts(connection, before=before)
        if is_due:
            with writing(self._database, self._author, bumps_revision=False) as transaction:
                delete_salts(transaction.connection, before=before)
        if is_due or not self._has_scrubbed:  # a crash may have prevented the last scrub
            self._scrub()

    def _scrub(self) -> None:
        """Remove deleted salts from the database's files, where a DELETE leaves them."""
        try:
            with translate_directory_errors(self._database.label):
                self._database.scrub(VISITOR_SALTS.name)
            self._has_scrubbed = True
        except (OperatorError, OSError) as error:
            self._has_scrubbed = False
            get_logger().warning("old_salts_not_scrubbed", reason=system_reason(error))


def _by_secret(keys: Sequence[ApiKey], kind: KeyKind) -> Mapping[SecretHash, ApiKey]:
    return {key.secret_hash: key for key in keys if key.kind is kind and key.revoked_ms is None}
