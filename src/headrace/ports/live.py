"""Items of a website as they are acknowledged, for those who watch it now."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from headrace.model.tenancy import WebsiteId

KEPT_ITEMS: Final = 1_000
"""The newest items of a website that somebody can still read."""

MAX_STREAMS_PER_CALLER: Final = 20


class LiveItem(Struct, frozen=True):
    """One item: `kind` is `event` or `refused`, `body` is JSON."""

    kind: str
    body: bytes


class LiveItems(Struct, frozen=True):
    """Items of a website in order, numbered from `first`.

    Numbers have a meaning within one `epoch` alone: another one means that nobody knows what was
    between.
    """

    epoch: str
    first: int
    items: tuple[LiveItem, ...]


class ErrorTexts(NamedTuple):
    """What the fingerprint of an error is made of."""

    error_type: str
    message: str
    stack: str


class ErrorFingerprints(Protocol):
    """Fingerprints of errors that are not stored yet. Blocking."""

    def of(self, errors: Sequence[ErrorTexts]) -> Sequence[str | None]:
        """Return the fingerprint of each error as it will be stored; None where nobody knows."""
        ...


class UnknownFingerprints:
    """`ErrorFingerprints` without a store."""

    def of(self, errors: Sequence[ErrorTexts]) -> Sequence[str | None]:
        """Return None for each error."""
        return [None] * len(errors)


class LiveSource(Protocol):
    """The newest items of websites, over all workers of the machine."""

    async def follow(self, website_id: WebsiteId, epoch: str, after: int) -> LiveItems:
        """Return the items from number `after` on, those that are still kept; waits for the first.

        Returns none after some seconds without one, and all that are kept in another epoch. Items
        are collected while somebody follows the website, and for a minute after that. Raises
        `StoreUnavailable`.
        """
        ...

    def count_stream(self, caller: str) -> AbstractAsyncContextManager[None]:
        """Count a stream of a caller within the context.

        Entering raises `RateLimited` where the caller has `MAX_STREAMS_PER_CALLER` of them, and
        `StoreUnavailable`.
        """
        ...

    async def publish(self, website_id: WebsiteId, item: LiveItem) -> None:
        """Append an item to a website that somebody follows. Raises `StoreUnavailable`."""
        ...
