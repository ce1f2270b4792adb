"""The rows of each table as SQL: a stored table, or daily rollups grouped by session or profile."""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from headrace.formats.id_keys import EMPTY_ID_HASH, ID_KEYS
from headrace.model.catalog import EVENTS, PROFILES
from headrace.model.plan import DateRange, QueryPlan
from headrace.query.sql.bots import NOT_A_BOT
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.expressions import PLAIN_ROWS, RowForm
from headrace.query.sql.sources.daily_rows import reads_daily_rows, write_daily_rows
from headrace.query.sql.sources.derived_tables import (
    PROFILE,
    SESSION,
    Grouping,
    counted_ids,
    needed_columns,
)
from headrace.query.sql.sources.rollup import RollupExpression, RollupTable
from headrace.query.sql.sources.visible_rows import VisibleRows
from headrace.query.sql.time_buckets import (
    RangeParameters,
    bind_utc_days,
    range_conditions,
    wall_clock_exprs,
)
from headrace.query.validate.day_range import rollup_days_suffice

Ranges: TypeAlias = tuple[RangeParameters, RangeParameters | None]
"""The range of a query, and the one that it is compared with."""

_IN_RANGE, _IN_COMPARED = "in_range", "in_compared"

_KEYED_ROWS = RowForm(ID_KEYS)
"""Rows with the keys of ids. Sessions and profiles have those of the ids that a plan counts."""


class Source(Struct, frozen=True):
    """Rows in SQL: the definitions of WITH, the table of FROM, the conditions of WHERE.

    Where two ranges are compared, `current` and `compared` are the conditions for a row to count in
    each of them.
    """

    definitions: list[str]
    table: str
    conditions: list[str]
    current: str = ""
    compared: str = ""
    rows: RowForm = PLAIN_ROWS


def build_source(
    plan: QueryPlan,
    visible: VisibleRows,
    ranges: Ranges,
    parameters: Parameters,
    *,
    is_distributed: bool,
) -> Source:
    """Return the source of a plan's rows, in one range or two.

    In an `is_distributed` store lookups are GLOBAL: each machine gets the keys of all others.
    On a single machine GLOBAL would only copy them.
    """
    if plan.table.is_derived:
        in_operator = "GLOBAL IN" if is_distributed else "IN"
        rollup = RollupTable(
            [*visible.rollups(), RollupExpression(NOT_A_BOT)],
            use_view=is_distributed or _needs_events(plan),
        )
        source = _derived_source(plan, visible, ranges, parameters, rollup, in_operator=in_operator)
        return replace(source, rows=_KEYED_ROWS)
    if reads_daily_rows(plan, is_distributed=is_distributed):
        days = write_daily_rows(plan, visible, parameters)
        return replace(
            _timed_source(plan, subquery(days), [], ranges),
            rows=RowForm(ID_KEYS, is_aggregated=True),
        )
    conditions = visible.stored_rows(plan.table.time_column)
    source = _timed_source(plan, plan.table.name, conditions, ranges)
    return replace(source, rows=_KEYED_ROWS) if plan.table.name == EVENTS.name else source


def _timed_source(plan: QueryPlan, table: str, conditions: list[str], ranges: Ranges) -> Source:
    """Return the rows of a table whose time is in a range.

    A row that is in both ranges counts in two buckets, so it is doubled; without buckets, and where
    no row can be in both, the conditions alone tell.
    """
    time, (current, compared) = plan.table.time_column, ranges
    definitions = wall_clock_exprs(time, current)
    in_range = range_conditions(time, current)
    if compared is None or plan.compare is None:
        return Source(definitions, table, [*conditions, *in_range])
    definitions += [
        f"({' AND '.join(in_range)}) AS {_IN_RANGE}",
        f"({' AND '.join(range_conditions(time, compared))}) AS {_IN_COMPARED}",
    ]
    conditions = [*conditions, f"({_IN_RANGE} OR {_IN_COMPARED})"]
    if plan.granularity is None or not _overlap(plan.range, plan.compare):
        return Source(definitions, table, conditions, _IN_RANGE, _IN_COMPARED)
    periods = f"if({_IN_RANGE}, if({_IN_COMPARED}, [0, 1], [0]), [1])"
    joined = f"{table}\nARRAY JOIN {periods} AS period"
    return Source(definitions, joined, conditions, "period = 0", "period = 1")


