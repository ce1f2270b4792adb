"""A move of all rows from one store to another, and what a comparison of two stores tells."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct


class MigrationTarget(Enum):
    """Where rows move."""

    CLICKHOUSE = "clickhouse"
    EMBEDDED = "embedded"


class Digest(Struct, frozen=True):
    """How many rows there are, and a checksum over all they hold, whatever their order."""

    rows: int = 0
    checksum: int = 0


class DayKey(Struct, frozen=True, order=True):
    """A day of a website in a table; days since the epoch, UTC."""

    table: str
    website_id: str
    day: int


class DayMismatch(Struct, frozen=True):
    """A day that is not the same in both stores."""

    day: DayKey
    source: Digest
    target: Digest


class MigrationResult(Struct, frozen=True):
    """What a run of a move did.

    `copied` rows were missing. `mismatches` are the days that are still not the same in both
    stores. `is_done` tells that everything has moved and nothing can be added to what it moved
    from; else the service must be switched, and the command run again.
    """

    copied: int
    mismatches: Sequence[DayMismatch]
    is_done: bool
