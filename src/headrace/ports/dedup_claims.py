"""Deduplication among several machines that load into one store."""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct


class Claim(Struct, frozen=True, gc=False):
    """The claim of one digest: items received before `expires_ms` are its duplicates.

    `received_ms` is this item's: an older claim that had expired by then does not conflict.
    """

    received_ms: int
    expires_ms: int


class DedupClaims(Protocol):
    """Blocking, used from one thread of one process."""

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        """Claim digests for a batch of this machine; return those that others claimed first.

        Safe to call twice: a batch keeps its claims, and a digest once returned is returned again,
        whatever happened meanwhile, even after a crash. Raises `SharedStateUnavailable` when the
        decision is unknown; the batch must then wait.
        """
        ...

    def mark_stored(self, batch: int) -> None:
        """Publish that a batch is stored. Safe to call twice.

        Raises `SharedStateUnavailable`; the next batch's first claim publishes it, too.
        """
        ...

    def close(self) -> None:
        """Close the connections. May be called twice."""
        ...
