"""The stored layout: the columns of each stored table, in the order of every Arrow stream.

The loader builds its streams from it, and the store its tables, which also have the generated
columns of the catalog. Two columns are not the catalog's: `properties` of `events`, the client's
JSON object as text, empty where there was none; and `event_key` of all tables, by which the row of
an event id is found.
"""

from collections.abc import Mapping

from msgspec import Struct

from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, STORED_TABLES, Kind, Table
from headrace.model.log_records import EventKind


class StoredColumn(Struct, frozen=True):
    """One stored column. Its kind determines its type:

    | Kind       | Arrow                     | ClickHouse             | missing |
    |------------|---------------------------|------------------------|---------|
    | TEXT       | utf8                      | String                 | ""      |
    | NUMBER     | float64                   | Nullable(Float64)      | null    |
    | DATETIME   | timestamp(ms, UTC)        | DateTime64(3, 'UTC')   | never   |
    | BOOLEAN    | bool                      | Bool                   | never   |
    | IDENTIFIER | fixed-size binary of 16   | FixedString(16)        | never   |
    | JSON       | binary, JSON text (UTF-8) | String                 | ""      |
    | DIGEST     | fixed-size binary of 8    | FixedString(8)         | zeros   |
    """

    name: str
    kind: Kind
    low_cardinality: bool = False


class StoredTable(Struct, frozen=True):
    """A table of the store, with its columns in order."""

    name: str
    columns: tuple[StoredColumn, ...]

    @property
    def shown_columns(self) -> tuple[StoredColumn, ...]:
        """The columns that exports and streams of rows have."""
        return tuple(column for column in self.columns if column.kind is not Kind.DIGEST)


PROPERTIES = StoredColumn("properties", Kind.JSON)
EVENT_KEY = StoredColumn("event_key", Kind.DIGEST)
"""See `formats.event_ids.event_key`; zeros for a row without an event id, or of before layout 8."""


def _stored(table: Table) -> StoredTable:
    columns = tuple(
        StoredColumn(column.name, column.kind, column.low_cardinality)
        for column in table.columns
        if not column.is_generated
    )
    properties = (PROPERTIES,) if table.has_properties else ()
    return StoredTable(table.name, (*columns, *properties, EVENT_KEY))


STORAGE_TABLES: Mapping[str, StoredTable] = {table.name: _stored(table) for table in STORED_TABLES}
"""The stored tables by their names in the catalog."""

TABLE_OF_KIND: Mapping[EventKind, Table] = {
    EventKind.EVENTS: EVENTS,
    EventKind.VITALS: PERFORMANCE,
    EventKind.ERRORS: ERRORS,
}
"""The table that stores the items of each kind of record."""
