"""Sign-in to the page: a key or a one-time code becomes a session."""

import asyncio
from typing import Final

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import (
    AuthenticationRequired,
    DirectoryUnavailable,
    InvalidSignIn,
    MissingScope,
    OperatorError,
    RateLimited,
)
from headrace.model.tenancy import ApiKey, Scope, TenancySnapshot, Website, hash_secret
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import RateLimiter
from headrace.ports.sessions import Sessions
from headrace.query.authorize import client_network

_MAX_BLOCKED: Final = 10_000
"""Addresses that a worker remembers as blocked; beyond it the limiter alone refuses them."""


class Session(Struct, frozen=True):
    """A session, with the websites that it reaches, in the order of their creation."""

    key: ApiKey
    websites: tuple[Website, ...]


class NewSession(Struct, frozen=True):
    """A session that has begun, and its secret, which is not stored."""

    session: Session
    secret: str


class SignInService:
    """Begins, describes and ends sessions; for one event loop and many tasks.

    `failures` counts the failed sign-ins of an address over all workers. A worker that has seen
    the last one that is allowed refuses the address, until the window is empty.
    """

    def __init__(
        self, sessions: Sessions, *, tenancy: TenancySource, failures: RateLimiter, clock: Clock
    ) -> None:
        self._sessions = sessions
        self._tenancy = tenancy
        self._failures = failures
        self._clock = clock
        self._blocked_until_s: dict[str, float] = {}

    async def begin(
        self, *, key: str | None = None, code: str | None = None, address: str
    ) -> NewSession:
        """Begin the session of a key or a code.

        Raises `RateLimited`; `InvalidSignIn`; `MissingScope` for a key that may not read; and
        `DirectoryUnavailable`.
        """
        caller = f"sign-in:{client_network(address)}"
        self._refuse_blocked(caller)
        if key is not None:
            await self._require_reading(key)
        try:
            begun = await asyncio.to_thread(self._begin, key, code)
        except OperatorError as error:
            raise DirectoryUnavailable(f"sessions cannot be written: {error}") from error
        if begun is None:
            await self._count_failure(caller)
            raise InvalidSignIn
        session, secret = begun
        return NewSession(_session(await self._tenancy.refreshed(), session), secret)

    async def describe(self, secret: str | None) -> Session:
        """Return a session by its secret. Raises `AuthenticationRequired`."""
        tenancy = self._tenancy.current()
        if secret is not None and hash_secret(secret) not in tenancy.sessions:
            tenancy = await self._tenancy.refreshed()
        key = None if secret is None else tenancy.sessions.get(hash_secret(secret))
        if key is None or not key.is_valid_at(self._clock.now_ms()):
            raise AuthenticationRequired
        return _session(tenancy, key)

    async def end(self, secret: str | None) -> None:
        """End a session, if there is one. Raises `DirectoryUnavailable`."""
        try:
            session = await self.describe(secret)
        except AuthenticationRequired:
            return
        try:
            await asyncio.to_thread(self._sessions.end, session.key.id)
        except OperatorError as error:
            raise DirectoryUnavailable(f"sessions cannot be written: {error}") from error

    def _begin(self, key: str | None, code: str | None) -> tuple[ApiKey, str] | None:
        if key is not None:
            return self._sessions.begin_with_key(key)
        return self._sessions.begin_with_code(code or "")

    async def _require_reading(self, secret: str) -> None:
        """Raise `MissingScope` for a valid key that may not read: no failed sign-in."""
        found = (await self._tenancy.refreshed()).keys.get(hash_secret(secret))
        if found is None or not found.is_valid_at(self._clock.now_ms()):
            return
        if Scope.READ_DATA not in found.scopes:
            raise MissingScope(Scope.READ_DATA.value)

    def _refuse_blocked(self, caller: str) -> None:
        left_s = self._blocked_until_s.get(caller, 0.0) - self._clock.monotonic_s()
        if left_s > 0:
            raise RateLimited(int(left_s) + 1)

    async def _count_failure(self, caller: str) -> None:
        result = await self._failures.hit(caller)
        now_s = self._clock.monotonic_s()
        if result.remaining == 0:
            if len(self._blocked_until_s) >= _MAX_BLOCKED:
                self._blocked_until_s.clear()
            self._blocked_until_s[caller] = now_s + result.reset_s
        if not result.allowed:
            raise RateLimited(result.reset_s)


def _session(tenancy: TenancySnapshot, key: ApiKey) -> Session:
    return Session(
        key, tuple(website for website in tenancy.websites.values() if key.can_access(website))
    )
