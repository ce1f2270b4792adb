"""Idempotency keys: the first accepted request decides, later ones get its reply."""

from typing import Protocol

from msgspec import Struct


class Claimed(Struct, frozen=True):
    """The caller is first: it must `keep` a reply or `release` the claim."""


class Remembered(Struct, frozen=True):
    """An earlier request was accepted with this reply body."""

    reply: bytes


class Repeats(Protocol):
    """Shared by all workers, of one machine or of several, and kept across restarts.

    Used from one event loop. Every method raises `LogUnavailable` or `SharedUnavailable` when
    nobody can tell now; nothing was promised then.
    """

    async def claim(self, digest: bytes) -> Claimed | Remembered:
        """Claim a digest of credential, path and key for 24 hours.

        Waits while another request holds the claim. Takes over what a dead worker left behind.
        """
        ...

    async def keep(self, digest: bytes, reply: bytes) -> None:
        """Remember the reply of an accepted request; returns when it is known to all workers."""
        ...

    async def release(self, digest: bytes) -> None:
        """Give the claim back: the request was refused and is not remembered."""
        ...
