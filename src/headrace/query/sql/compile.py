"""Compile a plan to one statement with bound parameters.

The text depends only on the shape of the plan: its table, columns, aggregates, operators and order
keys; how its filters are grouped, and those of its selects; whether an operator's values are texts
or numbers; the number of dots in a property's key and whether the key begins like a separator of
JSON; how often clocks change within the range, whether they go back across midnight at one of its
ends, and whether it starts and ends within one UTC day; the same of a compared range, and whether
the two overlap. Every value is bound, the website exactly once.
"""

from collections.abc import Sequence

from headrace.model.catalog import (
    DATE_OUTPUT_NAME,
    DATETIME_AGGREGATES,
    PREVIOUS_OUTPUT_NAME,
    QUERY_LIMITS,
    Operator,
)
from headrace.model.plan import (
    CompiledQuery,
    Granularity,
    Output,
    OutputKind,
    PlannedHaving,
    QueryPlan,
)
from headrace.ports.store import Dialect
from headrace.query.sql.bots import write_bot_rule
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.conditions import OPERATORS, write_condition
from headrace.query.sql.expressions import OUTPUT_KINDS, Expressions
from headrace.query.sql.order_by import OrderKey, order_keys, write_order
from headrace.query.sql.sources import Source, build_source
from headrace.query.sql.time_buckets import BUCKET_KINDS, bind_ranges, bucket_expr
from headrace.query.sql.visible_rows import bind_visible_rows
from headrace.query.validate.day_range import bucket_shift

ROW_COUNTS = ("rows", "compared rows")
"""The names of the last columns of a comparison, which are not those of the result."""


def compile_query(plan: QueryPlan, dialect: Dialect) -> CompiledQuery:
    """Return the statement of a plan in a store's dialect.

    Its columns are `date`, the groups and the selects, in this order. It reads one row more than
    the limit, which shows whether the result is truncated. With `fill` it reads from the first row
    up to one more than a filled result may have, because offset and limit apply after filling. With
    `totals` it also has a row over all groups, before having; without groups its row is that.
    """
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    ranges = bind_ranges(
        plan.range, plan.compare, parameters, is_bucketed=plan.granularity is not None
    )
    source = build_source(plan, visible, ranges, parameters, is_distributed=dialect.is_distributed)
    expressions = Expressions(parameters, dialect)
    outputs = list_outputs(plan)
    columns, bots = write_columns(plan, source, expressions)
    filters = [write_condition(planned, expressions) for planned in plan.filters]
    aliases = [f"c{index}" for index in range(len(columns))]
    groups = aliases[: _first_select(plan)]
    rows = statement(
        clause("WITH", ",", [*source.definitions, *expressions.properties.definitions]),
        clause(
            "SELECT",
            ",",
            [f"{sql} AS {alias}" for sql, alias in zip(columns, aliases, strict=True)],
        ),
        f"FROM {source.table}",
        clause("WHERE", " AND", [*source.conditions, *bots, *filters]),
        clause("GROUP BY", ",", groups),
        "WITH TOTALS" if groups and plan.totals else "",
        clause("HAVING", " AND", _having_conditions(plan, aliases, parameters)),
    )
    keys = order_keys(plan, outputs[: _first_select(plan) + len(plan.selects)]) if groups else ()
    sql = statement(
        _wrap_in_subquery(rows, keys), _order_clause(keys, aliases), _limit_clause(plan, parameters)
    )
    max_rows = _max_filled_rows(plan) + 1
    return CompiledQuery(sql, parameters.values, outputs, plan.website_id, max_rows)


def write_having(plan: QueryPlan, columns: Sequence[str], parameters: Parameters) -> list[str]:
    """Return the conditions for rows of the result; `columns` are the SQL names of the selects."""
    return [
        f"ifNull({_compare_select(planned, columns, parameters)},"
        f" {'true' if planned.operator is Operator.NE else 'false'})"
        for planned in plan.having
    ]


