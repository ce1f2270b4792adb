"""Organizations, websites and keys as a caller with `manage:config` lists and changes them.

Every method is blocking and takes the caller's key. It raises `RejectedField` or `InvalidQuery` for
a body that breaks a rule, `NotFound` for an id that is unknown or out of reach, and `OperatorError`
when the directory fails.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET, Struct

from headrace.administration.bodies import (
    NEW_KEY,
    NEW_WEBSITE,
    ORGANIZATION,
    WEBSITE_PATCH,
    RetentionBody,
    parse_scopes,
)
from headrace.administration.reach import Reach, find_reach
from headrace.base.errors import NotFound, RejectedField
from headrace.formats.directory_objects import (
    DeletedObject,
    KeyObject,
    NewKeyObject,
    OrganizationObject,
    WebsiteObject,
    deleted_object,
    key_object,
    new_key_object,
    organization_object,
    parse_expiry,
    website_object,
)
from headrace.model.audit import actor_name
from headrace.model.tenancy import ApiKey, Organization, Website, WebsiteChange, WebsiteId
from headrace.ports.directory import Directory
from headrace.query.validate.decode_body import decode_body


class Resource(Protocol):
    """One kind of objects."""

    def list(self, caller: ApiKey) -> Sequence[Struct]:
        """Return all objects in reach, oldest first."""
        ...

    def create(self, caller: ApiKey, body: bytes) -> Struct:
        """Create the object of a body and return it."""
        ...

    def read(self, caller: ApiKey, object_id: str) -> Struct:
        """Return an object."""
        ...

    def change(self, caller: ApiKey, object_id: str, body: bytes, /) -> Struct:
        """Change what a body names of an object, and return it."""
        ...

    def delete(self, caller: ApiKey, object_id: str) -> Struct:
        """Delete an object, and return it as it is then."""
        ...


class Organizations:
    """Organizations, which only the operator's keys reach."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def list(self, caller: ApiKey) -> list[OrganizationObject]:
        """Return all organizations to an operator, none to others."""
        return [organization_object(one) for one in self._reached(caller)]

    def create(self, caller: ApiKey, body: bytes) -> OrganizationObject:
        """Create an organization."""
        if not _reach(self._directory, caller).is_operator:
            raise RejectedField(
                "name", "only an unlimited key of the organization default creates organizations"
            )
        name = decode_body(body, ORGANIZATION).name
        return organization_object(_as(self._directory, caller).create_organization(name))

    def read(self, caller: ApiKey, object_id: str) -> OrganizationObject:
        """Return an organization."""
        return organization_object(self._find(caller, object_id))

    def change(self, caller: ApiKey, object_id: str, body: bytes) -> OrganizationObject:
        """Rename an organization."""
        organization_id = self._find(caller, object_id).id
        name = decode_body(body, ORGANIZATION).name
        directory = _as(self._directory, caller)
        return organization_object(directory.rename_organization(organization_id, name))

    def delete(self, caller: ApiKey, object_id: str) -> DeletedObject:
        """Delete an organization and its keys."""
        found = self._find(caller, object_id)
        _as(self._directory, caller).delete_organization(found.id)
        return deleted_object(object_id)

    def _reached(self, caller: ApiKey) -> tuple[Organization, ...]:
        organizations = self._directory.organizations()
        return organizations if find_reach(caller, organizations).is_operator else ()

    def _find(self, caller: ApiKey, object_id: str) -> Organization:
        for one in self._reached(caller):
            if one.id == object_id:
                return one
        raise NotFound


