"""Where the rows of each table come from: a stored table, or visits gathered by their owner."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from headrace.formats.rollup_columns import EMPTY_ID_HASH, hash128
from headrace.model.catalog import EVENTS, PROFILES
from headrace.model.plan import DateRange, QueryPlan
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.derived_tables import profile_aggregate, session_aggregate
from headrace.query.sql.rollup_source import RollupTable
from headrace.query.sql.time_buckets import (
    RangeParameters,
    bind_utc_days,
    range_conditions,
    wall_clock_exprs,
)
from headrace.query.validate.day_range import rollup_days_suffice

_IS_BOT = "is_bot"
_NOT_A_BOT = f"NOT {_IS_BOT}"


class Grouping(NamedTuple):
    """Who visits are gathered by: the columns of visits that name it, and what is made of them."""

    column: str
    key: str
    aggregate: Callable[[str], str]


_SESSION = Grouping("session_id", "visit.session_key", session_aggregate)
_PROFILE = Grouping("anonymous_id", "visit.person_key", profile_aggregate)


class Source(Struct, frozen=True):
    """Rows in SQL: what WITH defines, what FROM names, and what WHERE demands."""

    definitions: list[str]
    table: str
    conditions: list[str]


def build_source(
    plan: QueryPlan,
    website: str,
    range_parameters: RangeParameters,
    parameters: Parameters,
    *,
    is_distributed: bool,
) -> Source:
    """Return the source of a plan's rows; `website` is the place of the bound website.

    Machines tell each other what they look up where the store `is_distributed`. Alone, the engine
    would only copy it.
    """
    if plan.table.is_derived:
        in_operator = "GLOBAL IN" if is_distributed else "IN"
        rollup = RollupTable(
            _non_bot_conditions(website), use_view=is_distributed or _needs_events(plan)
        )
        return _derived_source(
            plan, website, range_parameters, parameters, rollup, in_operator=in_operator
        )
    time = plan.table.time_column
    conditions = [_website_condition(website), *range_conditions(time, range_parameters)]
    if all(planned.column.name != _IS_BOT for planned in plan.filters):
        conditions.append(_NOT_A_BOT)
    return Source(wall_clock_exprs(time, range_parameters), plan.table.name, conditions)


def _derived_source(
    plan: QueryPlan,
    website: str,
    range_parameters: RangeParameters,
    parameters: Parameters,
    rollup: RollupTable,
    *,
    in_operator: str,
) -> Source:
    """Gather the whole lives of those who may belong to the range.

    Half of their keys, of the days that the range touches, finds their visits on all days. A half
    that two ids share brings visits too many, of sessions that do not start in the range or of
    people who are not seen in it: both are asked of what is gathered. So there is nothing to look
    up but one short list, and planning more than that is what most websites' questions would wait
    for.
    """
    days = bind_utc_days(plan.range, parameters)
    grouping = _PROFILE if plan.table.name == PROFILES.name else _SESSION
    half_key = f"toUInt64({grouping.key})"
    keys_in_range = rollup.select(
        [half_key],
        [f"visit.day BETWEEN {days.first} AND {days.last}", f"{grouping.key} != {EMPTY_ID_HASH}"],
    )
    key_conditions = [
        f"{grouping.key} != {EMPTY_ID_HASH}",
        f"{half_key} {in_operator} {subquery(keys_in_range)}",
    ]
    if grouping is _SESSION:
        time = plan.table.time_column
        sessions = _group_rollup(plan, grouping, rollup, key_conditions, "")
        return Source(
            wall_clock_exprs(time, range_parameters),
            subquery(sessions),
            range_conditions(time, range_parameters),
        )
    active = _active_in_range(plan.range, website, range_parameters, in_operator)
    return Source(
        [], subquery(_group_rollup(plan, grouping, rollup, key_conditions, f"HAVING {active}")), []
    )


def _group_rollup(
    plan: QueryPlan, grouping: Grouping, rollup: RollupTable, conditions: list[str], having: str
) -> str:
    aggregates = [f"{grouping.aggregate(name)} AS {name}" for name in _needed_columns(plan)]
    return rollup.select(
        aggregates or [grouping.key], conditions, f"GROUP BY {grouping.key}", having
    )


def _needs_events(plan: QueryPlan) -> bool:
    """Tell whether visits do not tell by themselves who is in the range: see `_active_in_range`."""
    return plan.table.name == PROFILES.name and not rollup_days_suffice(plan.range)


def _active_in_range(
    days: DateRange, website: str, range_parameters: RangeParameters, in_operator: str
) -> str:
    """Return what is true of a person with an event in the range, after GROUP BY.

    A visit of the UTC days that the range touches has one if it lasts into the range, because
    either the visit's day or the range has no end on that side. Where both have, or the range has
    gaps, the events are asked.
    """
    time = EVENTS.time_column
    if rollup_days_suffice(days):
        start, end = (
            f"toUnixTimestamp64Milli({end})"
            for end in (range_parameters.start, range_parameters.end)
        )
        return f"max(visit.last_ms >= {start} AND visit.first_ms < {end})"
    active = statement(
        clause("WITH", ",", wall_clock_exprs(time, range_parameters)),
        f"SELECT {hash128(_PROFILE.column)}",
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [*_non_bot_conditions(website), *range_conditions(time, range_parameters)],
        ),
    )
    return f"{_PROFILE.key} {in_operator} {subquery(active)}"


def _website_condition(website: str) -> str:
    return f"website_id = {website}"


def _non_bot_conditions(website: str) -> list[str]:
    return [_website_condition(website), _NOT_A_BOT]


def _needed_columns(plan: QueryPlan) -> list[str]:
    needed: set[str] = set()
    if plan.table.supports_granularity:
        needed.add(plan.table.time_column)
    needed.update(column.name for column in plan.group_by)
    needed.update(planned.column.name for planned in plan.filters)
    needed.update(select.column.name for select in plan.selects if select.column is not None)
    return [column.name for column in plan.table.columns if column.name in needed]
