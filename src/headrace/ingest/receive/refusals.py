"""Shows refused calls to those who watch their website, without what was sent."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import FieldError, HeadraceError
from headrace.ingest.receive.authorizer import Authorizer
from headrace.model.tenancy import Credentials, WebsiteId
from headrace.ports.directory import TenancySource
from headrace.ports.live import LiveItem, LiveSource

REFUSED: Final = "refused"
MAX_PENDING: Final = 100
"""Refusals on their way to the engine process; more of them are not shown."""


class RefusedCall(Struct, frozen=True):
    """A call that was refused as a whole, and why."""

    path: str
    code: str
    errors: Sequence[FieldError]


class RefusalReporter:
    """Publishes refused calls with valid credentials; for one event loop.

    `is_watched` returns whether somebody watches a website. It is called for each refused call, so
    it must be cheap.
    """

    def __init__(
        self,
        source: LiveSource,
        *,
        tenancy: TenancySource,
        is_watched: Callable[[WebsiteId], bool],
        clock: Clock,
    ) -> None:
        self._source = source
        self._authorizer = Authorizer(tenancy)
        self._is_watched = is_watched
        self._clock = clock
        self._pending: set[asyncio.Task[None]] = set()

    def report(self, credentials: Credentials, call: RefusedCall) -> None:
        """Publish a refused call, if somebody watches its website. Never raises, never waits.

        Credentials that may not write to the website say nothing about it: their calls are not
        published, nor are those that name a website in their body alone. What may be newer than
        the snapshot in memory is looked up, where the call names a website that is watched.
        """
        website_id = self._website_of(credentials) or credentials.website_id
        if website_id is None or not self._is_watched(WebsiteId(website_id)):
            return
        if len(self._pending) < MAX_PENDING:
            item = LiveItem(REFUSED, msgspec.json.encode(call))
            task = asyncio.create_task(self._publish(credentials, item))
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

    def _website_of(self, credentials: Credentials) -> WebsiteId | None:
        """Return the website of an item that names none, if the caller may write to it."""
        try:
            authorization = self._authorizer.now(
                credentials, now_ms=self._clock.now_ms(), website_ids=(None,)
            )
        except HeadraceError:
            return None
        return authorization.websites[0]

    async def _publish(self, credentials: Credentials, item: LiveItem) -> None:
        # Fails for a caller that may not write, and while the engine process starts again.
        with contextlib.suppress(HeadraceError):
            authorization = await self._authorizer.retrying(
                credentials, now_ms=self._clock.now_ms(), website_ids=(None,)
            )
            await self._source.publish(authorization.websites[0], item)
