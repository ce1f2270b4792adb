"""The JSON objects of organizations, websites and keys, and of the lines about their changes.

They are the same for commands, over HTTP and in the audit log.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from headrace.base.clock import utc_datetime
from headrace.base.datetime_text import format_iso, parse_iso_8601
from headrace.base.errors import RejectedField
from headrace.model.audit import AuditAction, AuditLine
from headrace.model.tenancy import ApiKey, KeyKind, Organization, Scope, Website

JsonObject = dict[str, Any]


class OrganizationObject(Struct, frozen=True):
    """An organization, which owns websites and keys."""

    id: str
    name: str
    created: str


class RetentionObject(Struct, frozen=True):
    """The days that rows of a website are kept: 0 is for ever, null leaves it to the next.

    A table without days of its own has `days`, and a website without has those of the service.
    """

    days: int | None
    events: int | None
    errors: int | None
    performance: int | None


class WebsiteObject(Struct, frozen=True):
    """A website."""

    id: str
    name: str
    domain: str
    organization: str | None
    public: bool
    origins: tuple[str, ...]
    retention: RetentionObject
    created: str


class KeyObject(Struct, frozen=True):
    """An API key or a session, without its secret."""

    id: str
    prefix: str
    scopes: tuple[Scope, ...]
    organization: str
    websites: tuple[str, ...]
    home: str | None
    created: str
    expires: str | None
    kind: KeyKind
    revoked: str | None


class NewKeyObject(KeyObject, frozen=True):
    """An API key that was just created: the only object with a secret."""

    key: str


class CodeObject(Struct, frozen=True):
    """A sign-in code: the rights of its session, without the code."""

    scopes: tuple[Scope, ...]
    organization: str
    websites: tuple[str, ...]
    created: str
    expires: str


class DeletedObject(Struct, frozen=True):
    """What is no more."""

    id: str
    deleted: bool


class AuditObject(Struct, frozen=True):
    """A line of the audit log. What changed is shown as it was then."""

    id: str
    time: str
    by: str
    action: AuditAction
    object: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def organization_object(organization: Organization) -> OrganizationObject:
    """Return the JSON object of an organization."""
    return OrganizationObject(
        id=organization.id,
        name=organization.name,
        created=format_iso(organization.created_ms),
    )


def website_object(website: Website) -> WebsiteObject:
    """Return the JSON object of a website."""
    return WebsiteObject(
        id=website.id,
        name=website.name,
        domain=website.domain,
        organization=website.organization_id,
        public=website.public,
        origins=website.origins,
        retention=RetentionObject(**asdict(website.retention)),
        created=format_iso(website.created_ms),
    )


def key_object(key: ApiKey) -> KeyObject:
    """Return the JSON object of a key, without its secret."""
    return KeyObject(
        id=key.id,
        prefix=key.prefix,
        scopes=sorted_scopes(key),
        organization=key.organization_id,
        websites=key.website_ids,
        home=key.default_website_id,
        created=format_iso(key.created_ms),
        expires=None if key.expires_ms is None else format_iso(key.expires_ms),
        kind=key.kind,
        revoked=None if key.revoked_ms is None else format_iso(key.revoked_ms),
    )


def new_key_object(key: ApiKey, secret: str) -> NewKeyObject:
    """Return the JSON object of a key that was just created: the only one with its secret."""
    return NewKeyObject(**asdict(key_object(key)), key=secret)


def code_object(code: ApiKey) -> CodeObject:
    """Return the JSON object of a sign-in code: the rights of its session, without the code."""
    return CodeObject(
        scopes=sorted_scopes(code),
        organization=code.organization_id,
        websites=code.website_ids,
        created=format_iso(code.created_ms),
        expires=format_iso(code.expires_ms or 0),
    )


def audit_object(line: AuditLine) -> AuditObject:
    """Return the JSON object of a line of the audit log."""
    return AuditObject(
        id=line.id,
        time=format_iso(line.time_ms),
        by=line.by,
        action=line.change.action,
        object=line.change.object_id,
        before=line.change.before,
        after=line.change.after,
    )


def deleted_object(object_id: str) -> DeletedObject:
    """Return the JSON object of what is no more."""
    return DeletedObject(id=object_id, deleted=True)


def sorted_scopes(key: ApiKey) -> tuple[Scope, ...]:
    """Return a key's scopes, sorted by name."""
    return tuple(sorted(key.scopes, key=lambda scope: scope.value))


def scope_names(key: ApiKey) -> list[str]:
    """Return the names of a key's scopes, sorted."""
    return [scope.value for scope in sorted_scopes(key)]


def parse_expiry(text: str) -> int:
    """Return epoch milliseconds of an ISO 8601 date or date-time. Without an offset it is UTC.

    Raises `RejectedField` for any other text, and for a time that is not in the years 1 to 9999.
    """
    parsed = parse_iso_8601(text.strip())
    if parsed is None:
        raise RejectedField(
            "expires",
            f"{text!r} is not an ISO 8601 date, such as 2027-01-31 or 2027-01-31T12:00:00Z",
        )
    try:
        utc_datetime(parsed.epoch_ms)
    except ValueError as error:  # an offset can move it past the years that can be shown
        raise RejectedField("expires", f"{text!r} is not in the years 1 to 9999 of UTC") from error
    return parsed.epoch_ms