def _overlap(first: DateRange, second: DateRange) -> bool:
    return first.first_day <= second.last_day and second.first_day <= first.last_day


def _derived_source(
    plan: QueryPlan,
    visible: VisibleRows,
    ranges: Ranges,
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
    grouping = PROFILE if plan.table.name == PROFILES.name else SESSION
    key_conditions = _key_conditions(plan, grouping, rollup, parameters, in_operator)
    if grouping is SESSION:
        sessions = _group_rollup(plan, grouping, rollup, key_conditions)
        return _timed_source(plan, subquery(sessions), [], ranges)
    current, compared = ranges
    active = _active_in_range(plan.range, visible, current, in_operator)
    if compared is None or plan.compare is None:
        having = RollupExpression(f"HAVING {active.template}", active.arguments)
        profiles = _group_rollup(plan, grouping, rollup, key_conditions, having)
        return Source([], subquery(profiles), [])
    before = _active_in_range(plan.compare, visible, compared, in_operator)
    profiles = _group_rollup(
        plan,
        grouping,
        rollup,
        key_conditions,
        RollupExpression(f"HAVING {_IN_RANGE} OR {_IN_COMPARED}"),
        columns=[
            RollupExpression(f"{active.template} AS {_IN_RANGE}", active.arguments),
            RollupExpression(f"{before.template} AS {_IN_COMPARED}", before.arguments),
        ],
    )
    return Source([], subquery(profiles), [], _IN_RANGE, _IN_COMPARED)


def _key_conditions(
    plan: QueryPlan,
    grouping: Grouping,
    rollup: RollupTable,
    parameters: Parameters,
    in_operator: str,
) -> list[RollupExpression]:
    """Return the conditions for rollups of keys that have a rollup on a day of a range."""
    half_key = f"toUInt64({grouping.key})"
    has_id = RollupExpression(f"{grouping.key} != {EMPTY_ID_HASH}")
    templates, arguments = list[str](), dict[str, str]()
    for number, days in enumerate(plan.ranges):
        bound_days = bind_utc_days(days, parameters)
        templates.append(f"{{day}} BETWEEN {{first{number}}} AND {{last{number}}}")
        arguments |= {f"first{number}": bound_days.first, f"last{number}": bound_days.last}
    joined = " OR ".join(templates)
    on_days = RollupExpression(f"({joined})" if len(templates) > 1 else joined, arguments)
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
    columns: Sequence[RollupExpression] = (),
) -> str:
    counted = counted_ids(plan, grouping)
    aggregates = [
        *(
            RollupExpression(f"{grouping.aggregate(name)} AS {name}")
            for name in needed_columns(plan, counted)
        ),
        *(RollupExpression(f"{grouping.id_keys[name]} AS {ID_KEYS[name]}") for name in counted),
        *columns,
    ]
    return rollup.select(
        aggregates or [RollupExpression(grouping.key)],
        conditions,
        RollupExpression(f"GROUP BY {grouping.key}"),
        *having,
    )


def _needs_events(plan: QueryPlan) -> bool:
    """Return whether rollups alone cannot decide who is in the range: see `_active_in_range`."""
    return plan.table.name == PROFILES.name and not all(map(rollup_days_suffice, plan.ranges))


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
        f"SELECT {ID_KEYS[PROFILE.id_column]}",
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [*visible.stored_rows(time), NOT_A_BOT, *range_conditions(time, range_parameters)],
        ),
    )
    return RollupExpression(f"{PROFILE.key} {in_operator} {{active}}", {"active": subquery(active)})
