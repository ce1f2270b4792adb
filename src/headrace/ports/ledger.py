"""The loader's persistent state: stored offsets, the pending batch, and digests of items.

A digest of an event id has `EVENT_ID_DIGEST_BYTES`, and one of an idempotency key has more.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class LogRange(Struct, frozen=True):
    """A range of one log, from an offset up to another."""

    start: LogOffset
    end: LogOffset


class PendingBatch(Struct, frozen=True):
    """The batch that was begun and not committed. Its number is part of its tokens.

    `shards` is the store's number of shards when it began; None where the store has none, or an
    earlier version began it.
    """

    batch: int
    ranges: Mapping[str, LogRange]
    shards: int | None = None


class RequeuedItem(Struct, frozen=True):
    """An item that was rejected, and that the log of retried entries has.

    It was rejected at `index` of the record at an offset of a log. `received_ms` is its time of
    receipt: where files of that log were replaced, the record there is another one.
    """

    log: str
    offset: LogOffset
    index: int
    received_ms: int


class PartOutcome(Enum):
    """The outcome of one part of a batch that the store rejected as a whole."""

    STORED = "stored"
    REJECTED = "refused"


class Ledger(Protocol):
    """Blocking, used from one thread of one process.

    Every method that writes is one transaction that is on disk when it returns. All raise
    `StoreUnavailable` when the ledger cannot be read or written now.
    """

    def identity(self) -> str:
        """Return a name unique to this ledger, for tokens and row ids."""
        ...

    def stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the offset before which everything is stored."""
        ...

    def pending_batch(self) -> PendingBatch | None:
        """Return the batch that was begun and not committed, if any."""
        ...

    def begin(
        self,
        ranges: Mapping[str, LogRange],
        *,
        shards: int | None = None,
        imported: Mapping[int, bytes] | None = None,
    ) -> PendingBatch:
        """Begin a batch with a number never used before. At most one is pending.

        `imported` has the greatest log offsets in the ids of the batch's imported rows, by the
        number of the log: see `formats.row_ids`.
        """
        ...

    def parts(self) -> Mapping[str, PartOutcome]:
        """Return, by token, the outcomes that `record_part` stored for the pending batch."""
        ...

    def record_part(self, token: str, outcome: PartOutcome) -> None:
        """Store the outcome of a part until the commit. Safe to call twice."""
        ...

    def known_digests(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the digests that are remembered, with their expiry in epoch milliseconds.

        The result for a digest does not change between `begin` and `commit`.
        """
        ...

    def requeued_items(self) -> Sequence[RequeuedItem]:
        """Return the items that must not be stored from where they were rejected.

        Only a ledger whose logs are loaded again has some. They do not change while it is open.
        """
        ...

    def commit(
        self, batch: int, *, new_digests: Mapping[bytes, int], forget_before_ms: int
    ) -> Mapping[str, LogOffset]:
        """Commit the pending batch: its ranges are stored. Returns the new stored offsets.

        `new_digests` are digests to remember and their expiries in epoch milliseconds; digests
        that expired before `forget_before_ms` may be forgotten.
        """
        ...

    def close(self) -> None:
        """Close the ledger. May be called twice."""
        ...
