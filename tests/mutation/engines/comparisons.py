"""Top groups, others, compared ranges and totals, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_COMPILE: Final = f"{QUERY}/sql/compile.py"
_TOP: Final = f"{QUERY}/sql/top_groups.py"
_RESULT: Final = f"{QUERY}/plan_result.py"
_FILL: Final = f"{QUERY}/gap_fill.py"
_COMPARE: Final = f"{QUERY}/validate/compare.py"
_BUCKETS: Final = f"{QUERY}/sql/time_buckets.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Top and others
    WrongEngine("custom", "one group too many", _TOP, "limit=top - 1", "limit=top"),
    WrongEngine(
        "custom",
        "top is chosen from a page",
        _TOP,
        "        offset=0,\n",
        "        offset=plan.offset,\n",
    ),
    WrongEngine("custom", "top is chosen after having", _TOP, "        having=(),\n", ""),
    WrongEngine(
        "custom",
        "top is chosen by the default order",
        _TOP,
        "tuple(key for key in plan.order_by if key.output_name != DATE_OUTPUT_NAME)",
        "()",
    ),
    WrongEngine(
        "custom",
        "the group without a value is never a top one",
        _TOP,
        'parts += [f"isNull({column})", f"ifNull({column}, {_WHEN_NULL[kind]})"]',
        "parts.append(column)",
    ),
    WrongEngine(
        "custom",
        "null and the number 0 are one top group",
        _TOP,
        'parts += [f"isNull({column})", f"ifNull({column}, {_WHEN_NULL[kind]})"]',
        'parts.append(f"ifNull({column}, {_WHEN_NULL[kind]})")',
    ),
    WrongEngine(
        "custom",
        "the limit holds for others",
        _TOP,
        'f"WHERE NOT {IS_TOP} OR (position > {first} AND position <= {last})"',
        'f"WHERE position > {first} AND position <= {last}"',
    ),
    WrongEngine(
        "custom",
        "having holds for others",
        _COMPILE,
        'conditions = [f"(NOT {IS_TOP} OR {condition})" for condition in conditions]',
        "pass",
    ),
    WrongEngine(
        "custom",
        "totals are those of the top groups",
        _COMPILE,
        "return plan.others or plan.totals",
        "return plan.others",
    ),
    WrongEngine(
        "custom",
        "others come as the store returns them",
        _RESULT,
        "key=itemgetter(0))",
        "key=lambda _: 0)",
    ),
    WrongEngine(
        "custom",
        "others that only the compared range has are shown",
        _RESULT,
        "    if not any(plan.compare is None or row[-2] for row in rows):\n",
        "    if not rows:\n",
    ),
    # Compare
    WrongEngine(
        "custom",
        "the period before overlaps by a day",
        _COMPARE,
        "(last - first).days + 1)",
        "(last - first).days)",
    ),
    WrongEngine(
        "custom",
        "29 February becomes the 27th",
        _COMPARE,
        "day=28 if is_leap_day",
        "day=27 if is_leap_day",
    ),
    WrongEngine(
        "custom",
        "groups of the compared range alone are rows",
        _COMPILE,
        'return [f"{columns[-len(ROW_COUNTS)]} > 0", *conditions]',
        "return conditions",
    ),
    WrongEngine(
        "custom",
        "a missing row is compared with zero",
        _RESULT,
        "is_present else [*row[:-width], *[None] * width]",
        "is_present else [*row[:-width], *[0] * width]",
    ),
    WrongEngine(
        "custom",
        "buckets are compared by their date",
        _COMPILE,
        "if({source.current}, 0, {shift}))",
        "if({source.current}, 0, {shift} * 0))",
    ),
    WrongEngine(
        "custom",
        "having holds for what rows are compared with",
        _COMPILE,
        "for planned in plan.having\n    ]\n\n\ndef _having_conditions",
        "for planned in plan.having\n    ] + "
        "[f'{columns[-1]} > 0' for _ in plan.having if plan.compare]\n\n\ndef _having_conditions",
    ),
    WrongEngine(
        "custom",
        "the filled compared range has every group of the result",
        _FILL,
        "[row for row in rows if row[-1]]",
        "list(rows)",
    ),
    WrongEngine(
        "custom",
        "the filled range has groups of the compared one",
        _FILL,
        "[row for row in rows if row[-2]]",
        "rows",
    ),
    WrongEngine(
        "custom",
        "the clock of the range alone holds for both",
        _BUCKETS,
        "replace(days, offsets=_joint_offsets(days, compared))",
        "days",
    ),
    # Totals
    WrongEngine(
        "custom",
        "totals have no comparison",
        _RESULT,
        "totals[PREVIOUS_OUTPUT_NAME] = dict(zip(names, values[len(names) :], strict=True))",
        "totals[PREVIOUS_OUTPUT_NAME] = dict(zip(names, values, strict=False))",
    ),
    WrongEngine(
        "custom",
        "the totals are those of the first row",
        _RESULT,
        "row = selected.rows[0] if is_row_of_totals(plan) else selected.totals",
        "row = selected.rows[0] if selected.rows else selected.totals",
    ),
)
