"""Erasures that machines with one directory share: each takes the rows out of its own files."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from headrace.ports.rows.erasure import Erasure


class Machine(Struct, frozen=True):
    """A machine, by the identity of its ledger; when it was seen first and last.

    Both times are 0 where an operator has noted that it is gone for good; if it runs again, it is a
    machine that was there before all erasures.
    """

    id: str
    first_seen_ms: int
    seen_ms: int


class ErasurePart(Struct, frozen=True, kw_only=True):
    """How far one machine is with an erasure. Times are epoch milliseconds, 0 for not yet.

    `clean_ms`: no answer has the rows that this machine had. `done_ms`: none of its files has them.
    `rows` are those that it found.
    """

    machine_id: str
    clean_ms: int = 0
    done_ms: int = 0
    rows: Mapping[str, int] = {}


class SharedErasures(Protocol):
    """What machines tell each other. Blocking. All methods raise `StoreUnavailable`.

    It has keyed hashes of identifiers, and no identifier.
    """

    def agree_on_key(self, own: bytes) -> bytes:
        """Return the key of the subjects on all machines: `own` where this is the first one."""
        ...

    def note_seen(self, machine_id: str) -> None:
        """Note that a machine runs."""
        ...

    def machines(self) -> Sequence[Machine]:
        """Return all machines that ever ran."""
        ...

    def forget_machine(self, machine: Machine) -> bool:
        """Note that a machine is gone for good, with its line in the audit log.

        Returns whether that was done: nothing changes where it was seen since `machine` was read.
        """
        ...

    def announce(self, erasure: Erasure) -> None:
        """Let all machines know an erasure. Does nothing where they do."""
        ...

    def ids(self) -> frozenset[str]:
        """Return the ids of all erasures."""
        ...

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure that was announced, without a plan and not done; None without it."""
        ...

    def put_part(self, erasure_id: str, part: ErasurePart) -> None:
        """Store how far a machine is with an erasure."""
        ...

    def parts(self, erasure_id: str) -> Sequence[ErasurePart]:
        """Return the parts of an erasure."""
        ...

    def close(self) -> None:
        """Close the connections. May be called twice."""
        ...
