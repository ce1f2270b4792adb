"""Authorizes a request and resolves the website of each item. Pure: uses one snapshot."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

from headrace.base.errors import (
    FieldError,
    InvalidApiKey,
    InvalidBody,
    MissingCredentials,
    MissingScope,
    OriginNotAuthorized,
    ScopeMismatch,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.ingest.receive.decoding.validation_errors import MAX_FIELD_ERRORS
from headrace.model.tenancy import (
    DEFAULT_PORTS,
    ApiKey,
    Credentials,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteId,
    hash_secret,
)

SEVERAL_WEBSITES = "is required: the API key is for several websites and has no home among them"
NO_WEBSITE = "is required: the organization of the API key has no website yet"

_MAX_KEY_LENGTH = 128  # longer than any valid key; a longer one is not cached
_hash_cached = lru_cache(maxsize=2_048)(hash_secret)


class Caller(Struct, frozen=True):
    """The caller: an API key, the website that the request names, or both."""

    key: ApiKey | None
    website: Website | None


class Authorization(Struct, frozen=True):
    """An authorized request: its caller, and the website of each item."""

    caller: Caller
    websites: Sequence[WebsiteId]


def authorize(
    tenancy: TenancySnapshot,
    *,
    now_ms: int,
    credentials: Credentials,
    website_ids: Sequence[str | None],
) -> Authorization:
    """Authorize a request; `website_ids` are the items' own websites, None or "" for none.

    Raises, in this order: what `authenticate` raises; `InvalidBody` for an item without a website;
    `WebsiteNotFound`, `WebsiteMissingOrganization` or `ScopeMismatch`; `OriginNotAuthorized`.
    """
    first_website_id = website_ids[0] if website_ids else None
    caller = authenticate(
        tenancy, now_ms=now_ms, credentials=credentials, item_website_id=first_website_id
    )
    websites = _resolve_websites(tenancy, caller, website_ids)
    # An empty batch is checked against the request's website.
    for website_id in _distinct(websites) or _request_website(caller):
        _check_writable(tenancy, caller, website_id)
    authorize_origin(caller, credentials)
    return Authorization(caller, websites)


def authenticate(
    tenancy: TenancySnapshot, *, now_ms: int, credentials: Credentials, item_website_id: str | None
) -> Caller:
    """Return the caller. `item_website_id` is the first item's; it is ignored with a key.

    Raises `InvalidApiKey`, `MissingScope`, `MissingCredentials` or `WebsiteNotFound`.
    """
    key = None
    identifier = credentials.website_id
    if credentials.api_key is not None:
        key = _verify_key(tenancy, now_ms, credentials.api_key)
    else:
        identifier = identifier or item_website_id
        if not identifier:
            raise MissingCredentials
    return Caller(key, _find_website(tenancy, identifier) if identifier else None)


def authorize_origin(caller: Caller, credentials: Credentials) -> None:
    """Raise `OriginNotAuthorized` for an origin that the website does not list. Keys are exempt."""
    if caller.key is not None or caller.website is None or credentials.origin is None:
        return
    allowed = caller.website.origins
    if allowed and not any(_matches_origin(credentials.origin, one) for one in allowed):
        raise OriginNotAuthorized


def _verify_key(tenancy: TenancySnapshot, now_ms: int, secret: str) -> ApiKey:
    hash_ = _hash_cached if len(secret) <= _MAX_KEY_LENGTH else hash_secret
    key = tenancy.keys.get(hash_(secret))
    if key is None or not key.is_valid_at(now_ms):
        raise InvalidApiKey
    if Scope.TRACK_EVENTS not in key.scopes:
        raise MissingScope(Scope.TRACK_EVENTS.value)
    return key


def _find_website(tenancy: TenancySnapshot, website_id: str) -> Website:
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None:
        raise WebsiteNotFound
    return website


def _request_website(caller: Caller) -> Sequence[WebsiteId]:
    return () if caller.website is None else (caller.website.id,)


def _resolve_websites(
    tenancy: TenancySnapshot, caller: Caller, website_ids: Sequence[str | None]
) -> Sequence[WebsiteId]:
    """Return each item's own website, else the request's, else the key's home."""
    if caller.website is not None:
        default: WebsiteId | None = caller.website.id
    else:
        default = None if caller.key is None else tenancy.default_website(caller.key)
    if default is not None and not any(website_ids):
        return [default] * len(website_ids)
    resolved = [WebsiteId(website_id) if website_id else default for website_id in website_ids]
    if None in resolved:
        missing = [index for index, website_id in enumerate(resolved) if website_id is None]
        message = _message_without_default(tenancy, caller.key)
        raise InvalidBody(
            tuple(FieldError(index, "websiteId", message) for index in missing[:MAX_FIELD_ERRORS])
        )
    return [website_id for website_id in resolved if website_id is not None]


def _message_without_default(tenancy: TenancySnapshot, key: ApiKey | None) -> str:
    if key is None or key.website_ids or tenancy.websites_by_organization.get(key.organization_id):
        return SEVERAL_WEBSITES
    return NO_WEBSITE


def _distinct(websites: Sequence[WebsiteId]) -> Collection[WebsiteId]:
    """Return each website once, in order. Usually there is one."""
    if websites and websites.count(websites[0]) == len(websites):
        return websites[:1]
    return dict.fromkeys(websites)


def _check_writable(tenancy: TenancySnapshot, caller: Caller, website_id: WebsiteId) -> None:
    if caller.key is None and (caller.website is None or website_id != caller.website.id):
        raise ScopeMismatch
    website = _find_website(tenancy, website_id)
    if website.organization_id is None:
        raise WebsiteMissingOrganization
    if caller.key is not None and not caller.key.can_access(website):
        raise ScopeMismatch


def _matches_origin(origin: str, allowed: str) -> bool:
    if origin == allowed:
        return True
    scheme, host, port = _split_origin(origin)
    if allowed.startswith("*."):
        return host.endswith(allowed[1:].lower())
    return (scheme, host, port) == _split_origin(allowed) and host != ""


def _split_origin(origin: str) -> tuple[str, str, int | None]:
    """Return normalized scheme, host and port; empty texts where it is not an origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or DEFAULT_PORTS.get(parts.scheme)
