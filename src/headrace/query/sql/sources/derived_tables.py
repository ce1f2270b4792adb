"""Columns of sessions and profiles as aggregates over the daily rollups of one session or profile.

All functions return templates: the names in braces are rollup columns (`RollupExpression`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headrace.formats.id_keys import EMPTY_ID_HASH
from headrace.formats.rollup_columns import ROLLUP_DIMENSIONS
from headrace.model.catalog import Aggregate
from headrace.model.plan import QueryPlan, single_filters

# A bounce: at most this many page views, in less than this time.
_BOUNCE_MAX_PAGE_VIEWS = 1
_BOUNCE_BELOW_MS = 10_000

_FIRST_TOUCH_PREFIX = "utm_"
"""A profile has the campaign of its first event; its other dimensions are those of its last."""

EVENT_COUNT = "sum({event_count})"
PAGE_VIEW_COUNT = "sum({page_views})"
FIRST_MS = "min({first_ms})"
LAST_MS = "max({last_ms})"
FIRST_TIMESTAMP = f"fromUnixTimestamp64Milli({FIRST_MS}, 'UTC')"
LAST_TIMESTAMP = f"fromUnixTimestamp64Milli({LAST_MS}, 'UTC')"
FIRST_PATH = "argMinIfMerge({first_path})"
LAST_PATH = "argMaxIfMerge({last_path})"
FIRST_REFERRER = "argMinIfMerge({first_referrer})"
FIRST_VISITOR_KEY = f"argMinIf({{person_key}}, {{first_place}}, {{person_key}} != {EMPTY_ID_HASH})"
"""The key of the first id that is not empty, 0 without one: see `id_keys.NO_KEY`."""

_ROLLUP_TEXT_COLUMNS = frozenset({*ROLLUP_DIMENSIONS, "anonymous_id"})


def first_text(column: str) -> str:
    """Return the first text that is not empty, by time, then by arrival."""
    return f"argMinIf({_dimension(column)}, {{first_place}}, {_dimension(column)} != '')"


def last_text(column: str) -> str:
    """Return the last text that is not empty, by time, then by arrival."""
    return f"argMaxIf({_dimension(column)}, {{last_place}}, {_dimension(column)} != '')"


def as_number(aggregate: str) -> str:
    """Convert an aggregate to the type of stored numbers: null over no rows."""
    return f"toNullable(toFloat64({aggregate}))"


def _dimension(column: str) -> str:
    """Return a column that all events of a rollup share.

    So the rollup's first and last position are also those of the text.
    """
    if column not in _ROLLUP_TEXT_COLUMNS:
        raise KeyError(column)
    return f"{{{column}}}"


_DURATION_MS = f"({LAST_MS} - {FIRST_MS})"

_SESSION_AGGREGATES: Mapping[str, str] = {
    "session_id": "any({session_id})",
    "entry_path": FIRST_PATH,
    "exit_path": LAST_PATH,
    "referrer": FIRST_REFERRER,
    "start_time": FIRST_TIMESTAMP,
    "end_time": LAST_TIMESTAMP,
    "is_bounce": (
        f"toBool({PAGE_VIEW_COUNT} <= {_BOUNCE_MAX_PAGE_VIEWS}"
        f" AND {_DURATION_MS} < {_BOUNCE_BELOW_MS})"
    ),
    "duration": as_number(f"{_DURATION_MS} / 1000"),
    "page_views": as_number(PAGE_VIEW_COUNT),
    "event_count": as_number(EVENT_COUNT),
}


def session_aggregate(column: str) -> str:
    """Return a column of sessions: its entry in the table, else the first non-empty text."""
    return _SESSION_AGGREGATES.get(column) or first_text(column)


_PROFILE_AGGREGATES: Mapping[str, str] = {
    "anonymous_id": "any({anonymous_id})",
    "referrer": FIRST_REFERRER,
    "first_seen": FIRST_TIMESTAMP,
    "last_seen": LAST_TIMESTAMP,
    "session_count": as_number(f"uniqExactIf({{session_key}}, {{session_key}} != {EMPTY_ID_HASH})"),
    "event_count": as_number(EVENT_COUNT),
    "page_views": as_number(PAGE_VIEW_COUNT),
}


def profile_aggregate(column: str) -> str:
    """Return a column of profiles: its entry in the table, else the first or last text."""
    if column in _PROFILE_AGGREGATES:
        return _PROFILE_AGGREGATES[column]
    is_first = column.startswith(_FIRST_TOUCH_PREFIX)
    return first_text(column) if is_first else last_text(column)


class Grouping(NamedTuple):
    """What rollups are grouped by, and how the columns of a group are made.

    `id_column` is the column of `events` with the id. `key` is a template of its hash in the
    rollups; so is what `aggregate` returns for the name of a column, and `id_keys` has for the key
    of an id by the column of the id.
    """

    id_column: str
    key: str
    aggregate: Callable[[str], str]
    id_keys: Mapping[str, str]


SESSION = Grouping(
    "session_id",
    "{session_key}",
    session_aggregate,
    {"session_id": "{session_key}", "anonymous_id": FIRST_VISITOR_KEY},
)
PROFILE = Grouping(
    "anonymous_id", "{person_key}", profile_aggregate, {"anonymous_id": "{person_key}"}
)


def counted_ids(plan: QueryPlan, grouping: Grouping) -> list[str]:
    """Return the columns whose distinct ids are counted: by their keys, without the texts."""
    counted = {
        select.column.name
        for select in plan.selects
        if select.column is not None and select.aggregate is Aggregate.UNIQ
    }
    return [name for name in grouping.id_keys if name in counted]


def needed_columns(plan: QueryPlan, counted: Sequence[str]) -> list[str]:
    """Return the columns that a plan reads, without those whose ids are only counted."""
    needed: set[str] = set()
    if plan.table.supports_granularity:
        needed.add(plan.table.time_column)
    needed.update(column.name for column in plan.group_by)
    filters = [*plan.filters, *(own for select in plan.selects for own in select.filters)]
    needed.update(planned.column.name for planned in single_filters(filters))
    needed.update(
        select.column.name
        for select in plan.selects
        if select.column is not None
        and not (select.aggregate is Aggregate.UNIQ and select.column.name in counted)
    )
    return [column.name for column in plan.table.columns if column.name in needed]
