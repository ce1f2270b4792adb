"""What a check of a store is given and what it returns."""

from collections.abc import Mapping

from msgspec import Struct

from headrace.ports.event_log import LogOffset


class StoreReport(Struct, frozen=True):
    """What is wrong with the store, and how much there is."""

    issues: tuple[str, ...]
    parts: int
    rows: int


class LoadedOffsets(Struct, frozen=True):
    """The ledger's identity and, by the log's name, the place up to which rows may be stored."""

    identity: str
    stored_until: Mapping[str, LogOffset]


class ExpectedRows(Struct, frozen=True):
    """Rows of one log that must be in a table: their ids."""

    log: str
    table: str
    ids: frozenset[bytes]
