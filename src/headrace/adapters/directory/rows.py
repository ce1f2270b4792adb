"""Converts the directory's model to column values, and rows to the model."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Row

from headrace.model.data_retention import DataRetention
from headrace.model.tenancy import ApiKey, KeyKind, Organization, Scope, SecretHash, Website


def organization_values(organization: Organization) -> Mapping[str, object]:
    """Return an organization's column values, without the revision."""
    return {
        "id": organization.id,
        "name": organization.name,
        "created_ms": organization.created_ms,
    }


def website_values(website: Website) -> Mapping[str, object]:
    """Return a website's column values, without the revision."""
    return {
        "id": website.id,
        "name": website.name,
        "domain": website.domain,
        "organization_id": website.organization_id,
        "public": website.public,
        "origins": list(website.origins),
        "created_ms": website.created_ms,
        "retention": {
            name: days for name, days in asdict(website.retention).items() if days is not None
        },
    }


def key_values(key: ApiKey) -> Mapping[str, object]:
    """Return a key's column values, without the revision."""
    return {
        "id": key.id,
        "prefix": key.prefix,
        "secret_hash": key.secret_hash,
        "organization_id": key.organization_id,
        "scopes": sorted(scope.value for scope in key.scopes),
        "website_ids": list(key.website_ids),
        "home_website_id": key.default_website_id,
        "created_ms": key.created_ms,
        "expires_ms": key.expires_ms,
        "revoked_ms": key.revoked_ms,
        "kind": key.kind.value,
        "parent_id": key.parent_id,
    }


def read_organization(row: Row[Any]) -> Organization:
    """Return the organization of a row."""
    return Organization(id=row.id, name=row.name, created_ms=row.created_ms)


def read_website(row: Row[Any]) -> Website:
    """Return the website of a row."""
    return Website(
        id=row.id,
        name=row.name,
        domain=row.domain,
        organization_id=row.organization_id,
        created_ms=row.created_ms,
        public=row.public,
        origins=tuple(row.origins),
        retention=DataRetention(**row.retention),
    )


def read_key(row: Row[Any]) -> ApiKey:
    """Return the key of a row."""
    return ApiKey(
        id=row.id,
        prefix=row.prefix,
        secret_hash=SecretHash(row.secret_hash),
        organization_id=row.organization_id,
        scopes=frozenset(map(Scope, row.scopes)),
        created_ms=row.created_ms,
        website_ids=tuple(row.website_ids),
        default_website_id=row.home_website_id,
        expires_ms=row.expires_ms,
        revoked_ms=row.revoked_ms,
        kind=KeyKind(row.kind),
        parent_id=row.parent_id,
    )
