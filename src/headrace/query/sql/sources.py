"""The rows of each table as SQL: a stored table, or daily rollups grouped by session or profile."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from headrace.formats.rollup_columns import EMPTY_ID_HASH, hash128
from headrace.model.catalog import EVENTS, PROFILES
from headrace.model.plan import DateRange, QueryPlan, single_filters
from headrace.query.sql.bots import NOT_A_BOT
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.derived_tables import profile_aggregate, session_aggregate
from headrace.query.sql.rollup_source import RollupExpression, RollupTable
from headrace.query.sql.time_buckets import (
    RangeParameters,
    bind_utc_days,
    range_conditions,
    wall_clock_exprs,
)
from headrace.query.sql.visible_rows import VisibleRows
from headrace.query.validate.day_range import rollup_days_suffice


class Grouping(NamedTuple):
    """What rollups are grouped by, and how the columns of a group are made.

    `id_column` is the column of `events` with the id. `key` is a template of its hash in the
    rollups; so is what `aggregate` returns for the name of a column.
    """

    id_column: str
    key: str
    aggregate: Callable[[str], str]


_SESSION = Grouping("session_id", "{session_key}", session_aggregate)
_PROFILE = Grouping("anonymous_id", "{person_key}", profile_aggregate)


class Source(Struct, frozen=True):
    """Rows in SQL: the definitions of WITH, the table of FROM, the conditions of WHERE."""

    definitions: list[str]
    table: str
    conditions: list[str]


def build_source(
    plan: QueryPlan,
    visible: VisibleRows,
    range_parameters: RangeParameters,
    parameters: Parameters,
    *,
    is_distributed: bool,
) -> Source:
    """Return the source of a plan's rows.

    In an `is_distributed` store lookups are GLOBAL: each machine gets the keys of all others.
    On a single machine GLOBAL would only copy them.
    """
    if plan.table.is_derived:
        in_operator = "GLOBAL IN" if is_distributed else "IN"
        rollup = RollupTable(
            [*visible.rollups(), RollupExpression(NOT_A_BOT)],
            use_view=is_distributed or _needs_events(plan),
        )
        return _derived_source(
            plan, visible, range_parameters, parameters, rollup, in_operator=in_operator
        )
    time = plan.table.time_column
    conditions = [*visible.stored_rows(time), *range_conditions(time, range_parameters)]
    return Source(wall_clock_exprs(time, range_parameters), plan.table.name, conditions)


def _derived_source(
    plan: QueryPlan,
    visible: VisibleRows,
    range_parameters: RangeParameters,
    parameters: Parameters,
    rollup: RollupTable,
    *,
    in_operator: str,
) -> Source:
    """Group the rollups of all days for every session or profile that may be in the range.

    A subquery reads half of each key from the rollups of the days that the range touches; the
    outer SELECT reads the rollups of these halves on all days. Half keys make the list short, and
    it is the only lookup, because planning more of them dominates the time of a query over a small
    website. Two ids with the same half, and ids that only touch the range's days, bring groups
    that are not in the range: conditions on the grouped rows remove them.
    """
    grouping = _PROFILE if plan.table.name == PROFILES.name else _SESSION
    key_conditions = _key_conditions(plan.range, grouping, rollup, parameters, in_operator)
    if grouping is _SESSION:
        time = plan.table.time_column
        sessions = _group_rollup(plan, grouping, rollup, key_conditions)
        return Source(
            wall_clock_exprs(time, range_parameters),
            subquery(sessions),
            range_conditions(time, range_parameters),
        )
    active = _active_in_range(plan.range, visible, range_parameters, in_operator)
    having = RollupExpression(f"HAVING {active.template}", active.arguments)
    return Source([], subquery(_group_rollup(plan, grouping, rollup, key_conditions, having)), [])


def _key_conditions(
    days: DateRange,
    grouping: Grouping,
    rollup: RollupTable,
    parameters: Parameters,
    in_operator: str,
) -> list[RollupExpression]:
    """Return the conditions for rollups of keys that have a rollup on a day of the range."""
    bound_days = bind_utc_days(days, parameters)
    half_key = f"toUInt64({grouping.key})"
    has_id = RollupExpression(f"{grouping.key} != {EMPTY_ID_HASH}")
    on_days = RollupExpression(
        "{day} BETWEEN {first} AND {last}", {"first": bound_days.first, "last": bound_days.last}
    )
    keys_in_range = rollup.select([RollupExpression(half_key)], [on_days, has_id])
    in_range = RollupExpression(
        f"{half_key} {in_operator} {{keys}}", {"keys": subquery(keys_in_range)}
    )
    return [has_id, in_range]


def _group_rollup(
    plan: QueryPlan,
    grouping: Grouping,
    rollup: RollupTable,
    conditions: list[RollupExpression],
    *having: RollupExpression,
) -> str:
    aggregates = [
        RollupExpression(f"{grouping.aggregate(name)} AS {name}") for name in _needed_columns(plan)
    ]
    return rollup.select(
        aggregates or [RollupExpression(grouping.key)],
        conditions,
        RollupExpression(f"GROUP BY {grouping.key}"),
        *having,
    )


def _needs_events(plan: QueryPlan) -> bool:
    """Return whether rollups alone cannot decide who is in the range: see `_active_in_range`."""
    return plan.table.name == PROFILES.name and not rollup_days_suffice(plan.range)


def _active_in_range(
    days: DateRange, visible: VisibleRows, range_parameters: RangeParameters, in_operator: str
) -> RollupExpression:
    """Return the condition, after GROUP BY, for a profile to have an event in the range.

    A rollup of a UTC day that the range touches has such an event if its first and last event
    reach into the range, provided that the range continues beyond the day on one side. A range
    that starts and ends within one day, or that has gaps, is looked up in the events.
    """
    time = EVENTS.time_column
    if rollup_days_suffice(days):
        start, end = (
            f"toUnixTimestamp64Milli({end})"
            for end in (range_parameters.start, range_parameters.end)
        )
        return RollupExpression(
            "max({last_ms} >= {start} AND {first_ms} < {end})", {"start": start, "end": end}
        )
    active = statement(
        clause("WITH", ",", wall_clock_exprs(time, range_parameters)),
        f"SELECT {hash128(_PROFILE.id_column)}",
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [*visible.stored_rows(time), NOT_A_BOT, *range_conditions(time, range_parameters)],
        ),
    )
    return RollupExpression(
        f"{_PROFILE.key} {in_operator} {{active}}", {"active": subquery(active)}
    )


def _needed_columns(plan: QueryPlan) -> list[str]:
    needed: set[str] = set()
    if plan.table.supports_granularity:
        needed.add(plan.table.time_column)
    needed.update(column.name for column in plan.group_by)
    filters = [*plan.filters, *(own for select in plan.selects for own in select.filters)]
    needed.update(planned.column.name for planned in single_filters(filters))
    needed.update(select.column.name for select in plan.selects if select.column is not None)
    return [column.name for column in plan.table.columns if column.name in needed]
