"""The migration of all rows from one store to another, and the comparison of two stores."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct


class MigrationTarget(Enum):
    """The store that rows are copied to."""

    CLICKHOUSE = "clickhouse"
    EMBEDDED = "embedded"


class Digest(Struct, frozen=True):
    """The number of rows, and a checksum over all their values that ignores their order."""

    rows: int = 0
    checksum: int = 0


class DayKey(Struct, frozen=True, order=True):
    """One UTC day of a website in a table; `day` counts from 1970-01-01."""

    table: str
    website_id: str
    day: int


class DayMismatch(Struct, frozen=True):
    """A day that differs between the stores."""

    day: DayKey
    source: Digest
    target: Digest


class MigrationResult(Struct, frozen=True):
    """The result of one run of the migration.

    `copied` counts the rows that were missing. `mismatches` are the days that still differ between
    the stores. `is_done` means that every row is copied and the source can get no more; otherwise
    switch the service to the target and run the command again.
    """

    copied: int
    mismatches: Sequence[DayMismatch]
    is_done: bool
