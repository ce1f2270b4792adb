"""The directory of websites, keys and organizations in SQLite or PostgreSQL.

Every change counts the revision up before anything else. That is what followers look at, and it
makes changes wait for each other, so that each of them sees the one before.
"""

import contextlib
import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, delete, insert, select, update

from millrace.adapters.directory.connection import Connections, clear_errors, connect
from millrace.adapters.directory.rows import (
    key_values,
    organization_values,
    read_key,
    read_organization,
    read_website,
    website_values,
)
from millrace.adapters.directory.rules import check_key, check_name, check_origin, check_text
from millrace.adapters.directory.schema import migrate
from millrace.adapters.directory.tables import (
    API_KEYS,
    DIRECTORY_REVISION,
    ORGANIZATIONS,
    VISITOR_SALTS,
    WEBSITES,
)
from millrace.base.clock import Clock
from millrace.base.errors import OperatorError
from millrace.base.telemetry import get_logger
from millrace.model.tenancy import (
    DEFAULT_ORGANIZATION_NAME,
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    Tenancy,
    Website,
    WebsiteId,
    hash_secret,
)

Randomness = Callable[[int], bytes]
"""Returns that many random bytes, good enough for secrets."""

DIRECTORY_FILE = "directory.sqlite"
"""The directory's file within the data directory."""

_NOUNS = {ORGANIZATIONS.name: "organization", WEBSITES.name: "website", API_KEYS.name: "key"}
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_BYTES = 12
_SECRET_BYTES = 32
_SALT_BYTES = 32
_PREFIX_LENGTH = 9


def open_directory(
    url_or_path: str | Path, clock: Clock, *, randomness: Randomness = secrets.token_bytes
) -> "SqlDirectory":
    """Open a directory, made or migrated where needed.

    Takes the path of an SQLite file or a database URL. Raises `OperatorError` when it cannot be
    used or a newer version of Millrace has written it.
    """
    connections = connect(url_or_path)
    directory = SqlDirectory(connections, clock=clock, randomness=randomness)
    try:
        with clear_errors(connections.place):
            migrate(connections)
    except BaseException:
        directory.close()
        raise
    return directory


class _Change(NamedTuple):
    """One changing transaction: its connection, and the revision that it makes."""

    connection: Connection
    revision: int


