"""Idempotency keys: the first accepted request decides, later ones get its reply."""

from typing import Protocol

from msgspec import Struct


class Acquired(Struct, frozen=True):
    """The caller is first: it must `save_response` a reply or `release` the claim."""


class Replay(Struct, frozen=True):
    """An earlier request was accepted with this reply body."""

    response: bytes


class IdempotencyStore(Protocol):
    """Shared by all workers of one or several machines, and persistent across restarts.

    Used from one event loop. Every method raises `LogUnavailable` or `SharedStateUnavailable` when
    the state cannot be reached; the call then has no effect that the caller may rely on.
    """

    async def acquire(self, digest: bytes) -> Acquired | Replay:
        """Claim a digest of credential, path and key for 24 hours.

        Waits while another request has the claim. Takes over the claims of dead workers.
        """
        ...

    async def save_response(self, digest: bytes, response: bytes) -> None:
        """Store the reply of an accepted request; returns when all workers can replay it."""
        ...

    async def release(self, digest: bytes) -> None:
        """Release the claim of a request that was refused; it is not remembered."""
        ...
