"""Authorization of queries: credentials, scope, rate limit and website, in this order."""

import contextlib
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Final

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import (
    AuthenticationRequired,
    DirectoryUnavailable,
    HeadraceError,
    InvalidApiKey,
    MissingScope,
    MissingWebsiteId,
    NotFound,
    RateLimited,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.model.audit import actor_name
from headrace.model.tenancy import ApiKey, Scope, TenancySnapshot, WebsiteId, hash_secret
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import RateLimiter, RateLimitResult, unused_rate_limit

_NETWORK_BYTES: Final = 8
"""Length of the network part of an IPv6 address, of its 16 bytes."""

OnRateLimit = Callable[[RateLimitResult], None]
"""Receives the state of an authenticated caller's rate limit, also when the query is refused."""


class QueryCredentials(Struct, frozen=True):
    """The credentials of one query as received.

    `api_key` is None when none was sent, and "" for an empty one (which is invalid);
    `website_id` is None when none was sent. `address` is the client's IP address, "" if unknown.
    `session` is the secret of the page's cookie, where the request may use it.
    """

    api_key: str | None
    website_id: str | None
    address: str
    session: str | None = None


class QueryCaller(Struct, frozen=True):
    """An authenticated caller. `key` is None for a query of a public website without a key.

    The rate limiter counts queries by `rate_limit_key`.
    """

    key: ApiKey | None
    rate_limit_key: str

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the caller may do what a scope permits; a public website needs no key."""
        return self.key is None or scope in self.key.scopes


class Manager(Struct, frozen=True):
    """A caller that may take out or change a website's rows, by its name in the audit log."""

    website_id: WebsiteId
    name: str


class StreamReader(Struct, frozen=True):
    """A website that a caller may read, and what its streams are counted by."""

    website_id: WebsiteId
    rate_limit_key: str


class QueryAuthorizer:
    """Decides whether a query may read a website; for one event loop and many tasks.

    `limiter` counts the calls that read, and those that save a query; `write_limiter` counts the
    calls that change rows.
    """

    def __init__(
        self,
        *,
        tenancy: TenancySource,
        limiter: RateLimiter,
        write_limiter: RateLimiter,
        rate_limit: int,
        clock: Clock,
    ) -> None:
        self._tenancy = tenancy
        self._limiter = limiter
        self._write_limiter = write_limiter
        self._rate_limit = rate_limit
        self._clock = clock

    async def authorize(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> WebsiteId:
        """Return the website that the query may read.

        Every query of a caller with the scope counts towards its rate limit, also one that a later
        check refuses. A key without the scope never counts: waiting does not help it.

        Raises, in this order: `InvalidApiKey` or `AuthenticationRequired`; `MissingScope`;
        `RateLimited`; `MissingWebsiteId`, `WebsiteNotFound` or `WebsiteMissingOrganization`; and
        what the directory and the limiter raise.
        """
        tenancy, caller = await self._find_reader(credentials, on_rate_limit)
        return find_readable_website(tenancy, caller, credentials.website_id)

    async def authorize_own_websites(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> frozenset[WebsiteId]:
        """Return the websites that the caller's key may access, which may be none.

        Raises what `authorize` raises, but for websites.
        """
        tenancy, caller = await self._find_reader(credentials, on_rate_limit)
        with contextlib.suppress(DirectoryUnavailable):  # then those that are known
            tenancy = await self._tenancy.refreshed()  # a website may be newer
        return frozenset(
            website.id
            for website in tenancy.websites.values()
            if caller.key is not None and caller.key.can_access(website)
        )

    async def _find_reader(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> tuple[TenancySnapshot, QueryCaller]:
        tenancy = await self._tenancy_for(credentials)
        caller = authenticate(tenancy, credentials, self._clock.now_ms())
        if not caller.has_scope(Scope.READ_DATA):
            on_rate_limit(unused_rate_limit(self._rate_limit))
            raise MissingScope(Scope.READ_DATA.value)
        await _count(self._limiter, caller.rate_limit_key, on_rate_limit)
        return tenancy, caller

    async def authorize_management(self, credentials: QueryCredentials) -> Manager:
        """Return the caller and the website whose rows it may take out, by `manage:data`.

        That a website is public gives no such right, and no rate limit counts the call. Raises
        `AuthenticationRequired` without a key, and what `authorize` raises.
        """
        tenancy, caller = await self._find_manager(credentials)
        return _manager(tenancy, caller, credentials.website_id)

    async def authorize_management_of_any(
        self, credentials: QueryCredentials
    ) -> Callable[[WebsiteId], bool]:
        """Return whether the caller may manage the rows of a website, as a function of its id.

        Raises what `authorize_management` raises, but for websites.
        """
        tenancy, caller = await self._find_manager(credentials)

        def reaches(website_id: WebsiteId) -> bool:
            website = tenancy.websites.get(website_id)
            return website is not None and caller.key is not None and caller.key.can_access(website)

        return reaches

    async def authorize_writing(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> Manager:
        """Return the caller and the website whose rows it may change; see `authorize_management`.

        Every call of a key with the scope counts, also one that a later check refuses. Raises
        `RateLimited`, too.
        """
        tenancy, caller = await self._find_manager(credentials)
        await _count(self._write_limiter, f"write:{caller.rate_limit_key}", on_rate_limit)
        return _manager(tenancy, caller, credentials.website_id)

    async def authorize_saving(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> WebsiteId:
        """Return the website whose saved queries the caller may change; see `authorize_writing`.

        The call counts as a query does.
        """
        tenancy, caller = await self._find_manager(credentials)
        await _count(self._limiter, caller.rate_limit_key, on_rate_limit)
        return _manager(tenancy, caller, credentials.website_id).website_id

    async def authorize_stream(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> StreamReader:
        """Return who may read a website for as long as `may_still_read`; see `authorize`."""
        website_id = await self.authorize(credentials, on_rate_limit)
        caller = authenticate(self._tenancy.current(), credentials, self._clock.now_ms())
        return StreamReader(website_id, caller.rate_limit_key)

    def may_still_read(self, credentials: QueryCredentials) -> bool:
        """Return whether the credentials may still read the website, without I/O."""
        try:
            tenancy = self._tenancy.current()
            caller = authenticate(tenancy, credentials, self._clock.now_ms())
            find_readable_website(tenancy, caller, credentials.website_id)
        except HeadraceError:
            return False
        return caller.has_scope(Scope.READ_DATA)

    async def authorize_shared(
        self, website_id: WebsiteId, name: str, on_rate_limit: OnRateLimit
    ) -> None:
        """Count a caller that has the token of a saved query, which has a rate of its own.

        Raises `RateLimited`, and `NotFound` once the website or its organization was deleted.
        """
        await _count(self._limiter, f"saved:{website_id}:{name}", on_rate_limit)
        website = self._tenancy.current().websites.get(website_id)
        if website is None:
            website = (await self._tenancy.refreshed()).websites.get(website_id)
        if website is None or website.organization_id is None:
            raise NotFound

    async def _find_manager(
        self, credentials: QueryCredentials
    ) -> tuple[TenancySnapshot, QueryCaller]:
        if credentials.api_key is None and credentials.session is None:
            raise AuthenticationRequired
        tenancy = await self._tenancy_for(credentials)
        caller = authenticate(tenancy, credentials, self._clock.now_ms())
        if caller.key is None:
            raise AuthenticationRequired
        if not caller.has_scope(Scope.MANAGE_DATA):
            raise MissingScope(Scope.MANAGE_DATA.value)
        return tenancy, caller

    async def _tenancy_for(self, credentials: QueryCredentials) -> TenancySnapshot:
        """Return a snapshot; a fresh one if the key or website may be newer than the current."""
        tenancy = self._tenancy.current()
        if has_key_and_website(tenancy, credentials):
            return tenancy
        return await self._tenancy.refreshed()


async def _count(limiter: RateLimiter, caller: str, on_rate_limit: OnRateLimit) -> None:
    """Count one call of a caller. Raises `RateLimited`, and what the limiter raises."""
    rate_limit = await limiter.hit(caller)
    on_rate_limit(rate_limit)
    if not rate_limit.allowed:
        raise RateLimited(rate_limit.reset_s)


def has_key_and_website(tenancy: TenancySnapshot, credentials: QueryCredentials) -> bool:
    """Return whether a snapshot contains what the credentials name: key or session, and website."""
    secret, website_id = credentials.api_key, credentials.website_id
    if secret is not None and hash_secret(secret) not in tenancy.keys:
        return False
    session = credentials.session if secret is None else None
    if session is not None and hash_secret(session) not in tenancy.sessions:
        return False
    return website_id is None or WebsiteId(website_id) in tenancy.websites


def authenticate(
    tenancy: TenancySnapshot, credentials: QueryCredentials, now_ms: int
) -> QueryCaller:
    """Return the caller. A key that was sent must be valid even for a public website.

    A session counts where no key was sent. One that has ended is as if there were none.

    Raises `InvalidApiKey`, or `AuthenticationRequired` without a key unless the website is public.
    """
    if credentials.api_key is not None:
        key = tenancy.keys.get(hash_secret(credentials.api_key))
        if key is None or not key.is_valid_at(now_ms):
            raise InvalidApiKey
        return QueryCaller(key, f"key:{key.id}")
    if credentials.session is not None:
        session = tenancy.sessions.get(hash_secret(credentials.session))
        if session is not None and session.is_valid_at(now_ms):
            return QueryCaller(session, f"key:{session.id}")
    website = tenancy.websites.get(WebsiteId(credentials.website_id or ""))
    if website is None or not website.public:
        raise AuthenticationRequired
    return QueryCaller(None, f"website:{website.id}:{client_network(credentials.address)}")


def client_network(address: str) -> str:
    """Return what stands for a client in its rate limit: an IPv6 /64, else the whole address.

    A provider assigns at least a /64 to each customer, who can use any address in it.
    """
    if ":" not in address:
        return address
    try:
        prefix = IPv6Address(address).packed[:_NETWORK_BYTES]
    except ValueError:
        return address
    return f"{IPv6Address(prefix.ljust(16, bytes(1)))}/64"


def find_readable_website(
    tenancy: TenancySnapshot, caller: QueryCaller, website_id: str | None
) -> WebsiteId:
    """Return the id of a website that the caller may read.

    Raises `MissingWebsiteId`, or `WebsiteNotFound` both for an unknown website and for one
    outside of the caller's rights, so that the response does not reveal which ids exist.
    Raises `WebsiteMissingOrganization` only for a public website.
    """
    if website_id is None:
        raise MissingWebsiteId
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None:
        raise WebsiteNotFound
    if not website.public and not (caller.key and caller.key.can_access(website)):
        raise WebsiteNotFound
    if website.organization_id is None:
        raise WebsiteMissingOrganization
    return website.id


def _manager(tenancy: TenancySnapshot, caller: QueryCaller, website_id: str | None) -> Manager:
    """Return the caller with the website that its key may access; see `find_readable_website`."""
    if website_id is None:
        raise MissingWebsiteId
    website = tenancy.websites.get(WebsiteId(website_id))
    if website is None or caller.key is None or not caller.key.can_access(website):
        raise WebsiteNotFound
    return Manager(website.id, actor_name(caller.key))
