"""The directory of websites, keys and organizations in SQLite or PostgreSQL.

Every change counts the revision up before anything else. That is what followers look at, and it
makes changes wait for each other, so that each of them sees the one before.
"""

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

from sqlalchemy import Connection

from headrace.adapters.directory.connection import Connections, connect, translate_directory_errors
from headrace.adapters.directory.rows import (
    key_values,
    organization_values,
    read_key,
    read_organization,
    read_website,
    website_values,
)
from headrace.adapters.directory.rules import (
    check_key,
    normalize_name,
    normalize_origin,
    normalize_text,
)
from headrace.adapters.directory.schema import migrate_schema
from headrace.adapters.directory.statements import (
    Change,
    all_rows,
    begin_change,
    delete_row,
    find_default_organization,
    find_salt,
    insert_row,
    read_revision,
    replace_salts,
    require_row,
    require_website,
    revoke_row,
)
from headrace.adapters.directory.tables import API_KEYS, ORGANIZATIONS, WEBSITES
from headrace.adapters.directory.tokens import PREFIX_LENGTH, Randomness, new_id, new_secret
from headrace.base.clock import Clock
from headrace.base.errors import OperatorError
from headrace.base.telemetry import get_logger
from headrace.model.tenancy import (
    DEFAULT_ORGANIZATION_NAME,
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteId,
    hash_secret,
)

_SALT_BYTES = 32


def open_directory(
    url_or_path: str | Path, clock: Clock, *, randomness: Randomness = secrets.token_bytes
) -> "SqlDirectory":
    """Open a directory, made or migrated where needed.

    Takes the path of an SQLite file or a database URL. Raises `OperatorError` when it cannot be
    used or a newer version of Headrace has written it.
    """
    connections = connect(url_or_path)
    directory = SqlDirectory(connections, clock=clock, randomness=randomness)
    try:
        with translate_directory_errors(connections.label):
            migrate_schema(connections)
    except BaseException:
        directory.close()
        raise
    return directory