def _having_conditions(
    plan: QueryPlan, columns: Sequence[str], parameters: Parameters
) -> list[str]:
    """Return the conditions, except where the one row of the result is also its totals."""
    if is_row_of_totals(plan):
        return []
    conditions = write_having(plan, columns[_first_select(plan) :], parameters)
    if plan.compare is None or plan.fill or not plan.has_groups:
        return conditions
    return [f"{columns[-2]} > 0", *conditions]


def _first_select(plan: QueryPlan) -> int:
    return len(plan.group_by) + (plan.granularity is not None)


def _max_filled_rows(plan: QueryPlan) -> int:
    """Return the most rows that a result is made of: with `fill`, the keys of both ranges."""
    is_compared = plan.fill and plan.compare is not None
    return QUERY_LIMITS["maxLimit"] * (2 if is_compared else 1)


def is_row_of_totals(plan: QueryPlan) -> bool:
    """Return whether the statement reads only the totals: having and offset apply to its row."""
    return plan.totals and not plan.has_groups


def _compare_select(planned: PlannedHaving, columns: Sequence[str], parameters: Parameters) -> str:
    value = parameters.bind(planned.value, "Float64")
    return OPERATORS[planned.operator].format(column=columns[planned.index], value=value)


def list_outputs(plan: QueryPlan) -> tuple[Output, ...]:
    """Return the columns of a plan's statement: `date`, the groups, the selects.

    Those of a comparison come last: the selects in the compared range, then how many rows count in
    each range.
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
    return tuple(outputs)


def write_columns(
    plan: QueryPlan, source: Source, expressions: Expressions
) -> tuple[list[str], tuple[str, ...]]:
    """Return the SQL of the columns that `list_outputs` lists, and the rule on bots for rows.

    Both ranges of a comparison are read in one scan.
    """
    own_conditions = [
        [write_condition(planned, expressions) for planned in select.filters]
        for select in plan.selects
    ]
    bots = write_bot_rule(plan, own_conditions)
    columns: list[str] = []
    if plan.granularity is not None:
        columns.append(_write_bucket(plan, plan.granularity, source, expressions.parameters))
    columns += [expressions.value(column) for column in plan.group_by]
    for counts in [source.current] if plan.compare is None else [source.current, source.compared]:
        in_range = [counts] if counts else []
        columns += [
            expressions.aggregate(select, [*in_range, *rule, *own])
            for select, rule, own in zip(plan.selects, bots.selects, own_conditions, strict=True)
        ]
    if plan.compare is not None:
        columns += [f"countIf({source.current})", f"countIf({source.compared})"]
    return columns, bots.rows


def _write_bucket(
    plan: QueryPlan, granularity: Granularity, source: Source, parameters: Parameters
) -> str:
    """Return the bucket of a row; one of the compared range has that of the same number."""
    bucket = bucket_expr(granularity)
    if plan.compare is None:
        return bucket
    shift = parameters.bind(bucket_shift(plan.range, plan.compare, granularity), "Int32")
    return f"toInt32({bucket} + if({source.current}, 0, {shift}))"


def _wrap_in_subquery(rows: str, keys: Sequence[OrderKey]) -> str:
    """Wrap the rows in a subquery if the order uses a property.

    The engine replaces an alias by its whole expression at every use. Ordering by a property uses
    it five times, and planning that can take longer than running the query.
    """
    if any(key.kind is OutputKind.JSON for key in keys):
        return f"SELECT *\nFROM {subquery(rows)}"
    return rows


def _order_clause(keys: Sequence[OrderKey], columns: Sequence[str]) -> str:
    return clause("ORDER BY", ",", write_order(keys, columns))


def _limit_clause(plan: QueryPlan, parameters: Parameters) -> str:
    rows = _max_filled_rows(plan) if plan.fill else plan.limit
    limit = parameters.bind(rows + 1, "UInt64")
    is_paged_here = plan.fill or is_row_of_totals(plan)
    offset = parameters.bind(0 if is_paged_here else plan.offset, "UInt64")
    return f"LIMIT {limit} OFFSET {offset}"
