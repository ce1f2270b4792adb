"""How visits are kept: as a projection of `events`, and a view that reads it.

A projection is a part of each of the table's parts: it is written, merged, copied and checked with
them, so an event is in both or in neither. The view gives its columns their names.
"""

from headrace.formats.rollup_columns import (
    ROLLUP,
    ROLLUP_AGGREGATES,
    ROLLUP_KEYS,
    rollup_column,
)
from headrace.model.catalog import EVENTS

_INDEX_GRANULARITY = 1024
"""Rows of visits are few and long; what is looked up beyond a range is spread among them."""

_TABLE = f"`{EVENTS.name}`"

ADD_PROJECTION = (
    f"ALTER TABLE {_TABLE} ADD PROJECTION IF NOT EXISTS {ROLLUP}\n(\n    SELECT\n        "
    + ",\n        ".join([*ROLLUP_KEYS.values(), *ROLLUP_AGGREGATES.values()])
    + "\n    GROUP BY\n        "
    + ",\n        ".join(ROLLUP_KEYS.values())
    + f"\n) WITH SETTINGS (index_granularity = {_INDEX_GRANULARITY})"
)

REBUILD_ON_DELETE = (
    f"ALTER TABLE {_TABLE} MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild'"
)
"""DELETE would be refused, or leave the visits of what it deletes."""

MATERIALIZE_PROJECTION = (
    f"ALTER TABLE {_TABLE} MATERIALIZE PROJECTION {ROLLUP} SETTINGS mutations_sync = 2"
)
"""Makes the visits of parts that have none, or broken ones; returns when all have them."""

_SOURCE = f"mergeTreeProjection(currentDatabase(), '{EVENTS.name}', '{ROLLUP}')"


def _create_view() -> str:
    """All columns, for people and for clusters. One SELECT: another one below it costs more."""
    names = [*ROLLUP_KEYS, *ROLLUP_AGGREGATES]
    columns = ",\n    ".join(f"{rollup_column(name)} AS {name}" for name in names)
    return f"CREATE VIEW IF NOT EXISTS `{ROLLUP}` AS\nSELECT\n    {columns}\nFROM {_SOURCE}"


CREATE_VIEW = _create_view()
STATEMENTS = (REBUILD_ON_DELETE, ADD_PROJECTION, MATERIALIZE_PROJECTION, CREATE_VIEW)


def count_parts_without_rollup(database: str) -> str:
    """Return the statement that counts the parts of `events` with no visits, or broken ones.

    Every select of visits fails over a broken projection, and knows nothing of a missing one. A
    part whose rows are all deleted rightly has none. `database` is SQL for the database's name.
    """
    condition = f"database = {database} AND table = '{EVENTS.name}' AND active"
    broken = (
        f"SELECT parent_name FROM system.projection_parts WHERE {condition} "  # noqa: S608 - our own names
        f"AND name = '{ROLLUP}' AND is_broken"
    )
    missing = f"NOT has(projections, '{ROLLUP}') AND NOT has_lightweight_delete"
    return (
        f"SELECT count() FROM system.parts WHERE {condition} "  # noqa: S608 - our own names
        f"AND ({missing} OR name IN ({broken}))"
    )


def count_projections(database: str) -> str:
    """Return the statement that tells whether `events` has the projection; else it is older."""
    return (
        "SELECT count() FROM system.projections WHERE "  # noqa: S608 - our own names
        f"database = {database} AND table = '{EVENTS.name}' AND name = '{ROLLUP}'"
    )
