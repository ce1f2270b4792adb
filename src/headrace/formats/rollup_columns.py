"""The daily rollup of events, from which sessions and profiles are computed fast.

A row of the rollup aggregates all events of one website that share UTC day, session, profile and
dimensions. A session or a profile consists of few rows; most sessions of one.

The columns are SQL over events in ClickHouse's canonical form, functions instead of operators,
because ClickHouse names the columns of a projection by their expressions. The names `visits`,
`session_mark`, `person_key`, `first_place` are part of stored data and SQL text.
"""

from collections.abc import Mapping

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.id_keys import hash128
from headrace.model.catalog import EVENTS, PAGE_VIEW_NAMES, SESSIONS

ROLLUP = "visits"

ROLLUP_DIMENSIONS: tuple[str, ...] = tuple(
    column.name
    for column in EVENTS.columns
    if column.low_cardinality and SESSIONS.column(column.name) is not None
)
"""The texts that all events of a rollup row share: the columns of both derived tables."""

POSITION_ID_BITS = 128
"""An event's position is its time in epoch milliseconds, shifted by this many bits, and its id.
Positions sort by time, then by arrival, and are unique."""

_PAGE_VIEWS = ", ".join(f"'{name}'" for name in PAGE_VIEW_NAMES)
_MS = "toUnixTimestamp64Milli(time)"
_POSITION = (
    f"bitOr(bitShiftLeft(toUInt256({_MS}), {POSITION_ID_BITS}), reinterpretAsUInt128(reverse(id)))"
)


def _hash32(id_expr: str) -> str:
    """Return SQL for an odd number, or 0 for an empty id.

    Not written with `if`: DELETE could not rebuild the rollup then, because chDB 4.4 takes the
    constant for a signed number there, and fails.
    """
    return f"toUInt32(multiply(bitOr(xxHash32({id_expr}), 1), notEquals({id_expr}, '')))"


ROLLUP_KEYS: Mapping[str, str] = {
    "website_id": "website_id",
    "is_bot": "is_bot",
    "day": f"intDiv({_MS}, {MILLISECONDS_PER_DAY})",
    "session_mark": _hash32("session_id"),
    "session_key": hash128("session_id"),
    "session_id": "session_id",
    "person_mark": _hash32("anonymous_id"),
    "person_key": hash128("anonymous_id"),
    "anonymous_id": "anonymous_id",
    **{dimension: dimension for dimension in ROLLUP_DIMENSIONS},
}
"""The columns that identify a rollup row, in its sort order. The `session_key` and `person_key` of
events without such an id are the hash of an empty text."""

ROLLUP_AGGREGATES: Mapping[str, str] = {
    "first_ms": f"min({_MS})",
    "last_ms": f"max({_MS})",
    "first_place": f"min({_POSITION})",
    "last_place": f"max({_POSITION})",
    "event_count": "count()",
    "page_views": f"countIf(in(event_name, ({_PAGE_VIEWS})))",
    "first_path": f"argMinIf(path, {_POSITION}, notEquals(path, ''))",
    "last_path": f"argMaxIf(path, {_POSITION}, notEquals(path, ''))",
    "first_referrer": f"argMinIf(referrer, {_POSITION}, notEquals(referrer, ''))",
}
"""The aggregates of a rollup row."""

_KEPT_AS_STATES = frozenset({"first_path", "last_path", "first_referrer"})
"""Columns kept as aggregate states: merging them requires the positions of their texts."""

ROLLUP_PROJECTION = f"mergeTreeProjection('', '{EVENTS.name}', '{ROLLUP}')"
"""The table function that reads the projection, for FROM in the current database."""


def _row_state(aggregate: str) -> str:
    """Return SQL for the state of an aggregate over one event."""
    function, _, arguments = aggregate.removesuffix(")").partition("(")
    return f"initializeAggregation('{function}State', {arguments or '1'})"


def rollup_column(name: str, qualifier: str = "") -> str:
    """Return a rollup column in SQL over the projection; `qualifier` is its alias and a dot."""
    if name in ROLLUP_KEYS:
        return f"{qualifier}`{ROLLUP_KEYS[name]}`"
    state = f"{qualifier}`{ROLLUP_AGGREGATES[name]}`"
    return state if name in _KEPT_AS_STATES else f"finalizeAggregation({state})"


_ROW_COLUMNS = ", ".join(
    [
        *(f"{key} AS `{key}`" for key in ROLLUP_KEYS.values()),
        *(f"{_row_state(each)} AS `{each}`" for each in ROLLUP_AGGREGATES.values()),
    ]
)
_VIEW_COLUMNS = ", ".join(
    f"{rollup_column(name)} AS {name}" for name in (*ROLLUP_KEYS, *ROLLUP_AGGREGATES)
)
_ROLLUP_OF_EVENTS = f"(SELECT {_ROW_COLUMNS} FROM {EVENTS.name})"  # noqa: S608 - our own names
"""The columns of the projection with a row for each event: parts are not merged with each other
either. Without GROUP BY only the columns that a query needs are computed, and nothing is kept."""

_VIEW_OF_EVENTS = f"(SELECT {_VIEW_COLUMNS} FROM {_ROLLUP_OF_EVENTS})"  # noqa: S608 - our own names


def rollup_from_events(sql: str) -> str:
    """Return a statement that computes the rollup from the events instead of reading it.

    It gives the same rows and takes longer. A statement that reads no rollup is not changed: values
    of a caller are bound, so the names that are replaced are ours.
    """
    return sql.replace(ROLLUP_PROJECTION, _ROLLUP_OF_EVENTS).replace(
        f"FROM {ROLLUP} AS ", f"FROM {_VIEW_OF_EVENTS} AS "
    )
