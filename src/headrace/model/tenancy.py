"""Who owns what: organizations, websites, API keys, and the credentials of one request."""

import hashlib
from collections.abc import Mapping
from enum import Enum
from typing import NewType

from msgspec import Struct

OrganizationId = NewType("OrganizationId", str)
WebsiteId = NewType("WebsiteId", str)
KeyId = NewType("KeyId", str)
SecretHash = NewType("SecretHash", bytes)

DEFAULT_ORGANIZATION_NAME = "default"
DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
"""The port of a scheme that browsers leave out of an origin."""


def hash_secret(secret: str) -> SecretHash:
    """Return what is kept of a key's secret: its SHA-256, 32 bytes. Takes any text.

    A slow, salted hash protects secrets that people choose and that can be guessed. These are
    random with more than 190 bits: there is nothing to guess, and every request pays the price.
    """
    return SecretHash(hashlib.sha256(secret.encode(errors="surrogatepass")).digest())


class Scope(Enum):
    """What a key may do."""

    TRACK_EVENTS = "track:events"
    READ_DATA = "read:data"


class Organization(Struct, frozen=True):
    """Owns websites and keys."""

    id: OrganizationId
    name: str
    created_ms: int


class Website(Struct, frozen=True):
    """A place that events belong to. Its id is public.

    `organization_id` is None once the organization was deleted. `origins` are exact origins
    (`https://example.com:8443`) or `*.example.com` for the subdomains at any depth.
    """

    id: WebsiteId
    name: str
    domain: str
    organization_id: OrganizationId | None
    created_ms: int
    public: bool = False
    origins: tuple[str, ...] = ()


class ApiKey(Struct, frozen=True):
    """A credential. The secret itself is shown once and never kept; `prefix` is for people."""

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

    def is_valid_at(self, now_ms: int) -> bool:
        """Tell whether the key is neither revoked nor expired."""
        if self.revoked_ms is not None:
            return False
        return self.expires_ms is None or now_ms < self.expires_ms

    def can_access(self, website: Website) -> bool:
        """Tell whether a website is within the key's organization and list."""
        if website.organization_id != self.organization_id:
            return False
        return not self.website_ids or website.id in self.website_ids


class TenancySnapshot(Struct, frozen=True):
    """Everything that the hot path asks about websites and keys, at one revision of the directory.

    `keys` holds every key that was not revoked, by the hash of its secret;
    `websites_by_organization` keeps the order of creation.
    """

    revision: int
    websites: Mapping[WebsiteId, Website]
    keys: Mapping[SecretHash, ApiKey]
    websites_by_organization: Mapping[OrganizationId, tuple[WebsiteId, ...]]

    def default_website(self, key: ApiKey) -> WebsiteId | None:
        """Return where events go that name no website: chosen, else the only possible one."""
        if key.default_website_id is not None:
            return key.default_website_id
        candidates = key.website_ids or self.websites_by_organization.get(key.organization_id, ())
        return candidates[0] if len(candidates) == 1 else None


class Credentials(Struct, frozen=True):
    """What one ingestion request says of itself, as it came.

    `api_key` is None when there was no key at all, and "" for an empty one (which is invalid).
    `website_id` is the first identifier of query and headers that is not empty.
    """

    api_key: str | None = None
    website_id: str | None = None
    origin: str | None = None
