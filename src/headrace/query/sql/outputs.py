"""The columns of a plan's statement: their names, kinds and positions."""

from headrace.model.catalog import DATE_OUTPUT_NAME, DATETIME_AGGREGATES, PREVIOUS_OUTPUT_NAME
from headrace.model.plan import Output, OutputKind, QueryPlan
from headrace.query.sql.expressions import OUTPUT_KINDS
from headrace.query.sql.time_buckets import BUCKET_KINDS

ROW_COUNTS = ("rows", "compared rows")
"""The names of the last columns of a comparison, which are not those of the result."""

IS_TOP = "is_top"
"""The last column of a query with `others`: whether a row is of a top group, or of all others."""


def list_outputs(plan: QueryPlan) -> tuple[Output, ...]:
    """Return the columns of a plan's statement: `date`, the groups, the selects.

    Those of a comparison follow: the selects in the compared range, then how many rows count in
    each range. The last one tells top groups from others, where these are asked for.
    """
    outputs: list[Output] = []
    if plan.granularity is not None:
        outputs.append(Output(DATE_OUTPUT_NAME, BUCKET_KINDS[plan.granularity]))
    outputs += [Output(column.name, OUTPUT_KINDS[column.kind]) for column in plan.group_by]
    selects = [
        (
            select.alias,
            OutputKind.DATETIME if select.aggregate in DATETIME_AGGREGATES else OutputKind.NUMBER,
        )
        for select in plan.selects
    ]
    outputs += [Output(alias, kind) for alias, kind in selects]
    if plan.compare is not None:
        outputs += [Output(f"{PREVIOUS_OUTPUT_NAME}.{alias}", kind) for alias, kind in selects]
        outputs += [Output(name, OutputKind.NUMBER) for name in ROW_COUNTS]
    if plan.others:
        outputs.append(Output(IS_TOP, OutputKind.BOOLEAN))
    return tuple(outputs)


def first_select(plan: QueryPlan) -> int:
    """Return the position of the first select, after `date` and the groups."""
    return len(plan.group_by) + (plan.granularity is not None)


def is_row_of_totals(plan: QueryPlan) -> bool:
    """Return whether the statement reads only the totals: having and offset apply to its row."""
    return plan.totals and not plan.has_groups