class SqlDirectory:
    """The `Directory` port over SQLAlchemy Core. May be used from several threads."""

    def __init__(self, connections: Connections, *, clock: Clock, randomness: Randomness) -> None:
        self._connections = connections
        self._clock = clock
        self._randomness = randomness

    def close(self) -> None:
        """Give the connections back. May be called twice."""
        self._connections.read_engine.dispose()

    def create_organization(self, name: str) -> Organization:
        """Create an organization."""
        name = normalize_name("an organization", name)
        with self._write_transaction() as change:
            return self._add_organization(change, name)

    def default_organization(self) -> Organization:
        """Return the oldest organization named `default`, made when it is first needed."""
        with self._read_transaction() as connection:
            found = find_default_organization(connection)
        if found is not None:
            return found
        with self._write_transaction() as change:
            return self._resolve_organization(change, None)

    def organizations(self) -> tuple[Organization, ...]:
        """All organizations, oldest first."""
        with self._read_transaction() as connection:
            return tuple(map(read_organization, all_rows(connection, ORGANIZATIONS)))

    def delete_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization and its keys. Its websites stay, without an organization."""
        with self._write_transaction() as change:
            delete_row(change, ORGANIZATIONS, organization_id)

    def create_website(
        self,
        *,
        name: str,
        domain: str = "",
        organization_id: OrganizationId | None = None,
        public: bool = False,
        origins: tuple[str, ...] = (),
    ) -> Website:
        """Create a website; without an organization it belongs to the default one."""
        name = normalize_name("a website", name)
        domain = normalize_text("the domain of a website", domain)
        origins = tuple(dict.fromkeys(map(normalize_origin, origins)))
        with self._write_transaction() as change:
            website = Website(
                id=WebsiteId(new_id("web", self._randomness)),
                name=name,
                domain=domain,
                organization_id=self._resolve_organization(change, organization_id).id,
                created_ms=self._clock.now_ms(),
                public=public,
                origins=origins,
            )
            insert_row(change, WEBSITES, website_values(website))
        return website

    def websites(self) -> tuple[Website, ...]:
        """All websites, oldest first."""
        with self._read_transaction() as connection:
            return tuple(map(read_website, all_rows(connection, WEBSITES)))

    def delete_website(self, website_id: WebsiteId) -> None:
        """Delete a website. Its stored rows are not touched."""
        with self._write_transaction() as change:
            delete_row(change, WEBSITES, website_id)

    def create_key(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
        default_website_id: WebsiteId | None = None,
        expires_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its secret, which is not kept.

        Refuses websites that are not the organization's and a home that the key may not write.
        """
        secret = new_secret(self._randomness)
        with self._write_transaction() as change:
            organization = self._resolve_organization(change, organization_id)
            websites = [require_website(change, each) for each in dict.fromkeys(website_ids)]
            home = (
                require_website(change, default_website_id)
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
            insert_row(change, API_KEYS, key_values(key))
        return key, secret

    def keys(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones included, oldest first."""
        with self._read_transaction() as connection:
            return tuple(map(read_key, all_rows(connection, API_KEYS)))

    def revoke_key(self, key_id: KeyId) -> None:
        """Revoke a key. Safe to call twice: the first time counts."""
        with self._write_transaction() as change:
            revoke_row(change, key_id, self._clock.now_ms())

    def revision(self) -> int:
        """Return a number that changes with every change of websites, keys or organizations."""
        with self._read_transaction() as connection:
            return read_revision(connection)

    def tenancy(self) -> TenancySnapshot:
        """Read everything the hot path needs, at one revision."""
        with self._read_transaction() as connection:
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
            keys={key.secret_hash: key for key in keys if key.revoked_ms is None},
            websites_by_organization={owner: tuple(ids) for owner, ids in by_organization.items()},
        )

    def visitor_salt(self, day: str) -> bytes:
        """Return the secret salt of a UTC day (YYYY-MM-DD): the same for all processes.

        Made when first asked for; salts of earlier days are destroyed then. Not a change of the
        revision: no website or key is another.
        """
        with self._read_transaction() as connection:
            salt = find_salt(connection, day)
        if salt is not None:
            return salt
        with self._write_transaction(bumps_revision=False) as change:
            salt = find_salt(change.connection, day)
            if salt is not None:
                return salt
            salt = self._randomness(_SALT_BYTES)
            replace_salts(change.connection, day, salt)
        self._scrub_salts()
        return salt

    def _scrub_salts(self) -> None:
        """Let the database drop yesterday's salt from its files too, where it would keep it."""
        if self._connections.scrub is None:
            return
        engine, statement = self._connections.scrub
        try:
            with (
                translate_directory_errors(self._connections.label),
                engine.connect() as connection,
            ):
                connection.exec_driver_sql(statement)
        except OperatorError as error:  # the salt is deleted; a vacuum of the server's own comes
            get_logger().warning("old_salts_not_scrubbed", reason=str(error))

    def _add_organization(self, change: Change, name: str) -> Organization:
        organization = Organization(
            id=OrganizationId(new_id("org", self._randomness)),
            name=name,
            created_ms=self._clock.now_ms(),
        )
        insert_row(change, ORGANIZATIONS, organization_values(organization))
        return organization

    def _resolve_organization(
        self, change: Change, organization_id: OrganizationId | None
    ) -> Organization:
        """Find an organization; None means the default one, which is made if there is none."""
        if organization_id is None:
            found = find_default_organization(change.connection)
            return found or self._add_organization(change, DEFAULT_ORGANIZATION_NAME)
        return read_organization(require_row(change.connection, ORGANIZATIONS, organization_id))

    @contextlib.contextmanager
    def _read_transaction(self) -> Generator[Connection]:
        with (
            translate_directory_errors(self._connections.label),
            self._connections.read_engine.connect() as connection,
        ):
            yield connection

    @contextlib.contextmanager
    def _write_transaction(self, *, bumps_revision: bool = True) -> Generator[Change]:
        """Begin a change; it is kept when the block ends and undone when the block raises."""
        with (
            translate_directory_errors(self._connections.label),
            self._connections.write_engine.begin() as connection,
        ):
            yield begin_change(connection, bumps_revision=bumps_revision)
