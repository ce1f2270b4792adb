"""Sessions and sign-in codes beside the keys, in the same database."""

from msgspec import structs

from headrace.adapters.directory.audit_lines import record_code, record_used_code
from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.rows import key_values
from headrace.adapters.directory.rules import check_key
from headrace.adapters.directory.statements import (
    delete_ended_sessions,
    find_key,
    insert_code,
    insert_row,
    require_website,
    resolve_organization,
    revoke_session,
    take_code,
)
from headrace.adapters.directory.tables import API_KEYS
from headrace.adapters.directory.tokens import (
    PREFIX_LENGTH,
    new_code,
    new_id,
    new_session_secret,
)
from headrace.adapters.directory.transactions import Author, writing
from headrace.model.audit import actor_name
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    KeyKind,
    OrganizationId,
    Scope,
    WebsiteId,
    hash_secret,
)
from headrace.ports.sessions import CODE_MS, SESSION_MS


class SqlSessions:
    """The `Sessions` port over the directory's database. Safe to use from several threads."""

    def __init__(self, database: DirectoryDatabase, author: Author) -> None:
        self._database = database
        self._author = author
        self._clock = author.clock
        self._randomness = author.randomness

    def create_code(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
    ) -> str:
        """Create a code that begins one session; see `Sessions.create_code`."""
        code = new_code(self._randomness)
        now_ms = self._clock.now_ms()
        with writing(self._database, self._author) as transaction:
            organization = resolve_organization(transaction, organization_id)
            websites = [require_website(transaction, each) for each in dict.fromkeys(website_ids)]
            check_key(scopes=scopes, organization_id=organization.id, websites=websites, home=None)
            delete_ended_sessions(transaction.connection, now_ms)
            rights = ApiKey(
                id=KeyId(""),
                prefix="",
                secret_hash=hash_secret(code),
                organization_id=organization.id,
                scopes=scopes,
                created_ms=now_ms,
                website_ids=tuple(website.id for website in websites),
                expires_ms=now_ms + CODE_MS,
            )
            insert_code(transaction, rights)
            record_code(transaction, rights)
        return code

    def begin_with_code(self, code: str) -> tuple[ApiKey, str] | None:
        """Use up a code and begin its session."""
        now_ms = self._clock.now_ms()
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            rights = take_code(transaction.connection, hash_secret(code), now_ms)
        if rights is None:
            return None
        # In a transaction of its own: a wrong code must not make all workers read the directory.
        return self._insert(rights, now_ms)

    def begin_with_key(self, secret: str) -> tuple[ApiKey, str] | None:
        """Begin a session with the rights of a key."""
        now_ms = self._clock.now_ms()
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            key = find_key(transaction.connection, hash_secret(secret))
        if key is None or key.kind is not KeyKind.KEY or not key.is_valid_at(now_ms):
            return None
        return self._insert(key, now_ms)

    def end(self, session_id: KeyId) -> None:
        """End a session."""
        with writing(self._database, self._author) as transaction:
            revoke_session(transaction.connection, session_id, self._clock.now_ms())

    def _insert(self, rights: ApiKey, now_ms: int) -> tuple[ApiKey, str] | None:
        """Insert a session with the rights of a key, or of a code, whose id is empty.

        None where the key was revoked or deleted since it was read: its sessions ended then.
        """
        secret = new_session_secret(self._randomness)
        ends_ms = now_ms + SESSION_MS
        session = structs.replace(
            rights,
            id=KeyId(new_id("ses", self._randomness)),
            prefix=secret[:PREFIX_LENGTH],
            secret_hash=hash_secret(secret),
            created_ms=now_ms,
            expires_ms=ends_ms if rights.expires_ms is None else min(ends_ms, rights.expires_ms),
            kind=KeyKind.SESSION,
            parent_id=rights.id or None,
        )
        author = structs.replace(self._author, name=actor_name(session))
        with writing(self._database, author) as transaction:
            if session.parent_id is not None:
                parent = find_key(transaction.connection, rights.secret_hash)
                if parent is None or parent.revoked_ms is not None:
                    return None
            delete_ended_sessions(transaction.connection, now_ms)
            insert_row(transaction, API_KEYS, key_values(session))
            if session.parent_id is None:
                record_used_code(transaction, session)
        return session, secret
