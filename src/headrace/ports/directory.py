"""Websites, keys, organizations: administration, and the snapshot that the hot path reads."""

from typing import Protocol, TypeAlias

from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteChange,
    WebsiteId,
)
from headrace.ports.audit import AuditLog
from headrace.ports.saved_queries import SavedQueries
from headrace.ports.sessions import Sessions

ChangeMarker: TypeAlias = tuple[int, ...]


class Directory(Protocol):
    """Administration. Blocking; every call is one transaction; safe from several processes.

    Every change has its line in the audit log, written in the same transaction. Raises
    `OperatorError` with one clear sentence when a request cannot be carried out.
    """

    def acting_as(self, name: str) -> "Directory":
        """Return the same directory, whose changes the audit log shows as made by `name`."""
        ...

    @property
    def audit_log(self) -> AuditLog:
        """The lines of all changes."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions of the page, which stand beside the keys."""
        ...

    @property
    def saved_queries(self) -> SavedQueries:
        """The saved queries, which stand beside the websites."""
        ...

    def create_organization(self, name: str) -> Organization:
        """Create an organization."""
        ...

    def organizations(self) -> tuple[Organization, ...]:
        """Return all organizations, oldest first."""
        ...

    def rename_organization(self, organization_id: OrganizationId, name: str) -> Organization:
        """Rename an organization and return it."""
        ...

    def delete_organization(self, organization_id: OrganizationId) -> None:
        """Delete an organization and its keys. Its websites remain, without an organization."""
        ...

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
        ...

    def websites(self) -> tuple[Website, ...]:
        """Return all websites, oldest first."""
        ...

    def update_website(self, website_id: WebsiteId, change: WebsiteChange) -> Website:
        """Change a website and return it. Changes of its retention have effect at once."""
        ...

    def delete_website(self, website_id: WebsiteId) -> None:
        """Delete a website. Its stored rows remain."""
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
        """Create a key and return it with its secret, which is not stored.

        Rejects websites of other organizations, and a default website that the key cannot write to.
        """
        ...

    def keys(self) -> tuple[ApiKey, ...]:
        """Return all keys and sessions, oldest first, including revoked ones."""
        ...

    def revoke_key(self, key_id: KeyId) -> None:
        """Revoke a key and its sessions, or one session. Safe to call twice."""
        ...

    def revision(self) -> int:
        """Return a number that changes with every change of websites, keys or organizations."""
        ...

    def change_marker(self) -> ChangeMarker:
        """Return what is different after a change made on this machine, without a transaction.

        It takes microseconds and never fails. Always () for a database server: poll the revision.
        """
        ...

    def tenancy(self) -> TenancySnapshot:
        """Read everything that the hot path needs, at one revision."""
        ...

    def visitor_salt(self, day: str) -> bytes:
        """Return the secret salt of a UTC day (YYYY-MM-DD): the same for all processes.

        The first call of a day creates it and destroys the salts of earlier days.
        """
        ...

    def forget_visitor_salts(self, before: str) -> None:
        """Destroy the salts of the days before a UTC day (YYYY-MM-DD), also in free space of files.

        One cheap read where there are none. Safe to call twice.
        """
        ...


class TenancySource(Protocol):
    """The hot path's view of the directory: a snapshot in memory, refreshed when it changes."""

    def current(self) -> TenancySnapshot:
        """Return the snapshot without I/O; a few seconds old at most while the directory is up.

        Raises `DirectoryUnavailable` when the snapshot is older than the maximum staleness.
        """
        ...

    async def refreshed(self) -> TenancySnapshot:
        """Return a snapshot that includes every change made before the call.

        Call it for keys and websites that are missing from the snapshot. Costs at most one cheap
        read, which concurrent calls share. Raises `DirectoryUnavailable` when the directory cannot
        be read now: what is missing may have been created since.
        """
        ...


class LatestTenancySource(TenancySource, Protocol):
    """A `TenancySource` that knows whether this machine has changed the directory since."""

    def is_latest(self) -> bool:
        """Return whether `current` has every change that was made on this machine.

        It takes microseconds and never fails. Always true for a database server.
        """
        ...

    async def latest(self) -> TenancySnapshot:
        """Return a snapshot with every change that was made on this machine before the call.

        Reads the directory only after such a change. While that fails, returns the last snapshot.
        Raises what `current` raises.
        """
        ...
