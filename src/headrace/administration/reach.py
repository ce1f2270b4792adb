"""What a key with the scope `manage:config` may see and change."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from headrace.base.errors import RejectedField
from headrace.model.audit import AuditReach
from headrace.model.tenancy import (
    DEFAULT_ORGANIZATION_NAME,
    ApiKey,
    Organization,
    OrganizationId,
    Website,
    WebsiteId,
)


class Reach(Struct, frozen=True):
    """The reach of a key: its organization's websites and keys.

    One that is limited to websites reaches these, and keys that reach no others. `is_operator`
    marks the keys that reach everything: the unlimited ones of the organization `default`.
    """

    key: ApiKey
    is_operator: bool

    @property
    def is_limited(self) -> bool:
        """Return whether the key is limited to websites."""
        return bool(self.key.website_ids)

    @property
    def of_audit_log(self) -> AuditReach | None:
        """Return which lines of the audit log are in reach; None for all."""
        if self.is_operator:
            return None
        return AuditReach(self.key.organization_id, frozenset(self.key.website_ids))

    def has_organization(self, organization_id: OrganizationId | None) -> bool:
        """Return whether websites and keys of an organization may be in reach."""
        return self.is_operator or organization_id == self.key.organization_id

    def has_website(self, website: Website) -> bool:
        """Return whether a website is in reach."""
        return self.is_operator or self.key.can_access(website)

    def has_key(self, key: ApiKey) -> bool:
        """Return whether a key is in reach: it reaches no further itself."""
        if not self.has_organization(key.organization_id):
            return False
        if not self.is_limited:
            return True
        return bool(key.website_ids) and set(key.website_ids) <= set(self.key.website_ids)

    def organization_for(
        self, given: str | None, organizations: Sequence[Organization]
    ) -> OrganizationId | None:
        """Return the owner of what is created or moved; None means the default organization.

        Raises `RejectedField` for an organization that is unknown or out of reach.
        """
        if given is None:
            return None if self.is_operator else self.key.organization_id
        wanted = OrganizationId(given)
        if wanted == self.key.organization_id:
            return wanted
        if self.is_operator and any(one.id == wanted for one in organizations):
            return wanted
        raise RejectedField("organization", f"no organization has the id {given!r}")

    def websites_for(
        self, given: Iterable[str], websites: Sequence[Website], *, field: str
    ) -> tuple[WebsiteId, ...]:
        """Return websites by their ids. Raises `RejectedField` for one unknown or out of reach."""
        reachable = {website.id for website in websites if self.has_website(website)}
        for one in given:
            if one not in reachable:
                raise RejectedField(field, f"no website has the id {one!r}")
        return tuple(map(WebsiteId, given))


def find_reach(key: ApiKey, organizations: Sequence[Organization]) -> Reach:
    """Return the reach of a key; `organizations` are all, oldest first."""
    default = next((one.id for one in organizations if one.name == DEFAULT_ORGANIZATION_NAME), None)
    return Reach(key, is_operator=not key.website_ids and key.organization_id == default)
