"""The layout of the stored tables, embedded or on servers, and the migrations that lead to it.

A table has no partitions: a batch is then one part, so it costs one set of fsyncs and is stored
wholly or not at all. Columns have no codecs of their own: over a million realistic events the best
mix found took 95.6 bytes a row, ZSTD(1) for all columns 95.6, ZSTD(3) 99.1 and LZ4 170.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headrace.adapters.store.dialect import id_key_ddl, rollup_ddl, simple_properties_ddl
from headrace.adapters.store.dialect.fingerprint import ADD_FINGERPRINT
from headrace.adapters.store.dialect.statements import (
    AlterTable,
    CreateTable,
    ModifySettings,
    Settings,
    Statement,
)
from headrace.base.errors import OperatorError
from headrace.model.catalog import EVENTS, Kind
from headrace.model.storage import EVENT_KEY, STORAGE_TABLES, StoredColumn, StoredTable

DATABASE = "headrace"
VERSION_TABLE = "schema_version"
DEDUPLICATION_WINDOW = 1000
"""Number of batches of a table whose tokens it remembers."""

NON_REPLICATED_WINDOW: Final = "non_replicated_deduplication_window"

_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "String",
    Kind.NUMBER: "Nullable(Float64)",
    Kind.DATETIME: "DateTime64(3, 'UTC')",
    Kind.BOOLEAN: "Bool",
    Kind.IDENTIFIER: "FixedString(16)",
    Kind.JSON: "String",
    Kind.DIGEST: "FixedString(8)",
}

OLD_PARTS_LIFETIME_S: Final = 480
"""Replaced parts stay until what replaced them is surely on disk."""

_DURABILITY: Settings = {
    "fsync_after_insert": 1,  # off by default: a batch must be on disk when its insert returns
    "fsync_part_directory": 1,
    "min_rows_to_fsync_after_merge": 1,
    "min_compressed_bytes_to_fsync_after_merge": 1,
    "old_parts_lifetime": OLD_PARTS_LIFETIME_S,
}

_MERGE_SETTINGS: Settings = {"merge_selector_base": 8}
"""About this many parts of similar size are merged at once. ClickHouse's default of 5 writes each
row half as often again; with more than 8 selects read more parts and little is saved."""

_TOKEN_WINDOW: Settings = {NON_REPLICATED_WINDOW: DEDUPLICATION_WINDOW}
"""A server has a longer one, and with replicas another setting: see the layout of its tables."""

_SETTINGS: Settings = {
    **_DURABILITY,
    **_MERGE_SETTINGS,
    **_TOKEN_WINDOW,
    "default_compression_codec": "ZSTD(1)",
}


class Migration(Struct, frozen=True):
    """Statements that bring a store to a version. Each of them may be run twice.

    `is_in_new_tables` marks one whose change the tables of the first migration have already.
    """

    version: int
    statements: tuple[Statement, ...]
    is_in_new_tables: bool = False


def column_type(column: StoredColumn) -> str:
    """Return the ClickHouse type of a stored column."""
    return (
        f"LowCardinality({_TYPES[column.kind]})" if column.low_cardinality else _TYPES[column.kind]
    )


def column_list(table: StoredTable) -> str:
    """Return the columns of a table as an INSERT names them."""
    return ", ".join(f"`{column.name}`" for column in table.columns)


def create_table(table: StoredTable) -> CreateTable:
    """Return the statement that creates a stored table unless it exists."""
    return CreateTable(
        name=table.name,
        columns=tuple(f"`{c.name}` {column_type(c)}" for c in table.columns),
        order_by="(website_id, time)",
        settings=_SETTINGS,
    )


def _add_column(table: str, name: str) -> AlterTable:
    """Return the statement that adds a column, where new tables have it, to older ones."""
    columns = STORAGE_TABLES[table].columns
    (index,) = (index for index, column in enumerate(columns) if column.name == name)
    before, column = columns[index - 1 : index + 1]
    definition = f"`{name}` {column_type(column)} AFTER `{before.name}`"
    return AlterTable(name=table, change=f"ADD COLUMN IF NOT EXISTS {definition}")


CREATE_VERSION_TABLE: Final = CreateTable(
    name=VERSION_TABLE,
    columns=("`version` UInt32", "`applied_at` DateTime64(3, 'UTC') DEFAULT now64(3)"),
    order_by="version",
    settings=_DURABILITY,
)
SELECT_VERSION = f"SELECT max(version) FROM `{VERSION_TABLE}`"  # noqa: S608 - our own name

MIGRATIONS: tuple[Migration, ...] = (
    # The tables as they are now. A later migration alters what an older version created and finds
    # its change in place in a new store, so it says ADD COLUMN IF NOT EXISTS.
    Migration(1, tuple(create_table(table) for table in STORAGE_TABLES.values())),
    Migration(2, rollup_ddl.STATEMENTS),
    Migration(
        3,
        tuple(ModifySettings(name, _MERGE_SETTINGS) for name in STORAGE_TABLES),
        is_in_new_tables=True,
    ),
    Migration(
        4,
        tuple(ModifySettings(name, _TOKEN_WINDOW) for name in STORAGE_TABLES),
        is_in_new_tables=True,
    ),
    Migration(5, (_add_column(EVENTS.name, "profile_id"),), is_in_new_tables=True),
    Migration(6, (ADD_FINGERPRINT,)),
    Migration(7, id_key_ddl.STATEMENTS),
    Migration(
        8,
        tuple(_add_column(name, EVENT_KEY.name) for name in STORAGE_TABLES),
        is_in_new_tables=True,
    ),
    Migration(9, simple_properties_ddl.STATEMENTS),
)


def record_versions(*migrations: Migration) -> str:
    """Return the statement that records migrations as applied."""
    versions = ", ".join(f"({migration.version})" for migration in migrations)
    return (
        f"INSERT INTO `{VERSION_TABLE}` (version) "  # noqa: S608 - our own name and numbers
        f"SETTINGS async_insert = 0 VALUES {versions}"
    )


def pending_migrations(
    stored_version: int, migrations: tuple[Migration, ...] = MIGRATIONS
) -> tuple[Migration, ...]:
    """Return the migrations that a store of a version (0: empty) still needs, in order.

    Raises `OperatorError` when a newer Headrace wrote the store.
    """
    newest = migrations[-1].version
    if stored_version > newest:
        raise OperatorError(
            f"the store was written by a newer Headrace (layout {stored_version}, this version "
            f"knows {newest}); start that version, or restore a copy from before the upgrade"
        )
    return tuple(m for m in migrations if m.version > stored_version)
