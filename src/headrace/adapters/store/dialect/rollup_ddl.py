"""How visits are kept: as a projection of `events`, and a view that reads it.

A projection is a part of each of the table's parts: it is written, merged, copied and checked with
them, so an event is in both or in neither. The view gives its columns their names.
"""

from headrace.formats.rollup_columns import (
    VISIT_FIGURES,
    VISIT_KEYS,
    VISITS,
    visit_column,
)
from headrace.model.catalog import EVENTS

_MARKS_EVERY = 1024
"""Rows of visits are few and long; what is looked up beyond a range is spread among them."""

_TABLE = f"`{EVENTS.name}`"

ADD_PROJECTION = (
    f"ALTER TABLE {_TABLE} ADD PROJECTION IF NOT EXISTS {VISITS}\n(\n    SELECT\n        "
    + ",\n        ".join([*VISIT_KEYS.values(), *VISIT_FIGURES.values()])
    + "\n    GROUP BY\n        "
    + ",\n        ".join(VISIT_KEYS.values())
    + f"\n) WITH SETTINGS (index_granularity = {_MARKS_EVERY})"
)

KEEP_WHEN_DELETING = (
    f"ALTER TABLE {_TABLE} MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild'"
)
"""DELETE would be refused, or leave the visits of what it deletes."""

FILL_PROJECTION = (
    f"ALTER TABLE {_TABLE} MATERIALIZE PROJECTION {VISITS} SETTINGS mutations_sync = 2"
)
"""Makes the visits of parts that have none, or broken ones; returns when all have them."""

_SOURCE = f"mergeTreeProjection(currentDatabase(), '{EVENTS.name}', '{VISITS}')"


def _create_view() -> str:
    """All columns, for people and for clusters. One SELECT: another one below it costs more."""
    names = [*VISIT_KEYS, *VISIT_FIGURES]
    columns = ",\n    ".join(f"{visit_column(name)} AS {name}" for name in names)
    return f"CREATE VIEW IF NOT EXISTS `{VISITS}` AS\nSELECT\n    {columns}\nFROM {_SOURCE}"


CREATE_VIEW = _create_view()
STATEMENTS = (KEEP_WHEN_DELETING, ADD_PROJECTION, FILL_PROJECTION, CREATE_VIEW)


def count_parts_without_visits(database: str) -> str:
    """Return the statement that counts the parts of `events` with no visits, or broken ones.

    Every select of visits fails over a broken projection, and knows nothing of a missing one. A
    part whose rows are all deleted rightly has none. `database` is SQL for the database's name.
    """
    there = f"database = {database} AND table = '{EVENTS.name}' AND active"
    broken = (
        f"SELECT parent_name FROM system.projection_parts WHERE {there} "  # noqa: S608 - our own names
        f"AND name = '{VISITS}' AND is_broken"
    )
    missing = f"NOT has(projections, '{VISITS}') AND NOT has_lightweight_delete"
    return (
        f"SELECT count() FROM system.parts WHERE {there} "  # noqa: S608 - our own names
        f"AND ({missing} OR name IN ({broken}))"
    )


def count_projections(database: str) -> str:
    """Return the statement that tells whether `events` has the projection; else it is older."""
    return (
        "SELECT count() FROM system.projections WHERE "  # noqa: S608 - our own names
        f"database = {database} AND table = '{EVENTS.name}' AND name = '{VISITS}'"
    )
