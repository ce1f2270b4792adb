"""Where the rows of each table come from: a stored table, or visits gathered by their owner."""

from msgspec import Struct

from millrace.model.catalog import EVENTS, PROFILES
from millrace.model.plan import QueryPlan
from millrace.model.visits import NO_SESSION_MARK, VISITS
from millrace.query.buckets import (
    DayParameters,
    RangeParameters,
    WholeDayParameters,
    bind_touched_days,
    bind_whole_days,
    is_in_range,
    wall_clock,
)
from millrace.query.clauses import clause, statement, subquery
from millrace.query.parameters import Parameters
from millrace.query.profiles import profile_figure
from millrace.query.sessions import session_figure

_IS_BOT = "is_bot"
_NOT_A_BOT = f"NOT {_IS_BOT}"


class Source(Struct, frozen=True):
    """Rows in SQL: what WITH defines, what FROM names, and what WHERE demands."""

    definitions: list[str]
    table: str
    conditions: list[str]


def source_of(
    plan: QueryPlan, website: str, places: RangeParameters, parameters: Parameters
) -> Source:
    """Return the source of a plan's rows; `website` is the place of the bound website."""
    if plan.table.is_derived:
        return _derived_source(plan, website, places, parameters)
    time = plan.table.time_column
    conditions = [_of_website(website), *is_in_range(time, places)]
    if all(planned.column.name != _IS_BOT for planned in plan.filters):
        conditions.append(_NOT_A_BOT)
    return Source(wall_clock(time, places), plan.table.name, conditions)


def _derived_source(
    plan: QueryPlan, website: str, places: RangeParameters, parameters: Parameters
) -> Source:
    """Gather the whole lives of those who may belong to the range.

    A session belongs to where it started, which is asked of the gathered rows; a person to
    wherever there is an event.
    """
    visits = statement(
        "SELECT *",
        f"FROM {VISITS}",
        clause("WHERE", " AND", [_of_website(website), _NOT_A_BOT]),
    )
    known = [f"known AS {subquery(visits)}"]
    time = plan.table.time_column
    if plan.table.name == PROFILES.name:
        whole = bind_whole_days(plan.range, parameters)
        people = _gather(plan, "anonymous_id", _is_seen(website, places, whole))
        return Source(known, subquery(people), [])
    sessions = _gather(plan, "session_id", _may_start(bind_touched_days(plan.range, parameters)))
    definitions = known + wall_clock(time, places)
    return Source(definitions, subquery(sessions), is_in_range(time, places))


def _gather(plan: QueryPlan, owner: str, condition: str) -> str:
    figure = profile_figure if plan.table.name == PROFILES.name else session_figure
    names = _needed_columns(plan, owner)
    return statement(
        clause("SELECT", ",", [f"{figure(name)} AS {name}" for name in names]),
        "FROM known AS visit",
        clause("WHERE", " AND", [f"visit.{owner} != ''", condition]),
        f"GROUP BY visit.{owner}",
    )


def _may_start(days: DayParameters) -> str:
    """Return what picks the visits of the range's days, and the other visits of their sessions.

    Those are few. Short marks of the ids find them without reading more: a mark that two sessions
    share brings visits too many, of sessions that do not start in the range. GLOBAL, because
    visits may be distributed over several machines.
    """
    inside = f"day BETWEEN {days.first} AND {days.last}"
    marks = statement(
        "SELECT session_mark",
        "FROM known",
        clause("WHERE", " AND", [inside, f"session_mark != {NO_SESSION_MARK}"]),
    )
    beyond = statement(
        "SELECT day, session_mark",
        "FROM known",
        clause("WHERE", " AND", [f"NOT {inside}", f"session_mark GLOBAL IN {subquery(marks)}"]),
    )
    return f"(visit.{inside} OR (visit.day, visit.session_mark) GLOBAL IN {subquery(beyond)})"


def _is_seen(website: str, places: RangeParameters, whole: WholeDayParameters) -> str:
    """Return what picks the people of the range: of its whole days by visits, else by events."""
    time = EVENTS.time_column
    on_whole_days = statement(
        "SELECT anonymous_id",
        "FROM known",
        f"WHERE day BETWEEN {whole.first} AND {whole.last}",
    )
    at_the_ends = statement(
        clause("WITH", ",", wall_clock(time, places)),
        "SELECT anonymous_id",
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [
                _of_website(website),
                _NOT_A_BOT,
                *is_in_range(time, places),
                f"({time} < {whole.start} OR {time} >= {whole.end})",
            ],
        ),
    )
    return (
        f"(visit.anonymous_id GLOBAL IN {subquery(on_whole_days)}"
        f" OR visit.anonymous_id GLOBAL IN {subquery(at_the_ends)})"
    )


def _of_website(website: str) -> str:
    return f"website_id = {website}"


def _needed_columns(plan: QueryPlan, owner: str) -> list[str]:
    asked = {owner}
    if plan.table.has_buckets:
        asked.add(plan.table.time_column)
    asked.update(column.name for column in plan.group_by)
    asked.update(planned.column.name for planned in plan.filters)
    asked.update(select.column.name for select in plan.selects if select.column is not None)
    return [column.name for column in plan.table.columns if column.name in asked]