class Websites:
    """Websites, with their allowed origins and retention."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def list(self, caller: ApiKey) -> list[WebsiteObject]:
        """Return the websites in reach."""
        reach = _reach(self._directory, caller)
        return [website_object(one) for one in self._directory.websites() if reach.has_website(one)]

    def create(self, caller: ApiKey, body: bytes) -> WebsiteObject:
        """Create a website in the caller's organization, or in one that an operator names."""
        organizations = self._directory.organizations()
        reach = find_reach(caller, organizations)
        given = decode_body(body, NEW_WEBSITE)
        if reach.is_limited:
            raise RejectedField("name", "a key that is limited to websites cannot create another")
        made = _as(self._directory, caller).create_website(
            name=given.name,
            domain=given.domain or "",
            organization_id=reach.organization_for(given.organization, organizations),
            public=given.public or False,
            origins=given.origins or (),
            retention=given.retention or RetentionBody(),
        )
        return website_object(made)

    def read(self, caller: ApiKey, object_id: str) -> WebsiteObject:
        """Return a website."""
        return website_object(self._find(_reach(self._directory, caller), object_id))

    def change(self, caller: ApiKey, object_id: str, body: bytes) -> WebsiteObject:
        """Change a website. Changes of its retention have effect at once."""
        organizations = self._directory.organizations()
        reach = find_reach(caller, organizations)
        website_id = self._find(reach, object_id).id
        given = decode_body(body, WEBSITE_PATCH)
        owner = given.organization
        if owner is not UNSET:
            owner = reach.organization_for(owner, organizations) or UNSET
        change = WebsiteChange(
            name=given.name,
            domain=given.domain,
            organization_id=owner,
            public=given.public,
            origins=given.origins,
            retention=RetentionBody() if given.retention is UNSET else given.retention,
        )
        return website_object(_as(self._directory, caller).update_website(website_id, change))

    def delete(self, caller: ApiKey, object_id: str) -> DeletedObject:
        """Delete a website. Its stored rows remain."""
        found = self._find(_reach(self._directory, caller), object_id)
        _as(self._directory, caller).delete_website(found.id)
        return deleted_object(object_id)

    def _find(self, reach: Reach, object_id: str) -> Website:
        for one in self._directory.websites():
            if one.id == object_id and reach.has_website(one):
                return one
        raise NotFound


class Keys:
    """API keys and sessions. Keys are not changed: a changed one is a new one."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def list(self, caller: ApiKey) -> list[KeyObject]:
        """Return the keys and sessions in reach, revoked ones included."""
        reach = _reach(self._directory, caller)
        return [key_object(one) for one in _all_keys(self._directory) if reach.has_key(one)]

    def create(self, caller: ApiKey, body: bytes) -> NewKeyObject:
        """Create a key that reaches no further than the caller; the object has its secret."""
        organizations = self._directory.organizations()
        reach = find_reach(caller, organizations)
        given = decode_body(body, NEW_KEY)
        scopes = parse_scopes(given.scopes)
        organization_id = reach.organization_for(given.organization, organizations)
        websites = self._directory.websites()
        limits = reach.websites_for(given.websites or (), websites, field="websites")
        if reach.is_limited and not limits:
            names = ", ".join(caller.website_ids)
            raise RejectedField("websites", f"name at least one of those of your key: {names}")
        given_home = () if given.home is None else (given.home,)
        home = reach.websites_for(given_home, websites, field="home")
        made, secret = _as(self._directory, caller).create_key(
            scopes=scopes,
            organization_id=organization_id,
            website_ids=limits,
            default_website_id=WebsiteId(home[0]) if home else None,
            expires_ms=None if given.expires is None else parse_expiry(given.expires),
        )
        return new_key_object(made, secret)

    def read(self, caller: ApiKey, object_id: str) -> KeyObject:
        """Return a key without its secret."""
        return key_object(self._find(caller, object_id))

    def change(self, _caller: ApiKey, _object_id: str, _body: bytes, /) -> KeyObject:
        """Keys are not changed: there is no PATCH of them."""
        raise NotFound

    def delete(self, caller: ApiKey, object_id: str) -> KeyObject:
        """Revoke a key and its sessions, or a session."""
        _as(self._directory, caller).revoke_key(self._find(caller, object_id).id)
        return key_object(self._find(caller, object_id))

    def _find(self, caller: ApiKey, object_id: str) -> ApiKey:
        reach = _reach(self._directory, caller)
        for one in _all_keys(self._directory):
            if one.id == object_id and reach.has_key(one):
                return one
        raise NotFound


def _all_keys(directory: Directory) -> tuple[ApiKey, ...]:
    return directory.keys()


def _as(directory: Directory, caller: ApiKey) -> Directory:
    """Return the directory whose audit log shows the caller as the author of changes."""
    return directory.acting_as(actor_name(caller))


def _reach(directory: Directory, caller: ApiKey) -> Reach:
    return find_reach(caller, directory.organizations())
