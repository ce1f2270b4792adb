"""Websites, keys, organizations: administration, and the snapshot that the hot path reads."""

from typing import Protocol

from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteId,
)


class Directory(Protocol):
    """Administration. Blocking; every call is one transaction; safe from several processes.

    Raises `OperatorError` with one clear sentence when what is asked for cannot be done.
    """

    def create_organization(self, name: str) -> Organization:
        """Create an organization."""
        ...

    def default_organization(self) -> Organization:
        """Return the organization `default`, made when it is first needed."""
        ...

    def organizations(self) -> tuple[Organization, ...]:
        """All organizations, oldest first."""
        ...

    def delete_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization and its keys. Its websites stay, without an organization."""
        ...

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
        ...

    def websites(self) -> tuple[Website, ...]:
        """All websites, oldest first."""
        ...

    def delete_website(self, website_id: WebsiteId) -> None:
        """Delete a website. Its stored rows are not touched."""
        ...

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
        ...

    def keys(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones included, oldest first."""
        ...

    def revoke_key(self, key_id: KeyId) -> None:
        """Revoke a key. Safe to call twice."""
        ...

    def revision(self) -> int:
        """Return a number that changes with every change of websites, keys or organizations."""
        ...

    def tenancy(self) -> TenancySnapshot:
        """Read everything the hot path needs, at one revision."""
        ...

    def visitor_salt(self, day: str) -> bytes:
        """Return the secret salt of a UTC day (YYYY-MM-DD): the same for all processes.

        Made when first asked for; salts of earlier days are destroyed then.
        """
        ...


class TenancySource(Protocol):
    """The hot path's view: a snapshot in memory that follows the directory."""

    def current(self) -> TenancySnapshot:
        """Return the snapshot without I/O; at most a few seconds old while the directory is there.

        Raises `DirectoryUnavailable` when the directory has been away for too long to rely on it.
        """
        ...

    async def refreshed(self) -> TenancySnapshot:
        """Return a snapshot that knows every change made before the call.

        For keys and websites that the snapshot does not know. Does one cheap read at most, and
        concurrent calls share it. Raises `DirectoryUnavailable` when the directory cannot be read
        now: what the snapshot does not know may have been made since.
        """
        ...
