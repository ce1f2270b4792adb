"""Visits: what the store keeps beside the events, to make sessions and profiles of them fast.

A visit is all events of one website that share the UTC day, session, person and labels. A session
or a person is made of few of them: of one for most sessions.

The columns are SQL over events, written as ClickHouse writes it, functions instead of operators: it
names the columns of a projection by their expressions.
"""

from collections.abc import Mapping

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.catalog import EVENTS, PAGE_VIEW_NAMES, SESSIONS

ROLLUP = "visits"

ROLLUP_DIMENSIONS: tuple[str, ...] = tuple(
    column.name
    for column in EVENTS.columns
    if column.low_cardinality and SESSIONS.column(column.name) is not None
)
"""The texts that every event of a visit has alike; the columns that both derived tables have."""

POSITION_ID_BITS = 128
"""An event's place is its time in epoch milliseconds above so many bits of its id: places sort by
time, then by arrival, and no two events have the same one."""

_PAGE_VIEWS = ", ".join(f"'{name}'" for name in PAGE_VIEW_NAMES)
_MS = "toUnixTimestamp64Milli(time)"
_POSITION = (
    f"bitOr(bitShiftLeft(toUInt256({_MS}), {POSITION_ID_BITS}), reinterpretAsUInt128(reverse(id)))"
)


def _hash32(id_expr: str) -> str:
    """An odd number, or 0. With `if`, DELETE could not make the visits anew: chDB 4.4 takes the
    constant for a signed number there, and fails."""
    return f"toUInt32(multiply(bitOr(xxHash32({id_expr}), 1), notEquals({id_expr}, '')))"


def hash128(id_expr: str) -> str:
    """Return the key of an id: a hash of 128 bits, like those by which the store counts distinct
    texts exactly, so it stands for its id."""
    return f"reinterpretAsUInt128(sipHash128({id_expr}))"


EMPTY_ID_HASH = hash128("''")
"""The `session_key` and `person_key` of events without such an id, and of no other events."""

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
"""What the events of a visit share, in the order in which visits are sorted."""

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
"""What is made of the events of a visit."""

_KEPT_AS_STATES = frozenset({"first_path", "last_path", "first_referrer"})
"""States: several can only be put together while they know where their texts come from."""

ROLLUP_PROJECTION = f"mergeTreeProjection('', '{EVENTS.name}', '{ROLLUP}')"
"""What FROM names to read the columns of the projection, in the database in use."""


def rollup_column(name: str, qualifier: str = "") -> str:
    """Return a column of visits in SQL over the projection; `qualifier` is its alias and a dot."""
    if name in ROLLUP_KEYS:
        return f"{qualifier}`{ROLLUP_KEYS[name]}`"
    state = f"{qualifier}`{ROLLUP_AGGREGATES[name]}`"
    return state if name in _KEPT_AS_STATES else f"finalizeAggregation({state})"
