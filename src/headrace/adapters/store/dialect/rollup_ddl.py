"""The daily rollup in the store: the projection `visits` of `events`, and a view of that name.

Each part of the table has a part of the projection: both are written, merged, copied and checked
together, so an event is in both or in neither. The view names the projection's columns.
"""

from typing import Final

from headrace.adapters.store.dialect.statements import AlterTable, CreateView, Statement
from headrace.formats.rollup_columns import (
    ROLLUP,
    ROLLUP_AGGREGATES,
    ROLLUP_KEYS,
    rollup_column,
)
from headrace.model.catalog import EVENTS

_INDEX_GRANULARITY = 1024
"""Rollup rows are few and long, and lookups outside of a range hit rows all over the projection."""

ADD_PROJECTION: Final = AlterTable(
    name=EVENTS.name,
    change=(
        f"ADD PROJECTION IF NOT EXISTS {ROLLUP}\n(\n    SELECT\n        "
        + ",\n        ".join([*ROLLUP_KEYS.values(), *ROLLUP_AGGREGATES.values()])
        + "\n    GROUP BY\n        "
        + ",\n        ".join(ROLLUP_KEYS.values())
        + f"\n) WITH SETTINGS (index_granularity = {_INDEX_GRANULARITY})"
    ),
)

REBUILD_ON_DELETE: Final = AlterTable(
    name=EVENTS.name, change="MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild'"
)
"""Otherwise ClickHouse rejects a DELETE, or keeps the rollup rows of deleted events."""

MATERIALIZE_PROJECTION: Final = AlterTable(
    name=EVENTS.name,
    change=f"MATERIALIZE PROJECTION {ROLLUP}",
    settings={"mutations_sync": 2},
    is_mutation=True,
)
"""Builds the projection in parts that have none, or a broken one; returns when all have it."""

START_REBUILD: Final = AlterTable(
    name=EVENTS.name,
    change=MATERIALIZE_PROJECTION.change,
    settings={"mutations_sync": 0},
    is_mutation=True,
)
"""Starts to build the same; `select_unfinished_rebuilds` lists it until all parts have it."""

# All columns: operators read the view, and clusters distribute it. A nested SELECT costs more.
CREATE_VIEW: Final = CreateView(
    name=ROLLUP,
    columns=tuple(
        f"{rollup_column(name)} AS {name}" for name in (*ROLLUP_KEYS, *ROLLUP_AGGREGATES)
    ),
    projection_of=EVENTS.name,
    projection=ROLLUP,
)
STATEMENTS: Final[tuple[Statement, ...]] = (
    REBUILD_ON_DELETE,
    ADD_PROJECTION,
    MATERIALIZE_PROJECTION,
    CREATE_VIEW,
)


def count_parts_without_rollup(database: str) -> str:
    """Return the statement that counts the parts of `events` with a missing or broken projection.

    Every select of the rollup fails at a broken projection, and silently skips a missing one. A
    part without rows, or whose rows are all deleted, never gets one. `database` is SQL for the
    database's name.
    """
    condition = f"database = {database} AND table = '{EVENTS.name}' AND active"
    broken = (
        f"SELECT parent_name FROM system.projection_parts WHERE {condition} "  # noqa: S608 - our own names
        f"AND name = '{ROLLUP}' AND is_broken"
    )
    missing = f"NOT has(projections, '{ROLLUP}') AND NOT has_lightweight_delete AND rows > 0"
    return (
        f"SELECT count() FROM system.parts WHERE {condition} "  # noqa: S608 - our own names
        f"AND ({missing} OR name IN ({broken}))"
    )


def select_unfinished_rebuilds(database: str) -> str:
    """Return the statement that lists the mutations that still build the projection."""
    return (
        "SELECT mutation_id FROM system.mutations WHERE NOT is_done AND "  # noqa: S608 - our own names
        f"database = {database} AND table = '{EVENTS.name}' "
        f"AND position(command, 'MATERIALIZE PROJECTION {ROLLUP}') > 0"
    )


def count_projections(database: str) -> str:
    """Return the statement that counts the projection: 0 for a store of an older version."""
    return (
        "SELECT count() FROM system.projections WHERE "  # noqa: S608 - our own names
        f"database = {database} AND table = '{EVENTS.name}' AND name = '{ROLLUP}'"
    )
