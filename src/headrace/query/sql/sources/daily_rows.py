"""Events of whole UTC days as rows of the daily rollup, for plans that need no more than it has.

A rollup row stands for all events of a day that share its columns, and has how many they are. A day
in which a range begins or ends is divided, so its events are read themselves: each is a row that
stands for one event.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.id_keys import EMPTY_ID_HASH, ID_KEYS, KEY_TYPE, NO_KEY
from headrace.formats.rollup_columns import ROLLUP_DIMENSIONS
from headrace.model.catalog import EVENTS, PAGE_VIEW_NAMES, Aggregate, Operator
from headrace.model.plan import (
    DateRange,
    Granularity,
    PlannedCondition,
    PlannedFilter,
    PlannedSelect,
    QueryPlan,
    single_filters,
)
from headrace.query.sql.bots import IS_BOT, NOT_A_BOT
from headrace.query.sql.builder import Parameters, clause, group, statement
from headrace.query.sql.sources.rollup import RollupExpression, RollupTable
from headrace.query.sql.sources.visible_rows import VisibleRows
from headrace.query.sql.time_buckets import bind_utc_days
from headrace.query.validate.day_range import is_contiguous, utc_days

EVENT_COUNT: Final = "event_count"
"""The column with the number of events that a row stands for."""

PAGE_VIEWS: Final = "page_views"
"""The column with the number of page views among them."""

_TEXTS: Final = (*ROLLUP_DIMENSIONS, *ID_KEYS)
_ROLLUP_KEYS: Final = {"anonymous_id": "person_key", "session_id": "session_key"}
_DAY_MS: Final = f"{{day}} * {MILLISECONDS_PER_DAY}"
_ROLLUP_TIME: Final = f"fromUnixTimestamp64Milli({_DAY_MS}, 'UTC')"
_IS_PAGE_VIEW: Final = f"toUInt64(event_name IN {PAGE_VIEW_NAMES})"


def reads_daily_rows(plan: QueryPlan, *, is_distributed: bool) -> bool:
    """Return whether the daily rollup has all that a plan reads of at least one whole day.

    With divided days the view of the rollup is planned, which is worth while for distinct ids. An
    `is_distributed` store reads the events: it would have to read two tables on other machines.
    """
    is_divided = bool(divided_days(plan.ranges))
    return (
        plan.table.name == EVENTS.name
        and not is_distributed
        and all(map(is_contiguous, plan.ranges))
        and _has_buckets_of_days(plan)
        and (any(map(_counts_ids, plan.selects)) or not is_divided)
        and all(map(_is_counted, plan.selects))
        and _names(plan) <= {*_TEXTS, IS_BOT}
        and _has_whole_day(plan.range)
    )


def is_page_view_filter(condition: PlannedCondition) -> bool:
    """Return whether a condition of a select says that an event is a page view."""
    return (
        isinstance(condition, PlannedFilter)
        and condition.column.name == "event_name"
        and condition.operator is Operator.IN
        and set(condition.values) == set(PAGE_VIEW_NAMES)
    )


def divided_days(ranges: Sequence[DateRange]) -> list[int]:
    """Return the UTC days, counted from 1970, within which a range begins or ends."""
    ends = {end for days in ranges for end in (days.start_ms, days.end_ms)}
    return sorted({end // MILLISECONDS_PER_DAY for end in ends if end % MILLISECONDS_PER_DAY})


def write_daily_rows(plan: QueryPlan, visible: VisibleRows, parameters: Parameters) -> str:
    """Return the SELECT of the rows; their `time` is that of the event, or when the day begins.

    They have the columns that the plan reads, the keys of the ids that it counts, `event_count` and
    `page_views`. Its text depends on the number of divided days.
    """
    divided = [parameters.bind(day, "Int64") for day in divided_days(plan.ranges)]
    rollup = RollupTable(visible.rollups(), use_view=bool(divided))
    days = rollup.select(
        list(_rollup_columns(plan)), list(_rollup_conditions(plan, divided, parameters))
    )
    if not divided:
        return days
    in_days = [
        f"(time >= {_start_of(day)} AND time < {_start_of(f'({day} + 1)')})" for day in divided
    ]
    events = statement(
        clause("SELECT", ",", [*_event_columns(plan)]),
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [*visible.stored_rows(), *_bot_conditions(plan), group(" OR", in_days)],
        ),
    )
    return statement(days, "UNION ALL", events)


def _start_of(day: str) -> str:
    return f"fromUnixTimestamp64Milli({day} * {MILLISECONDS_PER_DAY}, 'UTC')"


def _rollup_columns(plan: QueryPlan) -> Iterator[RollupExpression]:
    yield RollupExpression(f"{_ROLLUP_TIME} AS {EVENTS.time_column}")
    for name in _selected(plan):
        yield RollupExpression(f"{{{name}}} AS {name}")
    for name in _counted_ids(plan):
        key = f"{{{_ROLLUP_KEYS[name]}}}"
        yield RollupExpression(
            f"if({key} = {EMPTY_ID_HASH}, to{KEY_TYPE}({NO_KEY}), {key}) AS {ID_KEYS[name]}"
        )
    yield RollupExpression(f"{{event_count}} AS {EVENT_COUNT}")
    yield RollupExpression(f"{{page_views}} AS {PAGE_VIEWS}")


def _event_columns(plan: QueryPlan) -> Iterator[str]:
    yield EVENTS.time_column
    yield from _selected(plan)
    yield from (ID_KEYS[name] for name in _counted_ids(plan))
    yield f"toUInt64(1) AS {EVENT_COUNT}"
    yield f"{_IS_PAGE_VIEW} AS {PAGE_VIEWS}"


def _rollup_conditions(
    plan: QueryPlan, divided: Sequence[str], parameters: Parameters
) -> Iterator[RollupExpression]:
    templates, arguments = list[str](), dict[str, str]()
    for number, days in enumerate(plan.ranges):
        bound = bind_utc_days(days, parameters)
        templates.append(f"{{day}} BETWEEN {{first{number}}} AND {{last{number}}}")
        arguments |= {f"first{number}": bound.first, f"last{number}": bound.last}
    yield RollupExpression(f"({' OR '.join(templates)})", arguments)
    if divided:
        listed = ", ".join(f"{{divided{number}}}" for number in range(len(divided)))
        named = {f"divided{number}": day for number, day in enumerate(divided)}
        yield RollupExpression(f"{{day}} NOT IN ({listed})", named)
    yield from map(RollupExpression, _bot_conditions(plan))


def _bot_conditions(plan: QueryPlan) -> list[str]:
    """Return the rule on bots where it holds for all rows: the rollup is sorted by it."""
    return [] if IS_BOT in _names(plan) else [NOT_A_BOT]


def _has_buckets_of_days(plan: QueryPlan) -> bool:
    """Return whether there are no buckets, or all of them begin when a UTC day does."""
    if plan.granularity is None:
        return True
    offsets = (offset for days in plan.ranges for _, offset in days.offsets)
    return plan.granularity is not Granularity.HOURLY and not any(offsets)


def _has_whole_day(days: DateRange) -> bool:
    first, end = utc_days(days)
    return len(range(first, end)) > len(divided_days([days]))


def _counts_ids(select: PlannedSelect) -> bool:
    return (
        select.aggregate is Aggregate.UNIQ
        and select.column is not None
        and select.column.name in ID_KEYS
    )


def _is_counted(select: PlannedSelect) -> bool:
    """Return whether a select counts events, page views or distinct ids."""
    if select.aggregate is Aggregate.COUNT:
        return not any(one.column.name == IS_BOT for one in single_filters(select.filters))
    return _counts_ids(select)


def _own_conditions(select: PlannedSelect) -> Iterator[PlannedCondition]:
    for condition in select.filters:
        if select.aggregate is not Aggregate.COUNT or not is_page_view_filter(condition):
            yield condition


def _names(plan: QueryPlan) -> set[str]:
    """Return the columns that are grouped by and compared."""
    conditions = [*plan.filters, *(one for own in plan.selects for one in _own_conditions(own))]
    return {
        *(column.name for column in plan.group_by),
        *(one.column.name for one in single_filters(conditions)),
    }


def _selected(plan: QueryPlan) -> list[str]:
    names = {*_names(plan), IS_BOT}
    return [column.name for column in EVENTS.columns if column.name in names]


def _counted_ids(plan: QueryPlan) -> list[str]:
    names = {one.column.name for one in plan.selects if one.column and _counts_ids(one)}
    return [name for name in ID_KEYS if name in names]
