"""The loader's memory: what was stored, what is being stored, and which items were seen before."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class LogRange(Struct, frozen=True):
    """A stretch of one log, from a place to a place."""

    start: LogOffset
    end: LogOffset


class PendingBatch(Struct, frozen=True):
    """The batch under way: what it is made of, and the number its tokens are made from."""

    batch: int
    ranges: Mapping[str, LogRange]


class PartOutcome(Enum):
    """What became of one part of a batch that the store had refused as a whole."""

    STORED = "stored"
    REJECTED = "refused"


class Ledger(Protocol):
    """Blocking, used from one thread of one process.

    Every method that writes is one transaction that is on disk when it returns. All raise
    `StoreUnavailable` when the ledger cannot be read or written now.
    """

    def identity(self) -> str:
        """Return a name that no other ledger has, for tokens and row ids."""
        ...

    def stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the place up to which everything is stored."""
        ...

    def pending_batch(self) -> PendingBatch | None:
        """Return the batch that was begun and not committed."""
        ...

    def begin(self, ranges: Mapping[str, LogRange]) -> PendingBatch:
        """Begin a batch with a number never used before. At most one is under way."""
        ...

    def parts(self) -> Mapping[str, PartOutcome]:
        """Return, by token, what `record_part` was told of the batch under way."""
        ...

    def record_part(self, token: str, outcome: PartOutcome) -> None:
        """Remember until the commit what became of a part. Safe to call twice."""
        ...

    def known_digests(self, digests: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return those digests that are remembered, with the moment they expire in epoch ms.

        The answers do not change between `begin` and `commit`.
        """
        ...

    def commit(
        self, batch: int, *, new_digests: Mapping[bytes, int], forget_before_ms: int
    ) -> Mapping[str, LogOffset]:
        """End the batch under way: its ranges are stored; return the new positions.

        `new_digests` are digests to remember and when they expire, in epoch milliseconds; those
        that expired before `forget_before_ms` may be forgotten.
        """
        ...

    def close(self) -> None:
        """Let go of the ledger. May be called twice."""
        ...
