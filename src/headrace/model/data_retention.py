"""How long the rows of a website are kept: days of each table, and the cutoffs that follow."""

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.catalog import EVENTS, STORED_TABLES, Table

MAX_RETAIN_DAYS: Final = 36_500


class DataRetention(Struct, frozen=True):
    """The days that a website keeps rows; 0 keeps them for ever, None leaves it to the next.

    A table without days of its own has those of the website, `days`, and a website without has the
    default of the service.
    """

    days: int | None = None
    events: int | None = None
    errors: int | None = None
    performance: int | None = None

    def days_of(self, table: Table) -> int | None:
        """Return the days of a stored table, None where the default of the service holds."""
        own: int | None = getattr(self, table.name)
        return self.days if own is None else own


class RetentionChange(Struct, frozen=True):
    """New values of a `DataRetention`; what is UNSET stays."""

    days: int | UnsetType | None = UNSET
    events: int | UnsetType | None = UNSET
    errors: int | UnsetType | None = UNSET
    performance: int | UnsetType | None = UNSET


NO_RETENTION: Final = DataRetention()


class Cutoffs(Struct, frozen=True):
    """The beginning of the UTC day before which rows of a table are expired; None for never."""

    events: int | None = None
    errors: int | None = None
    performance: int | None = None

    def of_table(self, table: Table) -> int | None:
        """Return the cutoff of a table; sessions and profiles are made of events."""
        return self.of_stored_table(EVENTS.name if table.is_derived else table.name)

    def of_stored_table(self, name: str) -> int | None:
        """Return the cutoff of a stored table by its name."""
        cutoff_ms: int | None = getattr(self, name)
        return cutoff_ms

    def latest(self, other: "Cutoffs") -> "Cutoffs":
        """Return the later cutoff of each table."""
        return Cutoffs(
            **{
                table.name: _latest(
                    self.of_stored_table(table.name), other.of_stored_table(table.name)
                )
                for table in STORED_TABLES
            }
        )


NO_CUTOFFS: Final = Cutoffs()


class RetentionPolicy(Struct, frozen=True):
    """The default of the service, in days; 0 keeps rows for ever."""

    default_days: int = 0

    def days_of(self, retention: DataRetention, table: Table) -> int:
        """Return the days that rows of a stored table are kept."""
        days = retention.days_of(table)
        return self.default_days if days is None else days

    def cutoffs(self, retention: DataRetention, now_ms: int) -> Cutoffs:
        """Return the cutoffs of a website."""
        return Cutoffs(
            **{
                table.name: _cutoff_ms(self.days_of(retention, table), now_ms)
                for table in STORED_TABLES
            }
        )


def _cutoff_ms(days: int, now_ms: int) -> int | None:
    return (now_ms // MILLISECONDS_PER_DAY - days) * MILLISECONDS_PER_DAY if days else None


def _latest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
