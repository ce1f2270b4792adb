"""The conditions of having for a row that the store returns whatever they are."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.model.catalog import Operator
from headrace.model.plan import QueryPlan

_COMPARISONS: Mapping[Operator, Callable[[float, float], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.GT: operator.gt,
    Operator.LT: operator.lt,
    Operator.GTE: operator.ge,
    Operator.LTE: operator.le,
}


def matches_having(plan: QueryPlan, selects: Sequence[Any]) -> bool:
    """Return whether the values of all selects match; null matches only `ne`."""
    return all(
        planned.operator is Operator.NE
        if selects[planned.index] is None
        else _COMPARISONS[planned.operator](selects[planned.index], planned.value)
        for planned in plan.having
    )
