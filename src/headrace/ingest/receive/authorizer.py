"""Authorizes requests against the directory's snapshot, and refreshes it before it refuses one."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.base.errors import (
    ClientError,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    MissingScope,
    WebsiteNotFound,
)
from headrace.ingest.receive.authorize import (
    Authorization,
    Caller,
    authenticate,
    authorize,
    authorize_origin,
)
from headrace.model.tenancy import Credentials, TenancySnapshot
from headrace.ports.directory import TenancySource

Decision = TypeVar("Decision")

_MAX_RECENT = 1_024
_MAX_ORIGIN_LENGTH = 128
"""A longer origin is decided each time: the caller chooses its length, and it would be kept."""


class Authorizer:
    """Decides whether requests may write; used from one event loop by many tasks.

    All methods raise what `authorize` raises, and `DirectoryUnavailable`.
    """

    def __init__(self, tenancy: TenancySource) -> None:
        self._tenancy = tenancy
        self._decided_on: TenancySnapshot | None = None
        self._recent: dict[tuple[Credentials, str | None], Authorization] = {}

    def now(
        self, credentials: Credentials, *, now_ms: int, website_ids: Sequence[str | None]
    ) -> Authorization:
        """Decide on the snapshot in memory, which may be a few seconds old.

        The decision on a batch whose items all name one website, or none, is that on its first
        item, and is remembered while the snapshot is the same. A refusal is not.
        """
        tenancy = self._tenancy.current()
        count = len(website_ids)
        if not count or website_ids.count(website_ids[0]) != count:
            return authorize(
                tenancy, now_ms=now_ms, credentials=credentials, website_ids=website_ids
            )
        if tenancy is not self._decided_on:
            self._recent.clear()
            self._decided_on = tenancy
        request = (credentials, website_ids[0])
        recent = self._recent.get(request)
        if recent is not None and (
            recent.caller.key is None or recent.caller.key.is_valid_at(now_ms)
        ):
            if count == 1:
                return recent
            return Authorization(recent.caller, [recent.websites[0]] * count)
        authorization = authorize(
            tenancy, now_ms=now_ms, credentials=credentials, website_ids=website_ids
        )
        self._remember(request, authorization)
        return authorization

    def _remember(
        self, request: tuple[Credentials, str | None], authorization: Authorization
    ) -> None:
        if len(request[0].origin or "") > _MAX_ORIGIN_LENGTH:
            return
        if len(self._recent) >= _MAX_RECENT:
            self._recent.clear()
        self._recent[request] = Authorization(authorization.caller, authorization.websites[:1])

    async def retrying(
        self, credentials: Credentials, *, now_ms: int, website_ids: Sequence[str | None]
    ) -> Authorization:
        """Decide on the snapshot in memory; refresh it and decide again before a refusal."""
        return await self._retry_if_stale(
            lambda tenancy: authorize(
                tenancy, now_ms=now_ms, credentials=credentials, website_ids=website_ids
            )
        )

    def has_valid_key(self, credentials: Credentials, *, now_ms: int) -> bool:
        """Return whether the snapshot in memory has the key of a request, with its scope."""
        if credentials.api_key is None:
            return False
        try:
            authenticate(
                self._tenancy.current(),
                now_ms=now_ms,
                credentials=credentials,
                item_website_id=None,
            )
        except WebsiteNotFound:
            return True
        except HeadraceError:
            return False
        return True

    async def find_refusal(self, credentials: Credentials, *, now_ms: int) -> ClientError | None:
        """Return the error that these credentials get whatever the body says, or None.

        A request without a key and an identifier may have one in its body. None too while the
        directory is unavailable.
        """
        try:
            await self.authenticate(credentials, now_ms=now_ms, item_website_id=None)
        except (InvalidApiKey, MissingScope, WebsiteNotFound) as error:
            return error
        except HeadraceError:
            return None
        return None

    async def authenticate(
        self, credentials: Credentials, *, now_ms: int, item_website_id: str | None
    ) -> Caller:
        """Return the caller alone, without a decision on its items. Retries as `retrying` does.

        `item_website_id` is the first item's.
        """
        caller = await self._retry_if_stale(
            lambda tenancy: authenticate(
                tenancy, now_ms=now_ms, credentials=credentials, item_website_id=item_website_id
            )
        )
        authorize_origin(caller, credentials)
        return caller

    async def _retry_if_stale(self, decide: Callable[[TenancySnapshot], Decision]) -> Decision:
        """Decide, and once more where a key or website may be newer than the snapshot."""
        known = self._tenancy.current()
        try:
            return decide(known)
        except (InvalidApiKey, WebsiteNotFound, InvalidBody):
            newest = await self._tenancy.refreshed()
            if newest.revision == known.revision:
                raise
        return decide(newest)
