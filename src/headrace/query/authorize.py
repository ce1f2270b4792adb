"""Who may ask about which website: the pure part of a query's way in, step by step.

The steps are separate because the rate limit, which is not pure, stands between them.
"""

from msgspec import Struct

from headrace.base.errors import (
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    MissingWebsiteId,
    WebsiteNotFound,
)
from headrace.model.tenancy import ApiKey, Scope, TenancySnapshot, WebsiteId, hash_secret


class QueryCredentials(Struct, frozen=True):
    """What a query says of itself, as it came.

    `api_key` is None when there was none, and "" for an empty one (which is invalid);
    `website_id` is None when none was named. `address` is the client's, "" when not known.
    """

    api_key: str | None
    website_id: str | None
    address: str


class QueryCaller(Struct, frozen=True):
    """Who asks, once it is known. `key` is None for a public website that needs none.

    `rate_limit_key` tells callers apart for the rate limit.
    """

    key: ApiKey | None
    rate_limit_key: str


def has_key_and_website(tenancy: TenancySnapshot, credentials: QueryCredentials) -> bool:
    """Tell whether a snapshot has everything that is named; otherwise a newer one may."""
    secret, website_id = credentials.api_key, credentials.website_id
    if secret is not None and hash_secret(secret) not in tenancy.keys:
        return False
    return website_id is None or WebsiteId(website_id) in tenancy.websites


def authenticate(
    tenancy: TenancySnapshot, credentials: QueryCredentials, now_ms: int
) -> QueryCaller:
    """Return who asks. A key that is there must be valid, also where none would be needed.

    Raises `InvalidApiKey`, or `AuthenticationRequired` without a key unless the website is public.
    """
    if credentials.api_key is not None:
        key = tenancy.keys.get(hash_secret(credentials.api_key))
        if key is None or not key.is_valid_at(now_ms):
            raise InvalidApiKey
        return QueryCaller(key, f"key:{key.id}")
    website = tenancy.websites.get(WebsiteId(credentials.website_id or ""))
    if website is None or not website.public:
        raise AuthenticationRequired
    return QueryCaller(None, f"website:{website.id}:{credentials.address}")


def check_scope(caller: QueryCaller) -> None:
    """Raise `MissingScope` where a key was used that may not read."""
    if caller.key is not None and Scope.READ_DATA not in caller.key.scopes:
        raise MissingScope(Scope.READ_DATA.value)


def find_readable_website(
    tenancy: TenancySnapshot, caller: QueryCaller, website_id: str | None
) -> WebsiteId:
    """Return the website that is asked about.

    Raises `MissingWebsiteId`, or `WebsiteNotFound` also where the website is one that the caller
    may not know of.
    """
    if website_id is None:
        raise MissingWebsiteId
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None:
        raise WebsiteNotFound
    if not website.public and not (caller.key and caller.key.can_access(website)):
        raise WebsiteNotFound
    return website.id
