"""Which machine has an item, where several machines load into one store."""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct


class Claim(Struct, frozen=True, gc=False):
    """What is wanted of one digest: it counts for items received before `expires_ms`.

    `received_ms` is when this item was: an older claim that had expired by then does not count.
    """

    received_ms: int
    expires_ms: int


class DedupClaims(Protocol):
    """Blocking, used from one thread of one process."""

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        """Claim digests for a batch of this machine and return those that others had first.

        Safe to call twice: a batch has what it claimed before, and what was told of it once is
        told again whatever happened meanwhile, also after a crash. Raises `SharedStateUnavailable`
        when nobody can tell now; the batch must then wait.
        """
        ...

    def mark_stored(self, batch: int) -> None:
        """Tell the others that a batch is stored. Safe to call twice.

        Raises `SharedStateUnavailable`; the next batch's first claim tells it too.
        """
        ...

    def close(self) -> None:
        """Let go of the server. May be called twice."""
        ...
