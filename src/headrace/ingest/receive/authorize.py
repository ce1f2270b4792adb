"""Whether a request may write, and where each of its items goes. Pure: decides on one snapshot."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

from headrace.base.errors import (
    Fault,
    InvalidApiKey,
    InvalidBody,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    ScopeMismatch,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.ingest.receive.validation_errors import MAX_FAULTS
from headrace.model.tenancy import (
    DEFAULT_PORTS,
    ApiKey,
    Credentials,
    Scope,
    Tenancy,
    Website,
    WebsiteId,
    hash_secret,
)

NO_WEBSITE = "is required: the API key can write several websites and has no home among them"

_LONGEST_KEY = 128  # no key of ours is as long; what is longer is not worth remembering
_hash_remembered = lru_cache(maxsize=2_048)(hash_secret)


class Caller(Struct, frozen=True):
    """Who asks: a key, or the website that the request names, or both."""

    key: ApiKey | None
    website: Website | None


class Admission(Struct, frozen=True):
    """A request that may write: its caller, and the website of each item."""

    caller: Caller
    websites: Sequence[WebsiteId]


def admit(
    tenancy: Tenancy, *, now_ms: int, credentials: Credentials, named: Sequence[str | None]
) -> Admission:
    """Admit a request; `named` are the items' own websites, None or "" where they name none.

    Raises what refuses it: for an invalid key, a missing scope, no or an unknown identifier; then
    for an item without a place (`InvalidBody`), an unknown or forbidden website; then for the
    origin.
    """
    first_named = named[0] if named else None
    caller = admit_caller(tenancy, now_ms=now_ms, credentials=credentials, named=first_named)
    websites = _place_items(tenancy, caller, named)
    # What an empty batch would be written to is checked too.
    for website_id in _distinct(websites) or _request_website(caller):
        _check_writable(tenancy, caller, website_id)
    check_origin(caller, credentials)
    return Admission(caller, websites)


def admit_caller(
    tenancy: Tenancy, *, now_ms: int, credentials: Credentials, named: str | None
) -> Caller:
    """Tell who asks. `named` is the first item's own website, which counts without a key only.

    Raises `InvalidApiKey`, `MissingScope`, `MissingCredentials` or `WebsiteNotFound`.
    """
    key = None
    identifier = credentials.website_id
    if credentials.api_key is not None:
        key = _admit_key(tenancy, now_ms, credentials.api_key)
    else:
        identifier = identifier or named
        if not identifier:
            raise MissingCredentials
    return Caller(key, _find_website(tenancy, identifier) if identifier else None)


def check_origin(caller: Caller, credentials: Credentials) -> None:
    """Raise `OriginNotAuthorized` for another origin than the website lists. A key needs none."""
    if caller.key is not None or caller.website is None or credentials.origin is None:
        return
    allowed = caller.website.origins
    if allowed and not any(_matches_origin(credentials.origin, one) for one in allowed):
        raise OriginNotAuthorized


def _admit_key(tenancy: Tenancy, now_ms: int, secret: str) -> ApiKey:
    hash_ = _hash_remembered if len(secret) <= _LONGEST_KEY else hash_secret
    key = tenancy.keys.get(hash_(secret))
    if key is None or not key.is_valid_at(now_ms):
        raise InvalidApiKey
    if Scope.TRACK_EVENTS not in key.scopes:
        raise MissingScope(Scope.TRACK_EVENTS.value)
    return key


def _find_website(tenancy: Tenancy, website_id: str) -> Website:
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None:
        raise WebsiteNotFound
    return website


def _request_website(caller: Caller) -> Sequence[WebsiteId]:
    return () if caller.website is None else (caller.website.id,)


def _place_items(
    tenancy: Tenancy, caller: Caller, named: Sequence[str | None]
) -> Sequence[WebsiteId]:
    """Return each item's own website, else the request's, else the key's home."""
    if caller.website is not None:
        otherwise: WebsiteId | None = caller.website.id
    else:
        otherwise = None if caller.key is None else tenancy.home_website_of(caller.key)
    if otherwise is not None and not any(named):
        return [otherwise] * len(named)
    placed = [WebsiteId(own) if own else otherwise for own in named]
    if None in placed:
        lost = [index for index, website_id in enumerate(placed) if website_id is None]
        raise InvalidBody(
            tuple(Fault(index, "websiteId", NO_WEBSITE) for index in lost[:MAX_FAULTS])
        )
    return [website_id for website_id in placed if website_id is not None]


def _distinct(websites: Sequence[WebsiteId]) -> Collection[WebsiteId]:
    """Return each website once, in order. Mostly there is one."""
    if websites and websites.count(websites[0]) == len(websites):
        return websites[:1]
    return dict.fromkeys(websites)


def _check_writable(tenancy: Tenancy, caller: Caller, website_id: WebsiteId) -> None:
    if caller.key is None and (caller.website is None or website_id != caller.website.id):
        raise ScopeMismatch
    website = _find_website(tenancy, website_id)
    if website.organization_id is None:
        raise WebsiteMissingOrganization
    if caller.key is not None and not caller.key.may_touch(website):
        raise ScopeMismatch


def _matches_origin(origin: str, allowed: str) -> bool:
    if origin == allowed:
        return True
    scheme, host, port = _parts_of_origin(origin)
    if allowed.startswith("*."):
        return host.endswith(allowed[1:].lower())
    return (scheme, host, port) == _parts_of_origin(allowed) and host != ""


def _parts_of_origin(origin: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port in one spelling; empty texts where it is not an origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or DEFAULT_PORTS.get(parts.scheme)
