"""Where the rows of each table come from: a stored table, or visits gathered by their owner."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from millrace.model.catalog import EVENTS, PROFILES
from millrace.model.plan import DateRange, QueryPlan
from millrace.model.visits import NO_MARK, VISITS
from millrace.query.buckets import RangeParameters, bind_touched_days, is_in_range, wall_clock
from millrace.query.clauses import clause, statement, subquery
from millrace.query.parameters import Parameters
from millrace.query.profiles import profile_figure
from millrace.query.ranges import is_told_by_days
from millrace.query.sessions import session_figure

_IS_BOT = "is_bot"
_NOT_A_BOT = f"NOT {_IS_BOT}"


class Owner(NamedTuple):
    """Who visits are gathered by: the columns of visits that name it, and what is made of them."""

    column: str
    mark: str
    key: str
    figure: Callable[[str], str]


_SESSION = Owner("session_id", "session_mark", "session_key", session_figure)
_PERSON = Owner("anonymous_id", "person_mark", "person_key", profile_figure)


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
        return _derived_source(plan, website, places, parameters, among)
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
    among: str,
) -> Source:
    """Gather the whole lives of those who may belong to the range.

    Their ids' marks of the days that the range touches find their visits on all days. A mark that
    two ids share brings visits too many, of sessions that do not start in the range or of people
    who are not seen in it: both are asked of what is gathered. So there is nothing to look up but
    one short list, and planning more than that is what most websites' questions would wait for.
    """
    days = bind_touched_days(plan.range, parameters)
    owner = _PERSON if plan.table.name == PROFILES.name else _SESSION
    marks = statement(
        f"SELECT {owner.mark}",
        f"FROM {VISITS}",
        clause(
            "WHERE", " AND", [*_of_people(website), f"day BETWEEN {days.first} AND {days.last}"]
        ),
    )
    known = [
        *_of_people(website),
        f"visit.{owner.mark} != {NO_MARK}",
        f"visit.{owner.mark} {among} {subquery(marks)}",
    ]
    if owner is _SESSION:
        time = plan.table.time_column
        sessions = _gather(plan, owner, known, "")
        return Source(wall_clock(time, places), subquery(sessions), is_in_range(time, places))
    seen = _is_seen(plan.range, website, places, among)
    return Source([], subquery(_gather(plan, owner, known, f"HAVING {seen}")), [])


def _gather(plan: QueryPlan, owner: Owner, conditions: list[str], having: str) -> str:
    names = _needed_columns(plan)
    figures = [f"{owner.figure(name)} AS {name}" for name in names]
    return statement(
        clause("SELECT", ",", figures or [f"visit.{owner.key}"]),
        f"FROM {VISITS} AS visit",
        clause("WHERE", " AND", conditions),
        f"GROUP BY visit.{owner.key}",
        having,
    )


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
        f"SELECT reinterpretAsUInt128(sipHash128({_PERSON.column}))",
        f"FROM {EVENTS.name}",
        clause("WHERE", " AND", [*_of_people(website), *is_in_range(time, places)]),
    )
    return f"visit.{_PERSON.key} {among} {subquery(seen)}"


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
