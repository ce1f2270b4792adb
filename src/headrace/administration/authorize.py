"""Authorization of administration: credentials, scope and rate limit, in this order."""

from headrace.base.clock import Clock
from headrace.base.errors import AuthenticationRequired, MissingScope, RateLimited
from headrace.model.tenancy import ApiKey, Scope
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import RateLimiter
from headrace.query.authorize import (
    OnRateLimit,
    QueryCaller,
    QueryCredentials,
    authenticate,
    has_key_and_website,
)


class AdministrationAuthorizer:
    """Finds who asks for administration; for one event loop and many tasks."""

    def __init__(self, *, tenancy: TenancySource, limiter: RateLimiter, clock: Clock) -> None:
        self._tenancy = tenancy
        self._limiter = limiter
        self._clock = clock

    async def authorize_reading(self, credentials: QueryCredentials) -> ApiKey:
        """Return the key or session of a caller. No rate limit counts the call.

        Raises `AuthenticationRequired`, `InvalidApiKey`, `MissingScope` and
        `DirectoryUnavailable`.
        """
        return (await self._authenticate(credentials))[1]

    async def authorize_writing(
        self, credentials: QueryCredentials, on_rate_limit: OnRateLimit
    ) -> ApiKey:
        """Return the key or session of a caller, as `authorize_reading`, and count the call.

        The limit is that of all calls that write. Raises `RateLimited`, too.
        """
        caller, key = await self._authenticate(credentials)
        rate_limit = await self._limiter.hit(f"write:{caller.rate_limit_key}")
        on_rate_limit(rate_limit)
        if not rate_limit.allowed:
            raise RateLimited(rate_limit.reset_s)
        return key

    async def _authenticate(self, credentials: QueryCredentials) -> tuple[QueryCaller, ApiKey]:
        if credentials.api_key is None and credentials.session is None:
            raise AuthenticationRequired
        # Nothing here is about one website, so that a public one lets nobody in.
        own = QueryCredentials(
            credentials.api_key, None, credentials.address, session=credentials.session
        )
        tenancy = self._tenancy.current()
        if not has_key_and_website(tenancy, own):
            tenancy = await self._tenancy.refreshed()
        caller = authenticate(tenancy, own, self._clock.now_ms())
        if caller.key is None:
            raise AuthenticationRequired
        if not caller.has_scope(Scope.MANAGE_CONFIG):
            raise MissingScope(Scope.MANAGE_CONFIG.value)
        return caller, caller.key
