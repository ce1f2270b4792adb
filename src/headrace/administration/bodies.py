"""The bodies of administration: what a request gives of an organization, a website or a key."""

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from headrace.base.errors import RejectedField
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import Scope
from headrace.query.validate.decode_body import BodyType
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json


class RetentionBody(RetentionChange, frozen=True, forbid_unknown_fields=True):
    """Days that rows are kept; null takes a value away."""


class OrganizationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST and PATCH of an organization."""

    name: str


class NewWebsite(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST of a website."""

    name: str
    domain: str | None = None
    organization: str | None = None
    public: bool | None = None
    origins: tuple[str, ...] | None = None
    retention: RetentionBody | None = None


class WebsitePatch(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH of a website; what is absent stays."""

    name: str | UnsetType = UNSET
    domain: str | UnsetType = UNSET
    organization: str | UnsetType = UNSET
    public: bool | UnsetType = UNSET
    origins: tuple[str, ...] | UnsetType = UNSET
    retention: RetentionBody | UnsetType = UNSET


class NewKey(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST of a key."""

    scopes: tuple[str, ...]
    organization: str | None = None
    websites: tuple[str, ...] | None = None
    home: str | None = None
    expires: str | None = None


ORGANIZATION: Final = BodyType(OrganizationBody, {})
NEW_WEBSITE: Final = BodyType(NewWebsite, {"retention": RetentionBody})
WEBSITE_PATCH: Final = BodyType(WebsitePatch, {"retention": RetentionBody})
NEW_KEY: Final = BodyType(NewKey, {})


def parse_scopes(names: tuple[str, ...]) -> frozenset[Scope]:
    """Return scopes by their names. Raises `RejectedField`."""
    known = {scope.value: scope for scope in Scope}
    for name in names:
        if name not in known:
            hint = did_you_mean_one_of(name, known)
            raise RejectedField("scopes", f"unknown scope {quote_json(name)}{hint}")
    return frozenset(known[name] for name in names)
