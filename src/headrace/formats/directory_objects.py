"""The JSON objects of organizations, websites and keys, and of the lines about their changes.

They are the same for commands, over HTTP and in the audit log.
"""

from typing import Any

from msgspec.structs import asdict

from headrace.base.clock import utc_datetime
from headrace.base.datetime_text import format_iso, parse_iso_8601
from headrace.base.errors import RejectedField
from headrace.model.audit import AuditLine
from headrace.model.tenancy import ApiKey, Organization, Website

JsonObject = dict[str, Any]


def organization_object(organization: Organization) -> JsonObject:
    """Return the JSON object of an organization."""
    return {
        "id": organization.id,
        "name": organization.name,
        "created": format_iso(organization.created_ms),
    }


def website_object(website: Website) -> JsonObject:
    """Return the JSON object of a website."""
    return {
        "id": website.id,
        "name": website.name,
        "domain": website.domain,
        "organization": website.organization_id,
        "public": website.public,
        "origins": website.origins,
        "retention": asdict(website.retention),
        "created": format_iso(website.created_ms),
    }


def key_object(key: ApiKey) -> JsonObject:
    """Return the JSON object of a key, without its secret."""
    return {
        "id": key.id,
        "prefix": key.prefix,
        "scopes": scope_names(key),
        "organization": key.organization_id,
        "websites": key.website_ids,
        "home": key.default_website_id,
        "created": format_iso(key.created_ms),
        "expires": None if key.expires_ms is None else format_iso(key.expires_ms),
        "kind": key.kind.value,
        "revoked": None if key.revoked_ms is None else format_iso(key.revoked_ms),
    }


def new_key_object(key: ApiKey, secret: str) -> JsonObject:
    """Return the JSON object of a key that was just created: the only one with its secret."""
    return {"key": secret, **key_object(key)}


def code_object(code: ApiKey) -> JsonObject:
    """Return the JSON object of a sign-in code: the rights of its session, without the code."""
    return {
        "scopes": scope_names(code),
        "organization": code.organization_id,
        "websites": code.website_ids,
        "created": format_iso(code.created_ms),
        "expires": format_iso(code.expires_ms or 0),
    }


def audit_object(line: AuditLine) -> JsonObject:
    """Return the JSON object of a line of the audit log."""
    return {
        "id": line.id,
        "time": format_iso(line.time_ms),
        "by": line.by,
        "action": line.change.action.value,
        "object": line.change.object_id,
        "before": line.change.before,
        "after": line.change.after,
    }


def deleted_object(object_id: str) -> JsonObject:
    """Return the JSON object of what is no more."""
    return {"id": object_id, "deleted": True}


def scope_names(key: ApiKey) -> list[str]:
    """Return the names of a key's scopes, sorted."""
    return sorted(scope.value for scope in key.scopes)


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
