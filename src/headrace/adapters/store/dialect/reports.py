"""The input and the result of a check of the store."""

from collections.abc import Mapping

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class StoreReport(Struct, frozen=True):
    """Issues, one sentence each, and the number of active parts and of rows.

    `notes` are what the service repairs by itself: nothing is lost or damaged by them.
    """

    issues: tuple[str, ...]
    parts: int
    rows: int
    notes: tuple[str, ...] = ()


class LoadedOffsets(Struct, frozen=True):
    """The ledger's identity and, by log name, the offset before which rows may be stored.

    `imported` has, by the number of a log, the last offset in the ids of imported rows.
    """

    identity: str
    stored_until: Mapping[str, LogOffset]
    imported: Mapping[int, LogOffset] = {}


class ExpectedRows(Struct, frozen=True):
    """The ids of the rows of one log that a table must contain."""

    log: str
    table: str
    ids: frozenset[bytes]
