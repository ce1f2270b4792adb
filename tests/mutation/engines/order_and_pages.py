"""The order of rows and the page of them, done wrong: ties, null, limit, offset, filled rows."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_ORDER: Final = f"{QUERY}/sql/order_by.py"
_COMPILE: Final = f"{QUERY}/sql/compile.py"
_RESULT: Final = f"{QUERY}/plan_result.py"
_FILL: Final = f"{QUERY}/gap_fill.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    WrongEngine(
        "custom",
        "null comes first in descending order",
        _ORDER,
        'terms.append(f"{column} {direction} NULLS LAST")',
        "place = 'FIRST' if direction == 'DESC' else 'LAST'\n"
        '            terms.append(f"{column} {direction} NULLS {place}")',
    ),
    WrongEngine(
        "custom",
        "null comes first in the descending order of filled rows",
        _ORDER,
        "    rows[:] = present + missing\n",
        "    rows[:] = missing + present if key.direction is Direction.DESC"
        " else present + missing\n",
    ),
    WrongEngine(
        "custom",
        "ties of the order that is asked for are in any order",
        _ORDER,
        "in [*requested, *defaults]:",
        "in requested or defaults:",
    ),
    WrongEngine(
        "custom",
        "the default order is that of the groups",
        _ORDER,
        "    if plan.group_by:\n        defaults.insert(",
        "    if not plan.group_by:\n        defaults.insert(",
    ),
    WrongEngine(
        "custom",
        "the first key of filled rows breaks the ties of the last",
        _ORDER,
        "for key in reversed(keys):",
        "for key in keys:",
    ),
    WrongEngine(
        "custom",
        "the offset applies before filling and again after it",
        _COMPILE,
        "offset = 0 if plan.fill or is_row_of_totals(plan) else plan.offset",
        "offset = 0 if is_row_of_totals(plan) else plan.offset",
    ),
    WrongEngine(
        "custom",
        "the limit applies before filling",
        _COMPILE,
        "rows = _max_filled_rows(plan) if plan.fill else plan.limit",
        "rows = plan.limit",
    ),
    WrongEngine(
        "custom",
        "a page that is full is truncated",
        _RESULT,
        "return rows[: plan.limit], len(rows) > plan.limit",
        "return rows[: plan.limit], len(rows) >= plan.limit",
    ),
    WrongEngine(
        "custom",
        "the last page of filled rows is truncated",
        _RESULT,
        "len(filled) > end",
        "len(filled) > plan.limit",
    ),
    WrongEngine(
        "custom",
        "a row of totals ignores the offset",
        _RESULT,
        "return kept[plan.offset :], False",
        "return kept, False",
    ),
    WrongEngine(
        "custom",
        "an empty bucket has the mean 0",
        _FILL,
        "{Aggregate.COUNT, Aggregate.UNIQ, Aggregate.SUM}",
        "{Aggregate.COUNT, Aggregate.UNIQ, Aggregate.SUM, Aggregate.AVG}",
    ),
)
