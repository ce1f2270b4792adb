"""The layout of the stored tables, and the migrations of an older store to it."""

from pathlib import Path

import pytest

from headrace.adapters.store.dialect import id_key_ddl, rollup_ddl, simple_properties_ddl
from headrace.adapters.store.dialect.ddl import (
    MIGRATIONS,
    Migration,
    column_list,
    column_type,
    create_table,
    pending_migrations,
)
from headrace.adapters.store.dialect.fingerprint import ADD_FINGERPRINT
from headrace.adapters.store.dialect.statements import AlterTable, render
from headrace.base.errors import OperatorError
from headrace.model.catalog import Kind
from headrace.model.storage import STORAGE_TABLES, StoredColumn

GOLDEN = Path(__file__).parents[3] / "golden" / "store_tables.sql"

FIRST, SECOND, THIRD = (
    Migration(version, (AlterTable(name="events", change=f"change {version}"),))
    for version in (1, 2, 3)
)


def test_the_stored_layout_changes_only_together_with_a_migration() -> None:
    """After adding a column to the catalog: add a migration, then update the golden file."""
    tables = (create_table(table) for table in STORAGE_TABLES.values())
    made = (
        *tables,
        *rollup_ddl.STATEMENTS,
        ADD_FINGERPRINT,
        *id_key_ddl.STATEMENTS,
        *simple_properties_ddl.STATEMENTS,
    )
    statements = ";\n\n".join(map(render, made)) + ";\n"
    assert (MIGRATIONS[-1].version, statements) == (9, GOLDEN.read_text())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (StoredColumn("a", Kind.TEXT), "String"),
        (StoredColumn("a", Kind.TEXT, low_cardinality=True), "LowCardinality(String)"),
        (StoredColumn("a", Kind.NUMBER), "Nullable(Float64)"),
        (StoredColumn("a", Kind.DATETIME), "DateTime64(3, 'UTC')"),
        (StoredColumn("a", Kind.BOOLEAN), "Bool"),
        (StoredColumn("a", Kind.IDENTIFIER), "FixedString(16)"),
        (StoredColumn("a", Kind.JSON), "String"),
        (StoredColumn("a", Kind.DIGEST), "FixedString(8)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_kind_has_its_type(column: StoredColumn, expected: str) -> None:
    assert column_type(column) == expected


def test_an_insert_names_its_columns_in_the_stored_order() -> None:
    names = [column.name for column in STORAGE_TABLES["performance"].columns]
    assert column_list(STORAGE_TABLES["performance"]) == ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize(
    ("stored_version", "expected"),
    [(0, (FIRST, SECOND, THIRD)), (1, (SECOND, THIRD)), (3, ())],
    ids=["empty", "older", "current"],
)
def test_a_store_gets_the_migrations_that_it_lacks(
    stored_version: int, expected: tuple[Migration, ...]
) -> None:
    assert pending_migrations(stored_version, (FIRST, SECOND, THIRD)) == expected


def test_a_store_of_a_newer_version_is_left_alone() -> None:
    with pytest.raises(OperatorError) as rejected:
        pending_migrations(4, (FIRST, SECOND, THIRD))
    assert str(rejected.value) == (
        "the store was written by a newer Headrace (layout 4, this version knows 3); "
        "start that version, or restore a copy from before the upgrade"
    )
