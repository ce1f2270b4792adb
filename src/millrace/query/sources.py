"""Where the rows of each table come from: a stored table, or events gathered by their owner."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from millrace.model.catalog import EVENTS, PROFILES, SESSIONS
from millrace.model.plan import QueryPlan
from millrace.query.buckets import RangeParameters, is_in_range, wall_clock
from millrace.query.clauses import clause, statement, subquery
from millrace.query.profiles import profile_figure
from millrace.query.sessions import session_figure

_IS_BOT = "is_bot"
_NOT_A_BOT = f"NOT {_IS_BOT}"


class Source(Struct, frozen=True):
    """Rows in SQL: what WITH defines, what FROM names, and what WHERE demands."""

    definitions: list[str]
    table: str
    conditions: list[str]


class _Derivation(Struct, frozen=True):
    """By which id events are gathered, and the SQL of each column."""

    owner: str
    figure: Callable[[str], str]


_DERIVATIONS: Mapping[str, _Derivation] = {
    SESSIONS.name: _Derivation("session_id", session_figure),
    PROFILES.name: _Derivation("anonymous_id", profile_figure),
}


def source_of(plan: QueryPlan, website: str, places: RangeParameters) -> Source:
    """Return the source of a plan's rows; `website` is the place of the bound website."""
    if plan.table.is_derived:
        return _derived_source(plan, website, places)
    time = plan.table.time_column
    conditions = [f"website_id = {website}", *is_in_range(time, places)]
    if all(planned.column.name != _IS_BOT for planned in plan.filters):
        conditions.append(_NOT_A_BOT)
    return Source(wall_clock(time, places), plan.table.name, conditions)


def _derived_source(plan: QueryPlan, website: str, places: RangeParameters) -> Source:
    """Gather the whole lives of those who have an event in the range: only they can belong to it.

    A session belongs to where it started, which is asked of the gathered rows; a person to
    wherever there is an event.
    """
    rule, time = _DERIVATIONS[plan.table.name], plan.table.time_column
    owned = f"{rule.owner} != ''"
    visits = statement(
        "SELECT *",
        f"FROM {EVENTS.name}",
        clause("WHERE", " AND", [f"website_id = {website}", _NOT_A_BOT, owned]),
    )
    definitions, conditions = [f"visits AS {subquery(visits)}"], list[str]()
    if plan.table.has_buckets:
        definitions += wall_clock(time, places)
        conditions = is_in_range(time, places)
    return Source(definitions, subquery(_gather(plan, rule, places)), conditions)


def _gather(plan: QueryPlan, rule: _Derivation, places: RangeParameters) -> str:
    """GLOBAL, because events may be distributed over several machines."""
    time = EVENTS.time_column
    seen = statement(
        clause("WITH", ",", wall_clock(time, places)),
        f"SELECT {rule.owner}",
        "FROM visits",
        clause("WHERE", " AND", is_in_range(time, places)),
    )
    names = _needed_columns(plan, rule.owner)
    return statement(
        clause("SELECT", ",", [f"{rule.figure(name)} AS {name}" for name in names]),
        "FROM visits AS event",
        f"WHERE event.{rule.owner} GLOBAL IN {subquery(seen)}",
        f"GROUP BY event.{rule.owner}",
    )


def _needed_columns(plan: QueryPlan, owner: str) -> list[str]:
    asked = {owner, plan.table.time_column}
    asked.update(column.name for column in plan.group_by)
    asked.update(planned.column.name for planned in plan.filters)
    asked.update(select.column.name for select in plan.selects if select.column is not None)
    return [column.name for column in plan.table.columns if column.name in asked]
