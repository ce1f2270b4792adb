"""The worker's client of what the engine process keeps of the newest items."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.messages import (
    FollowLive,
    LiveFollowed,
    LivePublished,
    LiveStreamCounted,
    OpenLiveStream,
    PublishLive,
)
from headrace.base.errors import RateLimited
from headrace.model.tenancy import WebsiteId
from headrace.ports.live import LiveItem, LiveItems

_FOLLOW_TIMEOUT_S: Final = 20.0
"""The engine replies after half of this at the latest."""

_TIMEOUT_S: Final = 2.0
_RETRY_AFTER_S: Final = 15


class EngineLiveSource:
    """The `LiveSource` over the engine process, which sees the items of all workers."""

    def __init__(self, connections: EngineConnections) -> None:
        self._connections = connections

    async def follow(self, website_id: WebsiteId, epoch: str, after: int) -> LiveItems:
        """Return the items from a number on; see `LiveSource.follow`."""
        request = FollowLive(website_id, epoch, after)
        reply = await self._connections.send_request(
            request, LiveFollowed, timeout_s=_FOLLOW_TIMEOUT_S
        )
        return reply.items

    async def publish(self, website_id: WebsiteId, item: LiveItem) -> None:
        """Append an item to a website that somebody follows; see `LiveSource.publish`."""
        request = PublishLive(website_id, item)
        await self._connections.send_request(request, LivePublished, timeout_s=_TIMEOUT_S)

    @contextlib.asynccontextmanager
    async def count_stream(self, caller: str) -> AsyncGenerator[None]:
        """Count a stream of a caller within the context; see `LiveSource.count_stream`."""
        request = OpenLiveStream(caller)
        async with self._connections.open_request(
            request, LiveStreamCounted, timeout_s=_TIMEOUT_S
        ) as reply:
            if not reply.is_allowed:
                raise RateLimited(_RETRY_AFTER_S)
            yield
