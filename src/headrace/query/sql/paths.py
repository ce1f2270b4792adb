"""The events of each id in order, with the steps that each of them matches, as SQL."""

from collections.abc import Sequence

from headrace.formats.id_keys import ID_KEYS, NO_KEY
from headrace.model.catalog import EVENTS, Column
from headrace.model.plan import PlannedCondition, single_filters
from headrace.query.sql.bots import IS_BOT, NOT_A_BOT
from headrace.query.sql.builder import clause, group, statement
from headrace.query.sql.conditions import write_condition
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.sources.visible_rows import VisibleRows
from headrace.query.sql.time_buckets import (
    RangeParameters,
    range_conditions,
    wall_clock_exprs,
)

EPOCH_MS = "toUnixTimestamp64Milli(time)"


def step_condition(
    filters: Sequence[PlannedCondition], expressions: Expressions, *more: str
) -> str:
    """Return the condition for an event to match all filters of a step, and `more` conditions.

    A step that filters on `is_bot` sees bots, and it alone.
    """
    sees_bots = any(planned.column.name == IS_BOT for planned in single_filters(filters))
    conditions = [write_condition(planned, expressions) for planned in filters]
    return group(" AND", [*conditions, *(() if sees_bots else (NOT_A_BOT,)), *more] or ["true"])


def step_bits(conditions: Sequence[str]) -> str:
    """Return the SQL of a number whose bit k is set if an event meets condition k."""
    terms = [f"{condition} * {1 << step}" for step, condition in enumerate(conditions)]
    return f"toUInt16({' + '.join(terms)})"


def select_paths(
    *,
    by: Column,
    visible: VisibleRows,
    range_parameters: RangeParameters,
    expressions: Expressions,
    bits: str,
    values: Sequence[str],
) -> str:
    """Return a SELECT of one row for each id with an event of the first step.

    Its column `hits` is an array of tuples, by time, then by arrival: epoch milliseconds, id, bits,
    and the further `values` of each event that matches a step.
    """
    group_key = ID_KEYS.get(by.name, by.name)
    missing = NO_KEY if by.name in ID_KEYS else "''"
    hit = ", ".join((EPOCH_MS, "id", "bits", *values))
    return statement(
        clause(
            "WITH",
            ",",
            [
                *wall_clock_exprs("time", range_parameters),
                *expressions.properties.definitions,
                f"{bits} AS bits",
            ],
        ),
        clause("SELECT", ",", [f"arraySort(groupArray(({hit}))) AS hits"]),
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [
                *visible.stored_rows(),
                *range_conditions("time", range_parameters),
                f"{group_key} != {missing}",
                "bits != 0",
            ],
        ),
        f"GROUP BY {group_key}",
        "HAVING max(bitTest(bits, 0)) = 1",
    )
