"""Where the rows of each table come from: a stored table, or visits gathered by their owner."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from headrace.formats.rollup_columns import NO_KEY, key_of
from headrace.model.catalog import EVENTS, PROFILES
from headrace.model.plan import DateRange, QueryPlan
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.derived_tables import profile_figure, session_figure
from headrace.query.sql.rollup_source import Visits
from headrace.query.sql.time_buckets import (
    RangeParameters,
    bind_touched_days,
    is_in_range,
    wall_clock,
)
from headrace.query.validate.day_range import is_told_by_days

_IS_BOT = "is_bot"
_NOT_A_BOT = f"NOT {_IS_BOT}"


class Owner(NamedTuple):
    """Who visits are gathered by: the columns of visits that name it, and what is made of them."""

    column: str
    key: str
    figure: Callable[[str], str]


_SESSION = Owner("session_id", "visit.session_key", session_figure)
_PERSON = Owner("anonymous_id", "visit.person_key", profile_figure)


class Source(Struct, frozen=True):
    """Rows in SQL: what WITH defines, what FROM names, and what WHERE demands."""

    definitions: list[str]
    table: str
    conditions: list[str]


def source_of(
    plan: QueryPlan,
    website: str,
    places: RangeParameters,
    parameters: Parameters,
    *,
    is_distributed: bool,
) -> Source:
    """Return the source of a plan's rows; `website` is the place of the bound website.

    Machines tell each other what they look up where the store `is_distributed`. Alone, the engine
    would only copy it.
    """
    if plan.table.is_derived:
        among = "GLOBAL IN" if is_distributed else "IN"
        visits = Visits(_of_people(website), in_view=is_distributed or _asks_events(plan))
        return _derived_source(plan, website, places, parameters, visits, among=among)
    time = plan.table.time_column
    conditions = [_of_website(website), *is_in_range(time, places)]
    if all(planned.column.name != _IS_BOT for planned in plan.filters):
        conditions.append(_NOT_A_BOT)
    return Source(wall_clock(time, places), plan.table.name, conditions)


def _derived_source(
    plan: QueryPlan,
    website: str,
    places: RangeParameters,
    parameters: Parameters,
    visits: Visits,
    *,
    among: str,
) -> Source:
    """Gather the whole lives of those who may belong to the range.

    Half of their keys, of the days that the range touches, finds their visits on all days. A half
    that two ids share brings visits too many, of sessions that do not start in the range or of
    people who are not seen in it: both are asked of what is gathered. So there is nothing to look
    up but one short list, and planning more than that is what most websites' questions would wait
    for.
    """
    days = bind_touched_days(plan.range, parameters)
    owner = _PERSON if plan.table.name == PROFILES.name else _SESSION
    half = f"toUInt64({owner.key})"
    there = visits.select(
        [half], [f"visit.day BETWEEN {days.first} AND {days.last}", f"{owner.key} != {NO_KEY}"]
    )
    known = [f"{owner.key} != {NO_KEY}", f"{half} {among} {subquery(there)}"]
    if owner is _SESSION:
        time = plan.table.time_column
        sessions = _gather(plan, owner, visits, known, "")
        return Source(wall_clock(time, places), subquery(sessions), is_in_range(time, places))
    seen = _is_seen(plan.range, website, places, among)
    return Source([], subquery(_gather(plan, owner, visits, known, f"HAVING {seen}")), [])


def _gather(
    plan: QueryPlan, owner: Owner, visits: Visits, conditions: list[str], having: str
) -> str:
    figures = [f"{owner.figure(name)} AS {name}" for name in _needed_columns(plan)]
    return visits.select(figures or [owner.key], conditions, f"GROUP BY {owner.key}", having)


def _asks_events(plan: QueryPlan) -> bool:
    """Tell whether visits do not tell by themselves who belongs to the range: see `_is_seen`."""
    return plan.table.name == PROFILES.name and not is_told_by_days(plan.range)


def _is_seen(days: DateRange, website: str, places: RangeParameters, among: str) -> str:
    """Return what is true of a person with an event in the range, after GROUP BY.

    A visit of the UTC days that the range touches has one if it lasts into the range, because
    either the visit's day or the range has no end on that side. Where both have, or the range has
    gaps, the events are asked.
    """
    time = EVENTS.time_column
    if is_told_by_days(days):
        start, end = (f"toUnixTimestamp64Milli({end})" for end in (places.start, places.end))
        return f"max(visit.last_ms >= {start} AND visit.first_ms < {end})"
    seen = statement(
        clause("WITH", ",", wall_clock(time, places)),
        f"SELECT {key_of(_PERSON.column)}",
        f"FROM {EVENTS.name}",
        clause("WHERE", " AND", [*_of_people(website), *is_in_range(time, places)]),
    )
    return f"{_PERSON.key} {among} {subquery(seen)}"


def _of_website(website: str) -> str:
    return f"website_id = {website}"


def _of_people(website: str) -> list[str]:
    return [_of_website(website), _NOT_A_BOT]


def _needed_columns(plan: QueryPlan) -> list[str]:
    asked: set[str] = set()
    if plan.table.has_buckets:
        asked.add(plan.table.time_column)
    asked.update(column.name for column in plan.group_by)
    asked.update(planned.column.name for planned in plan.filters)
    asked.update(select.column.name for select in plan.selects if select.column is not None)
    return [column.name for column in plan.table.columns if column.name in asked]