class SqlDirectory:
    """The `Directory` port over SQLAlchemy Core. May be used from several threads."""

    def __init__(self, connections: Connections, *, clock: Clock, randomness: Randomness) -> None:
        self._connections = connections
        self._clock = clock
        self._randomness = randomness

    def close(self) -> None:
        """Give the connections back. May be called twice."""
        self._connections.reading.dispose()

    def create_organization(self, name: str) -> Organization:
        """Create an organization."""
        name = check_name("an organization", name)
        with self._changing() as change:
            return self._add_organization(change, name)

    def default_organization(self) -> Organization:
        """Return the oldest organization named `default`, made when it is first needed."""
        with self._reading() as connection:
            found = _find_default_organization(connection)
        if found is not None:
            return found
        with self._changing() as change:
            return self._need_organization(change, None)

    def organizations(self) -> tuple[Organization, ...]:
        """All organizations, oldest first."""
        with self._reading() as connection:
            return tuple(map(read_organization, _all_rows(connection, ORGANIZATIONS)))

    def delete_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization and its keys. Its websites stay, without an organization."""
        with self._changing() as change:
            _delete_row(change, ORGANIZATIONS, organization_id)

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
        name = check_name("a website", name)
        domain = check_text("the domain of a website", domain)
        origins = tuple(dict.fromkeys(map(check_origin, origins)))
        with self._changing() as change:
            website = Website(
                id=WebsiteId(self._new_id("web")),
                name=name,
                domain=domain,
                organization_id=self._need_organization(change, organization_id).id,
                created_ms=self._clock.now_ms(),
                public=public,
                origins=origins,
            )
            _insert(change, WEBSITES, website_values(website))
        return website

    def websites(self) -> tuple[Website, ...]:
        """All websites, oldest first."""
        with self._reading() as connection:
            return tuple(map(read_website, _all_rows(connection, WEBSITES)))

    def delete_website(self, website_id: WebsiteId) -> None:
        """Delete a website. Its stored rows are not touched."""
        with self._changing() as change:
            _delete_row(change, WEBSITES, website_id)

    def create_key(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
        home_website_id: WebsiteId | None = None,
        expires_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its secret, which is not kept.

        Refuses websites that are not the organization's and a home that the key may not write.
        """
        secret = f"mr_{_encode(self._randomness(_SECRET_BYTES))}"
        with self._changing() as change:
            organization = self._need_organization(change, organization_id)
            websites = [_need_website(change, each) for each in dict.fromkeys(website_ids)]
            home = _need_website(change, home_website_id) if home_website_id is not None else None
            check_key(scopes=scopes, organization_id=organization.id, websites=websites, home=home)
            key = ApiKey(
                id=KeyId(self._new_id("key")),
                prefix=secret[:_PREFIX_LENGTH],
                secret_hash=hash_secret(secret),
                organization_id=organization.id,
                scopes=scopes,
                created_ms=self._clock.now_ms(),
                website_ids=tuple(website.id for website in websites),
                home_website_id=home.id if home else None,
                expires_ms=expires_ms,
            )
            _insert(change, API_KEYS, key_values(key))
        return key, secret

    def keys(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones included, oldest first."""
        with self._reading() as connection:
            return tuple(map(read_key, _all_rows(connection, API_KEYS)))

    def revoke_key(self, key_id: KeyId) -> None:
        """Revoke a key. Safe to call twice: the first time counts."""
        with self._changing() as change:
            _need_row(change.connection, API_KEYS, key_id)
            change.connection.execute(
                update(API_KEYS)
                .where(API_KEYS.c.id == key_id, API_KEYS.c.revoked_ms.is_(None))
                .values(revoked_ms=self._clock.now_ms())
            )

    def revision(self) -> int:
        """Return a number that changes with every change of websites, keys or organizations."""
        with self._reading() as connection:
            return _revision(connection)

    def tenancy(self) -> Tenancy:
        """Read everything the hot path needs, at one revision."""
        with self._reading() as connection:
            revision = _revision(connection)
            websites = [read_website(row) for row in _all_rows(connection, WEBSITES)]
            keys = [read_key(row) for row in _all_rows(connection, API_KEYS)]
        by_organization: defaultdict[OrganizationId, list[WebsiteId]] = defaultdict(list)
        for website in websites:
            if website.organization_id is not None:
                by_organization[website.organization_id].append(website.id)
        return Tenancy(
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
        with self._reading() as connection:
            salt = _find_salt(connection, day)
        if salt is not None:
            return salt
        with self._changing(counted=False) as change:
            salt = _find_salt(change.connection, day)
            if salt is not None:
                return salt
            salt = self._add_salt(change.connection, day)
        self._scrub_salts()
        return salt

    def _scrub_salts(self) -> None:
        """Let the database drop yesterday's salt from its files too, where it would keep it."""
        if self._connections.scrub is None:
            return
        engine, statement = self._connections.scrub
        try:
            with clear_errors(self._connections.place), engine.connect() as connection:
                connection.exec_driver_sql(statement)
        except OperatorError as error:  # the salt is deleted; a vacuum of the server's own comes
            get_logger().warning("old_salts_not_scrubbed", reason=str(error))

    def _add_salt(self, connection: Connection, day: str) -> bytes:
        salt = self._randomness(_SALT_BYTES)
        connection.execute(delete(VISITOR_SALTS).where(VISITOR_SALTS.c.day < day))
        connection.execute(insert(VISITOR_SALTS).values(day=day, salt=salt))
        return salt

    def _add_organization(self, change: _Change, name: str) -> Organization:
        organization = Organization(
            id=OrganizationId(self._new_id("org")), name=name, created_ms=self._clock.now_ms()
        )
        _insert(change, ORGANIZATIONS, organization_values(organization))
        return organization

    def _need_organization(
        self, change: _Change, organization_id: OrganizationId | None
    ) -> Organization:
        """Find an organization; None means the default one, which is made if there is none."""
        if organization_id is None:
            found = _find_default_organization(change.connection)
            return found or self._add_organization(change, DEFAULT_ORGANIZATION_NAME)
        return read_organization(_need_row(change.connection, ORGANIZATIONS, organization_id))

    def _new_id(self, kind: str) -> str:
        return f"{kind}_{_encode(self._randomness(_ID_BYTES))}"

    @contextlib.contextmanager
    def _reading(self) -> Generator[Connection]:
        with (
            clear_errors(self._connections.place),
            self._connections.reading.connect() as connection,
        ):
            yield connection

    @contextlib.contextmanager
    def _changing(self, *, counted: bool = True) -> Generator[_Change]:
        """Begin a change; it is kept when the block ends and undone when the block raises."""
        with (
            clear_errors(self._connections.place),
            self._connections.changing.begin() as connection,
        ):
            step = 1 if counted else 0
            connection.execute(
                update(DIRECTORY_REVISION).values(revision=DIRECTORY_REVISION.c.revision + step)
            )
            yield _Change(connection, _revision(connection))


def _encode(octets: bytes) -> str:
    """Write random bytes with letters and digits only, in a fixed length (12 bytes: 16; 32: 42).

    Unlike Base64 a double click selects it whole, and it never looks like an option of a command.
    """
    number = int.from_bytes(octets)
    text = ""
    for _ in range(math.floor(len(octets) * 8 / math.log2(len(_DIGITS)))):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text


def _revision(connection: Connection) -> int:
    revision: int = connection.execute(select(DIRECTORY_REVISION.c.revision)).scalar_one()
    return revision


def _find_salt(connection: Connection, day: str) -> bytes | None:
    return connection.scalar(select(VISITOR_SALTS.c.salt).where(VISITOR_SALTS.c.day == day))


def _all_rows(connection: Connection, table: Table) -> Sequence[Row[Any]]:
    return connection.execute(select(table).order_by(table.c.revision)).all()


def _need_row(connection: Connection, table: Table, row_id: str) -> Row[Any]:
    # Ids are ASCII. Other text is not even asked for: half a character would be a driver's error.
    found = (
        row_id.isascii() and connection.execute(select(table).where(table.c.id == row_id)).first()
    )
    if not found:
        raise OperatorError(f"no {_NOUNS[table.name]} has the id {row_id!r}")
    return found


def _find_default_organization(connection: Connection) -> Organization | None:
    row = connection.execute(
        select(ORGANIZATIONS)
        .where(ORGANIZATIONS.c.name == DEFAULT_ORGANIZATION_NAME)
        .order_by(ORGANIZATIONS.c.revision)
    ).first()
    return read_organization(row) if row else None


def _need_website(change: _Change, website_id: WebsiteId) -> Website:
    return read_website(_need_row(change.connection, WEBSITES, website_id))


def _insert(change: _Change, table: Table, values: Mapping[str, object]) -> None:
    change.connection.execute(insert(table).values(**values, revision=change.revision))


def _delete_row(change: _Change, table: Table, row_id: str) -> None:
    _need_row(change.connection, table, row_id)
    change.connection.execute(delete(table).where(table.c.id == row_id))
