"""Visits: what the store keeps beside the events, to make sessions and profiles of them fast.

A visit is all events of one website that share the UTC day, session, person and labels. A session
or a person is made of few of them: of one for most sessions.

The columns are SQL over events, written as ClickHouse writes it, functions instead of operators: it
names the columns of a projection by their expressions.
"""

from collections.abc import Mapping

from headrace.model.catalog import EVENTS, PAGE_VIEW_NAMES, SESSIONS

VISITS = "visits"

VISIT_LABELS: tuple[str, ...] = tuple(
    column.name
    for column in EVENTS.columns
    if column.few_values and SESSIONS.column(column.name) is not None
)
"""The texts that every event of a visit has alike; the columns that both derived tables have."""

DAY_MS = 86_400_000
"""The length of a visit's `day`, which counts from 1970 in UTC."""

PLACE_BITS = 128
"""An event's place is its time in epoch milliseconds above so many bits of its id: places sort by
time, then by arrival, and no two events have the same one."""

_PAGE_VIEWS = ", ".join(f"'{name}'" for name in PAGE_VIEW_NAMES)
_MS = "toUnixTimestamp64Milli(time)"
_PLACE = f"bitOr(bitShiftLeft(toUInt256({_MS}), {PLACE_BITS}), reinterpretAsUInt128(reverse(id)))"


def _mark(owner: str) -> str:
    """An odd number, or 0. With `if`, DELETE could not make the visits anew: chDB 4.4 takes the
    constant for a signed number there, and fails."""
    return f"toUInt32(multiply(bitOr(xxHash32({owner}), 1), notEquals({owner}, '')))"


def key_of(owner: str) -> str:
    """Return the key of an id: a hash of 128 bits, like those by which the store counts distinct
    texts exactly, so it stands for its id."""
    return f"reinterpretAsUInt128(sipHash128({owner}))"


NO_KEY = key_of("''")
"""The `session_key` and `person_key` of events without such an id, and of no other events."""

VISIT_KEYS: Mapping[str, str] = {
    "website_id": "website_id",
    "is_bot": "is_bot",
    "day": f"intDiv({_MS}, {DAY_MS})",
    "session_mark": _mark("session_id"),
    "session_key": key_of("session_id"),
    "session_id": "session_id",
    "person_mark": _mark("anonymous_id"),
    "person_key": key_of("anonymous_id"),
    "anonymous_id": "anonymous_id",
    **{label: label for label in VISIT_LABELS},
}
"""What the events of a visit share, in the order in which visits are sorted."""

VISIT_FIGURES: Mapping[str, str] = {
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
"""What is made of the events of a visit."""

_MERGED_LATER = frozenset({"first_path", "last_path", "first_referrer"})
"""States: several can only be put together while they know where their texts come from."""

VISITS_PROJECTION = f"mergeTreeProjection('', '{EVENTS.name}', '{VISITS}')"
"""What FROM names to read the columns of the projection, in the database in use."""


def visit_column(name: str, of: str = "") -> str:
    """Return a column of visits in SQL over the projection; `of` is its alias and a dot."""
    if name in VISIT_KEYS:
        return f"{of}`{VISIT_KEYS[name]}`"
    made = f"{of}`{VISIT_FIGURES[name]}`"
    return made if name in _MERGED_LATER else f"finalizeAggregation({made})"
