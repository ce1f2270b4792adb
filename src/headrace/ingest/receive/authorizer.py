"""Authorizes requests against the directory's snapshot, and refreshes it before it refuses one."""

from collections.abc import Callable
from typing import TypeVar

from headrace.base.errors import InvalidApiKey, InvalidBody, WebsiteNotFound
from headrace.ingest.receive.authorize import (
    Authorization,
    Caller,
    authenticate,
    authorize,
    authorize_origin,
)
from headrace.ingest.receive.decode_request import DecodedRequest
from headrace.model.tenancy import Credentials, TenancySnapshot
from headrace.ports.directory import TenancySource

Decision = TypeVar("Decision")


class Authorizer:
    """Decides whether requests may write; used from one event loop by many tasks.

    All methods raise what `authorize` raises, and `DirectoryUnavailable`.
    """

    def __init__(self, tenancy: TenancySource) -> None:
        self._tenancy = tenancy

    def now(self, credentials: Credentials, decoded: DecodedRequest) -> Authorization:
        """Decide on the snapshot in memory, which may be a few seconds old."""
        return _authorize(self._tenancy.current(), credentials, decoded)

    async def retrying(self, credentials: Credentials, decoded: DecodedRequest) -> Authorization:
        """Decide on the snapshot in memory; refresh it and decide again before a refusal."""
        return await self._retry_if_stale(lambda tenancy: _authorize(tenancy, credentials, decoded))

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


def _authorize(
    tenancy: TenancySnapshot, credentials: Credentials, decoded: DecodedRequest
) -> Authorization:
    return authorize(
        tenancy,
        now_ms=decoded.received_ms,
        credentials=credentials,
        website_ids=[item.website_id for item in decoded.items],
    )
