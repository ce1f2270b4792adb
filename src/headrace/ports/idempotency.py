"""Idempotency keys: the first accepted request decides, later ones get its reply."""

from typing import Protocol

from msgspec import Struct


class Acquired(Struct, frozen=True):
    """The caller is first: it must `save_response` a reply or `release` the claim."""


class Replay(Struct, frozen=True):
    """An earlier request was accepted with this reply body."""

    response: bytes


class IdempotencyStore(Protocol):
    """Shared by all workers, of one machine or of several, and kept across restarts.

    Used from one event loop. Every method raises `LogUnavailable` or `SharedStateUnavailable` when
    nobody can tell now; nothing was promised then.
    """

    async def acquire(self, digest: bytes) -> Acquired | Replay:
        """Claim a digest of credential, path and key for 24 hours.

        Waits while another request holds the claim. Takes over what a dead worker left behind.
        """
        ...

    async def save_response(self, digest: bytes, response: bytes) -> None:
        """Remember the reply of an accepted request; returns when it is known to all workers."""
        ...

    async def release(self, digest: bytes) -> None:
        """Give the claim back: the request was refused and is not remembered."""
        ...
