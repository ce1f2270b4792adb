"""Organizations, websites, API keys, and the credentials of one request."""

import hashlib
from collections.abc import Mapping
from enum import Enum
from typing import NewType

from msgspec import UNSET, Struct, UnsetType

from headrace.model.data_retention import NO_RETENTION, DataRetention, RetentionChange

OrganizationId = NewType("OrganizationId", str)
WebsiteId = NewType("WebsiteId", str)
KeyId = NewType("KeyId", str)
SecretHash = NewType("SecretHash", bytes)

DEFAULT_ORGANIZATION_NAME = "default"
DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
"""The default ports of schemes, which browsers omit from an origin."""


def hash_secret(secret: str) -> SecretHash:
    """Return the SHA-256 of a key's secret, 32 bytes: the only form that is stored.

    Not a slow, salted hash: those protect passwords, which can be guessed. These secrets are random
    with more than 190 bits, and every request computes the hash.
    """
    return SecretHash(hashlib.sha256(secret.encode(errors="surrogatepass")).digest())


class Scope(Enum):
    """A permission of an API key."""

    TRACK_EVENTS = "track:events"
    READ_DATA = "read:data"
    MANAGE_DATA = "manage:data"
    MANAGE_CONFIG = "manage:config"


class Organization(Struct, frozen=True):
    """Owns websites and keys."""

    id: OrganizationId
    name: str
    created_ms: int


class Website(Struct, frozen=True):
    """A website that events belong to. Its id is public.

    `organization_id` is None once the organization was deleted. `origins` are exact origins
    (`https://example.com:8443`) or `*.example.com` for its subdomains at any depth.
    """

    id: WebsiteId
    name: str
    domain: str
    organization_id: OrganizationId | None
    created_ms: int
    public: bool = False
    origins: tuple[str, ...] = ()
    retention: DataRetention = NO_RETENTION


class WebsiteChange(Struct, frozen=True, kw_only=True):
    """New values of a website; what is UNSET stays. `origins` replace all of them."""

    name: str | UnsetType = UNSET
    domain: str | UnsetType = UNSET
    organization_id: OrganizationId | UnsetType = UNSET
    public: bool | UnsetType = UNSET
    origins: tuple[str, ...] | UnsetType = UNSET
    retention: RetentionChange = RetentionChange()


class KeyKind(Enum):
    """What may carry a key's secret: headers of any client, or the cookie of the page."""

    KEY = "key"
    SESSION = "session"


class ApiKey(Struct, frozen=True):
    """A credential. Its secret is shown once and not stored; `prefix` identifies it to people.

    `parent_id` is the key that a session was begun with, with which it ends.
    """

    id: KeyId
    prefix: str
    secret_hash: SecretHash
    organization_id: OrganizationId
    scopes: frozenset[Scope]
    created_ms: int
    website_ids: tuple[WebsiteId, ...] = ()
    default_website_id: WebsiteId | None = None
    expires_ms: int | None = None
    revoked_ms: int | None = None
    kind: KeyKind = KeyKind.KEY
    parent_id: KeyId | None = None

    def is_valid_at(self, now_ms: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        if self.revoked_ms is not None:
            return False
        return self.expires_ms is None or now_ms < self.expires_ms

    def can_access(self, website: Website) -> bool:
        """Return whether a website is in the key's organization and, if it has one, its list."""
        if website.organization_id != self.organization_id:
            return False
        return not self.website_ids or website.id in self.website_ids


class TenancySnapshot(Struct, frozen=True):
    """All websites and valid keys, at one revision of the directory.

    `keys` has every key that is not revoked, and `sessions` every session, by the hash of the
    secret.
    `websites_by_organization` is in the order of creation.
    """

    revision: int
    websites: Mapping[WebsiteId, Website]
    keys: Mapping[SecretHash, ApiKey]
    websites_by_organization: Mapping[OrganizationId, tuple[WebsiteId, ...]]
    sessions: Mapping[SecretHash, ApiKey] = {}

    def default_website(self, key: ApiKey) -> WebsiteId | None:
        """Return the website of events that name none: the configured or only possible one.

        A configured website that was deleted counts as none.
        """
        if key.default_website_id in self.websites:
            return key.default_website_id
        candidates = key.website_ids or self.websites_by_organization.get(key.organization_id, ())
        return candidates[0] if len(candidates) == 1 else None


class Credentials(Struct, frozen=True, cache_hash=True):
    """The credentials of one ingestion request, not verified.

    `api_key` is None when the request has no key, and "" for an empty one, which is invalid.
    `website_id` is the first non-empty identifier in the query string and headers.
    """

    api_key: str | None = None
    website_id: str | None = None
    origin: str | None = None
