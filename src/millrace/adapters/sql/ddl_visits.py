"""How visits are kept: as a projection of `events`, and a view that reads it.

A projection is a part of each of the table's parts: it is written, merged, copied and checked with
them, so an event is in both or in neither. ClickHouse names its columns by their expressions, which
are written here as it writes them: functions instead of operators. The view gives them names.
"""

from collections.abc import Mapping

from millrace.model.catalog import EVENTS, PAGE_VIEW_NAMES
from millrace.model.visits import DAY_MS, PLACE_BITS, VISIT_LABELS, VISITS

_PAGE_VIEWS = ", ".join(f"'{name}'" for name in PAGE_VIEW_NAMES)
_MS = "toUnixTimestamp64Milli(time)"
_PLACE = f"bitOr(bitShiftLeft(toUInt256({_MS}), {PLACE_BITS}), reinterpretAsUInt128(reverse(id)))"
_MARKS_EVERY = 1024
"""Rows of visits are few and long; what is looked up beyond a range is spread among them."""


def _mark(owner: str) -> str:
    """An odd number, or 0 (`NO_MARK`). With `if`, DELETE could not make the visits anew: chDB 4.4
    takes the constant for a signed number there, and fails."""
    return f"toUInt32(multiply(bitOr(xxHash32({owner}), 1), notEquals({owner}, '')))"


def _key(owner: str) -> str:
    return f"reinterpretAsUInt128(sipHash128({owner}))"


_SHARED: Mapping[str, str] = {
    "website_id": "website_id",
    "is_bot": "is_bot",
    "day": f"intDiv({_MS}, {DAY_MS})",
    "session_mark": _mark("session_id"),
    "session_key": _key("session_id"),
    "session_id": "session_id",
    "person_mark": _mark("anonymous_id"),
    "person_key": _key("anonymous_id"),
    "anonymous_id": "anonymous_id",
    **{label: label for label in VISIT_LABELS},
}
"""What the events of a visit share, in the order in which visits are sorted."""

_FIGURES: Mapping[str, str] = {
    "first_ms": f"min({_MS})",
    "last_ms": f"max({_MS})",
    "first_place": f"min({_PLACE})",
    "last_place": f"max({_PLACE})",
    "event_count": "count()",
    "page_views": f"countIf(in(event_name, ({_PAGE_VIEWS})))",
    "first_path": f"argMinIf(path, {_PLACE}, notEquals(path, ''))",
    "last_path": f"argMaxIf(path, {_PLACE}, notEquals(path, ''))",
    "first_referrer": f"argMinIf(referrer, {_PLACE}, notEquals(referrer, ''))",
}

_MERGED_LATER = frozenset({"first_path", "last_path", "first_referrer"})
"""States: several can only be put together while they know where their texts come from."""

_TABLE = f"`{EVENTS.name}`"

ADD_PROJECTION = (
    f"ALTER TABLE {_TABLE} ADD PROJECTION IF NOT EXISTS {VISITS}\n(\n    SELECT\n        "
    + ",\n        ".join([*_SHARED.values(), *_FIGURES.values()])
    + "\n    GROUP BY\n        "
    + ",\n        ".join(_SHARED.values())
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
    """One SELECT: another one below it would cost each question some milliseconds of planning."""
    whole = _SHARED.keys() | _MERGED_LATER
    columns = ",\n    ".join(
        f"`{made}` AS {name}" if name in whole else f"finalizeAggregation(`{made}`) AS {name}"
        for name, made in {**_SHARED, **_FIGURES}.items()
    )
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
