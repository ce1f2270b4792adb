"""Lines of the audit log: who changed what, and when."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NewType

from msgspec import Struct

from headrace.model.tenancy import ApiKey, KeyId, KeyKind, OrganizationId, WebsiteId

AuditLineId = NewType("AuditLineId", str)

_SESSION: Final = "session "

DEFAULT_AUDIT_LINES: Final = 100
MAX_AUDIT_LINES: Final = 1_000
"""The lines of one answer: where no limit is given, and at most."""


class AuditAction(Enum):
    """What was done."""

    ORGANIZATION_CREATE = "organization.create"
    ORGANIZATION_UPDATE = "organization.update"
    ORGANIZATION_DELETE = "organization.delete"
    WEBSITE_CREATE = "website.create"
    WEBSITE_UPDATE = "website.update"
    WEBSITE_DELETE = "website.delete"
    KEY_CREATE = "key.create"
    KEY_REVOKE = "key.revoke"
    KEY_DELETE = "key.delete"
    SESSION_CREATE = "session.create"
    CODE_CREATE = "code.create"
    CODE_USE = "code.use"
    QUARANTINE_RETRY = "quarantine.retry"
    ERASURE_CREATE = "erasure.create"
    MACHINE_FORGET = "machine.forget"
    ROWS_PRUNE = "rows.prune"
    ROWS_IMPORT = "rows.import"
    ROWS_EXPORT = "rows.export"
    BACKUP_RESTORE = "backup.restore"


class AuditedChange(Struct, frozen=True, kw_only=True):
    """A change as its line shows it: JSON objects from before and after it, without secrets.

    `object_id` is None for what has no id. A line is in reach of the keys of an organization where
    `organization_id` is given, and of those that are limited to websites where they have all of
    `website_ids`, which are not empty.
    """

    action: AuditAction
    object_id: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    organization_id: OrganizationId | None = None
    website_ids: tuple[WebsiteId, ...] = ()


class AuditLine(Struct, frozen=True):
    """A line. `by` is the id of a key, `session ID`, `cli USER`, or `headrace` for the service."""

    id: AuditLineId
    time_ms: int
    by: str
    change: AuditedChange


class AuditReach(Struct, frozen=True):
    """The lines of an organization; with `website_ids`, those about these websites alone."""

    organization_id: OrganizationId
    website_ids: frozenset[WebsiteId] = frozenset()

    def has(self, line: AuditLine) -> bool:
        """Return whether a line is in reach."""
        if line.change.organization_id != self.organization_id:
            return False
        if not self.website_ids:
            return True
        return bool(line.change.website_ids) and self.website_ids.issuperset(
            line.change.website_ids
        )


def actor_name(key: ApiKey) -> str:
    """Return the name under which a key or a session changes things."""
    return key.id if key.kind is KeyKind.KEY else f"{_SESSION}{key.id}"


def session_of(name: str) -> KeyId | None:
    """Return the session that changes things under a name; None for anybody else."""
    return KeyId(name.removeprefix(_SESSION)) if name.startswith(_SESSION) else None
