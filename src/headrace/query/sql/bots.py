"""The rule on bots: a query sees them only where its filters name `is_bot`.

A filter of a select lifts the rule for that select alone. Then the rows of the query are those of
visitors and those that such a select takes.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from headrace.model.plan import PlannedCondition, QueryPlan, single_filters
from headrace.query.sql.builder import group

IS_BOT = "is_bot"
NOT_A_BOT = f"NOT {IS_BOT}"


class BotRule(Struct, frozen=True):
    """The conditions by which the rule holds for all rows, and for the rows of each select."""

    rows: tuple[str, ...]
    selects: tuple[tuple[str, ...], ...]


def write_bot_rule(plan: QueryPlan, select_conditions: Sequence[Sequence[str]]) -> BotRule:
    """Return the rule for a plan; `select_conditions` is the SQL of the filters of each select."""
    nothing = BotRule((), tuple(() for _ in plan.selects))
    if plan.table.column(IS_BOT) is None or _names_bots(plan.filters):
        return nothing
    lifting = [_names_bots(select.filters) for select in plan.selects]
    if not any(lifting):
        return BotRule((NOT_A_BOT,), nothing.selects)
    seen = [
        " AND ".join(conditions)
        for conditions, lifts in zip(select_conditions, lifting, strict=True)
        if lifts
    ]
    return BotRule(
        (group(" OR", [NOT_A_BOT, *seen]),),
        tuple(() if lifts else (NOT_A_BOT,) for lifts in lifting),
    )


def _names_bots(conditions: Iterable[PlannedCondition]) -> bool:
    return any(planned.column.name == IS_BOT for planned in single_filters(conditions))
