"""Checks what a command is to create, before a data directory is created for it.

The directory checks it again. Every function raises `RejectedField`.
"""

from collections.abc import Sequence

from headrace.adapters.directory.rules import (
    check_key,
    normalize_name,
    normalize_origins,
    normalize_text,
)
from headrace.model.tenancy import OrganizationId, Scope


def check_new_organization(name: str) -> None:
    """Check the name of an organization."""
    normalize_name("an organization", name)


def check_new_website(*, name: str, domain: str, origins: Sequence[str]) -> None:
    """Check the name, the domain and the allowed origins of a website."""
    normalize_name("a website", name)
    normalize_text("the domain of a website", domain)
    normalize_origins(origins)


def check_new_key(scopes: frozenset[Scope]) -> None:
    """Check the scopes of a key that names no website."""
    check_key(scopes=scopes, organization_id=OrganizationId(""), websites=(), home=None)
