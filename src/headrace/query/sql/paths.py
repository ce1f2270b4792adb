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

EPOCH_MS = "toUInt64(toUnixTimestamp64Milli(time))"
"""Unsigned: rows date from 2000 to 2299."""


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


GATHERED_IDS = "groupArray(reinterpretAsUInt128(id)) AS ids"
"""Ids of rows as numbers, which are gathered in half the time of texts."""


def arrival_of(number: str) -> str:
    """Return the SQL of a gathered id as it was: the order of numbers is not that of arrival."""
    return f"reinterpretAsFixedString({number})"


def hits_in_order(bits: int) -> str:
    """Return the SQL of an id's events by time, then by arrival, from those `by_time`.

    `bits` are those of a hit below its milliseconds. The `ids` of the `gathered` hits order by
    arrival; they are looked at only where events of one millisecond match different steps.
    """
    return f"""if(
    arrayExists(
        (hit, before) -> hit != before AND bitXor(hit, before) < {1 << bits},
        by_time,
        arrayShiftRight(by_time, 1, toUInt64(0))
    ),
    arraySort((hit, id) -> (bitShiftRight(hit, {bits}), {arrival_of("id")}), gathered, ids),
    by_time
) AS hits"""


def select_paths(
    *,
    by: Column,
    visible: VisibleRows,
    range_parameters: RangeParameters,
    expressions: Expressions,
    bits: str,
    hit: str,
    columns: Sequence[str],
) -> str:
    """Return a SELECT of `columns`, with a row for each id with an event of the first step.

    They aggregate the id's events that match a step. In them `hit` is an event as a number of 64
    bits: milliseconds, then what is needed of it, at the end its `bits`. Arrays of numbers take
    half the time of arrays of tuples, and their order is that of time.
    """
    group_key = ID_KEYS.get(by.name, by.name)
    missing = NO_KEY if by.name in ID_KEYS else "''"
    return statement(
        clause(
            "WITH",
            ",",
            [
                *wall_clock_exprs("time", range_parameters),
                *expressions.properties.definitions,
                f"{bits} AS bits",
                f"{hit} AS hit",
            ],
        ),
        clause("SELECT", ",", columns),
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
        "HAVING bitTest(groupBitOr(bits), 0)",
    )
