"""How rows are laid out in ClickHouse, embedded or not: the statements that make the tables.

A table has no partitions: a batch is then one part, so it costs one set of fsyncs and is there
wholly or not at all. Columns have no codecs of their own: over a million realistic events the best
mix found took 95.6 bytes a row, ZSTD(1) for all columns 95.6, ZSTD(3) 99.1 and LZ4 170.
"""

from collections.abc import Mapping

from msgspec import Struct

from headrace.adapters.store.dialect import rollup_ddl
from headrace.base.errors import OperatorError
from headrace.model.catalog import Kind
from headrace.model.storage import STORAGE_TABLES, StoredColumn, StoredTable

DATABASE = "headrace"
VERSION_TABLE = "schema_version"
DEDUPLICATION_WINDOW = 1000
"""So many batches of a table are remembered by their tokens."""

_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "String",
    Kind.NUMBER: "Nullable(Float64)",
    Kind.DATETIME: "DateTime64(3, 'UTC')",
    Kind.BOOLEAN: "Bool",
    Kind.IDENTIFIER: "FixedString(16)",
    Kind.JSON: "String",
}

_DURABILITY: Mapping[str, int] = {
    "fsync_after_insert": 1,  # off by default: a batch must be on disk when its insert returns
    "fsync_part_directory": 1,
    "min_rows_to_fsync_after_merge": 1,
    "min_compressed_bytes_to_fsync_after_merge": 1,
    "old_parts_lifetime": 480,  # merged parts stay until what replaced them is surely on disk
}

_MERGE_SETTINGS = {"merge_selector_base": 8}
"""Parts of like size are merged when there are about so many. ClickHouse's own 5 writes each row
half as often again; with more than 8 there are more parts to read and little is spared."""

_SETTINGS: Mapping[str, int | str] = {
    **_DURABILITY,
    **_MERGE_SETTINGS,
    "non_replicated_deduplication_window": DEDUPLICATION_WINDOW,
    "default_compression_codec": "ZSTD(1)",
}


class Migration(Struct, frozen=True):
    """What brings a store to a version. Every statement may be run twice."""

    version: int
    statements: tuple[str, ...]


def column_type(column: StoredColumn) -> str:
    """Return the ClickHouse type of a stored column."""
    return (
        f"LowCardinality({_TYPES[column.kind]})" if column.low_cardinality else _TYPES[column.kind]
    )


def column_list(table: StoredTable) -> str:
    """Return the columns of a table as an INSERT names them."""
    return ", ".join(f"`{column.name}`" for column in table.columns)


def create_table(table: StoredTable) -> str:
    """Return the statement that makes a stored table where it is not there yet."""
    columns = ",\n".join(f"    `{c.name}` {column_type(c)}" for c in table.columns)
    return (
        f"CREATE TABLE IF NOT EXISTS `{table.name}`\n(\n{columns}\n)\n"
        f"ENGINE = MergeTree\nORDER BY (website_id, time)\nSETTINGS {_join_settings(_SETTINGS)}"
    )


def _join_settings(settings: Mapping[str, int | str]) -> str:
    return ", ".join(
        f"{name} = {value}" if isinstance(value, int) else f"{name} = '{value}'"
        for name, value in settings.items()
    )


def _modify_settings(table: str, settings: Mapping[str, int | str]) -> str:
    return f"ALTER TABLE `{table}` MODIFY SETTING {_join_settings(settings)}"


CREATE_VERSION_TABLE = (
    f"CREATE TABLE IF NOT EXISTS `{VERSION_TABLE}`\n"
    "(\n    `version` UInt32,\n    `applied_at` DateTime64(3, 'UTC') DEFAULT now64(3)\n)\n"
    f"ENGINE = MergeTree\nORDER BY version\nSETTINGS {_join_settings(_DURABILITY)}"
)
SELECT_VERSION = f"SELECT max(version) FROM `{VERSION_TABLE}`"  # noqa: S608 - our own name

MIGRATIONS: tuple[Migration, ...] = (
    # The tables as they are now. A later migration alters what an older version made and finds
    # its work done in a new store: ADD COLUMN IF NOT EXISTS and the like.
    Migration(1, tuple(create_table(table) for table in STORAGE_TABLES.values())),
    Migration(2, rollup_ddl.STATEMENTS),
    Migration(3, tuple(_modify_settings(name, _MERGE_SETTINGS) for name in STORAGE_TABLES)),
)


def record_version(migration: Migration) -> str:
    """Return the statement that notes a migration as done."""
    return (
        f"INSERT INTO `{VERSION_TABLE}` (version) "  # noqa: S608 - our own name and a number
        f"SETTINGS async_insert = 0 VALUES ({migration.version})"
    )


def pending_migrations(
    stored_version: int, migrations: tuple[Migration, ...] = MIGRATIONS
) -> tuple[Migration, ...]:
    """Return what a store of a version (0: empty) still needs, in order.

    Raises `OperatorError` when a newer Headrace wrote the store.
    """
    newest = migrations[-1].version
    if stored_version > newest:
        raise OperatorError(
            f"the store was written by a newer Headrace (layout {stored_version}, this version "
            f"knows {newest}); start that version, or restore a copy from before the upgrade"
        )
    return tuple(m for m in migrations if m.version > stored_version)
