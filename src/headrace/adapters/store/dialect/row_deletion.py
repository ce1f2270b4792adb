"""Deletes rows by mutations: a mutation rewrites every part that has a row to delete."""

from collections.abc import Collection
from typing import Final

from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.statements import AlterTable

_DELETE: Final = "DELETE WHERE"


def delete_rows(table: str, condition: str) -> AlterTable:
    """Return the statement that begins to delete rows; `condition` is SQL."""
    return AlterTable(
        name=table,
        change=f"{_DELETE} {condition}",
        settings={"mutations_sync": 0},
        is_mutation=True,
    )


def select_mutations(mutations: str, *, merges: str | None = None) -> str:
    """Return the statement that reads unfinished deletions: see `DeletionState`.

    `mutations` and `merges` are SQL for FROM. Binds `database` and `table`. A mutation that was
    just created may not have counted its parts yet, so it counts as one part itself. A replica with
    a full disk says that a part is in progress, and why it puts it off. With `merges`, a mutation
    behind any of these waits its turn: chDB has two threads for them, a server many.
    """
    is_idle = f"(SELECT count() FROM {merges}) = 0" if merges else "true"  # noqa: S608 - our own
    return (
        "SELECT toFloat64(sum(greatest(parts_to_do, 1))), "  # noqa: S608 - our own names
        "toFloat64(countIf(latest_fail_reason != '')), toFloat64(count() > 0 AND "
        "min(empty(parts_in_progress_names) OR notEmpty(parts_postpone_reasons)) "
        f"AND {is_idle}) "
        f"FROM {mutations} "
        "WHERE database = {database:String} AND table = {table:String} "
        f"AND NOT is_done AND position(command, '{_DELETE}') > 0"
    )


def count_replaced_parts(parts: str) -> str:
    """Return the statement that counts parts that are not read and still on disk; see above."""
    return (
        f"SELECT toFloat64(count()) FROM {parts} "  # noqa: S608 - our own names
        "WHERE NOT active AND database = {database:String} AND table = {table:String}"
    )


def select_replaced_parts(parts: str, tables: Collection[str]) -> str:
    """Return the statement that names the parts that are not read and still on disk; see above."""
    names = ", ".join(quote_literal(table) for table in tables)
    return (
        f"SELECT DISTINCT concat(hostName(), '/', table, '/', name) FROM {parts} "  # noqa: S608 - our own names
        f"WHERE NOT active AND database = {{database:String}} AND table IN ({names})"
    )


def count_detached_parts(parts: str, tables: Collection[str]) -> str:
    """Return the statement that counts parts that were set aside; see above."""
    names = ", ".join(quote_literal(table) for table in tables)
    return (
        f"SELECT toFloat64(count()) FROM {parts} "  # noqa: S608 - our own names
        f"WHERE database = {{database:String}} AND table IN ({names})"
    )


def select_table_size(parts: str) -> str:
    """Return the statement that reads the rows and bytes of the parts that are read; see above."""
    return (
        f"SELECT toFloat64(sum(rows)), toFloat64(sum(bytes_on_disk)) FROM {parts} "  # noqa: S608
        "WHERE active AND database = {database:String} AND table = {table:String}"
    )
