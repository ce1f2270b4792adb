"""Authorization of queries: credentials, scope, rate limit and website, in this order."""

from collections.abc import Callable

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import (
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    MissingWebsiteId,
    RateLimited,
    WebsiteNotFound,
)
from headrace.model.tenancy import ApiKey, Scope, TenancySnapshot, WebsiteId, hash_secret
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import RateLimiter, RateLimitResult

OnRateLimit = Callable[[RateLimitResult], None]
"""Receives the state of an authenticated caller's rate limit, also when the query is refused."""


class QueryCredentials(Struct, frozen=True):
    """The credentials of one query as received.

    `api_key` is None when none was sent, and "" for an empty one (which is invalid);
    `website_id` is None when none was sent. `address` is the client's IP address, "" if unknown.
    """

    api_key: str | None
    website_id: str | None
    address: str


class QueryCaller(Struct, frozen=True):
    """An authenticated caller. `key` is None for a query of a public website without a key.

    The rate limiter counts queries by `rate_limit_key`.
    """

    key: ApiKey | None
    rate_limit_key: str


class QueryAuthorizer:
    """Decides whether a query may read a website; for one event loop and many tasks."""

    def __init__(self, *, tenancy: TenancySource, limiter: RateLimiter, clock: Clock) -> None:
        self._tenancy = tenancy
        self._limiter = limiter
        self._clock = clock

    async def authorize(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> WebsiteId:
        """Return the website that the query may read.

        Every query of an authenticated caller counts towards its rate limit, also one that a
        later check refuses. The scope is checked before the limit is enforced: waiting does not
        help a key that lacks the scope.

        Raises `InvalidApiKey`, `AuthenticationRequired`, `MissingScope`, `RateLimited`,
        `MissingWebsiteId` or `WebsiteNotFound`, and what the directory and the limiter raise.
        """
        tenancy = await self._tenancy_for(credentials)
        caller = authenticate(tenancy, credentials, self._clock.now_ms())
        rate_limit = await self._limiter.hit(caller.rate_limit_key)
        if rate_limit is not None:
            on_rate_limit(rate_limit)
        check_scope(caller)
        if rate_limit is not None and not rate_limit.allowed:
            raise RateLimited(rate_limit.reset_s)
        return find_readable_website(tenancy, caller, credentials.website_id)

    async def _tenancy_for(self, credentials: QueryCredentials) -> TenancySnapshot:
        """Return a snapshot; a fresh one if the key or website may be newer than the current."""
        tenancy = self._tenancy.current()
        if has_key_and_website(tenancy, credentials):
            return tenancy
        return await self._tenancy.refreshed()


def has_key_and_website(tenancy: TenancySnapshot, credentials: QueryCredentials) -> bool:
    """Return whether a snapshot contains the key and the website that the credentials name."""
    secret, website_id = credentials.api_key, credentials.website_id
    if secret is not None and hash_secret(secret) not in tenancy.keys:
        return False
    return website_id is None or WebsiteId(website_id) in tenancy.websites


def authenticate(
    tenancy: TenancySnapshot, credentials: QueryCredentials, now_ms: int
) -> QueryCaller:
    """Return the caller. A key that was sent must be valid even for a public website.

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
    """Raise `MissingScope` if the caller's key lacks `read:data`."""
    if caller.key is not None and Scope.READ_DATA not in caller.key.scopes:
        raise MissingScope(Scope.READ_DATA.value)


def find_readable_website(
    tenancy: TenancySnapshot, caller: QueryCaller, website_id: str | None
) -> WebsiteId:
    """Return the id of a website that the caller may read.

    Raises `MissingWebsiteId`, or `WebsiteNotFound` both for an unknown website and for one
    outside of the caller's rights, so that the response does not reveal which ids exist.
    """
    if website_id is None:
        raise MissingWebsiteId
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None:
        raise WebsiteNotFound
    if not website.public and not (caller.key and caller.key.can_access(website)):
        raise WebsiteNotFound
    return website.id
