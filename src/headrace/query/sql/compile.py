"""Compile a plan to one statement with bound parameters.

The text depends only on the shape of the plan: its table, columns, aggregates, operators and order
keys; how its filters are grouped, and those of its selects; whether an operator's values are texts
or numbers; the number of dots in a property's key and whether the key begins like a separator of
JSON; how often clocks change within the range, whether they go back across midnight at one of its
ends, and whether it starts and ends within one UTC day; the same of a compared range, and whether
the two overlap; whether the daily rollup has all that is read, and how many days the ranges divide;
whether top groups are chosen, and the others asked for. Every value is bound, the website exactly
once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.model.catalog import QUERY_LIMITS, Operator
from headrace.model.plan import CompiledQuery, Granularity, OutputKind, PlannedHaving, QueryPlan
from headrace.ports.store import Dialect
from headrace.query.sql.bots import write_bot_rule
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.conditions import OPERATORS, write_condition
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.order_by import OrderKey, order_keys, write_order
from headrace.query.sql.outputs import (
    IS_TOP,
    ROW_COUNTS,
    first_select,
    is_row_of_totals,
    list_outputs,
)
from headrace.query.sql.sources.tables import Ranges, Source, build_source
from headrace.query.sql.sources.visible_rows import VisibleRows, bind_visible_rows
from headrace.query.sql.time_buckets import bind_ranges, bucket_expr
from headrace.query.sql.top_groups import exact_key, ranking_plan, write_page_of_top
from headrace.query.validate.day_range import bucket_shift, buckets_of


def compile_query(plan: QueryPlan, dialect: Dialect) -> CompiledQuery:
    """Return the statement of a plan in a store's dialect.

    Its columns are `date`, the groups and the selects, in this order. It reads one row more than
    the limit, which shows whether the result is truncated. With `fill` it reads from the first row
    up to one more than a filled result may have, because offset and limit apply after filling. With
    `totals` it also has a row over all groups, before having; without groups its row is that. With
    `others` all rows of other groups follow, one for each bucket.
    """
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    ranges = bind_ranges(
        plan.range, plan.compare, parameters, is_bucketed=plan.granularity is not None
    )
    scope = _Scope(parameters, visible, ranges, dialect)
    sql = _write_statement(plan, scope)
    return CompiledQuery(
        sql, parameters.values, list_outputs(plan), plan.website_id, _max_rows(plan)
    )


class _Scope(NamedTuple):
    """What a statement and the subqueries in it share."""

    parameters: Parameters
    visible: VisibleRows
    ranges: Ranges
    dialect: Dialect


def _write_statement(plan: QueryPlan, scope: _Scope) -> str:
    parameters = scope.parameters
    source = build_source(
        plan,
        scope.visible,
        scope.ranges,
        parameters,
        is_distributed=scope.dialect.is_distributed,
    )
    expressions = Expressions(parameters, scope.dialect, source.rows)
    columns, bots = write_columns(plan, source, expressions)
    filters = [write_condition(planned, expressions) for planned in plan.filters]
    aliases = [f"c{index}" for index in range(len(columns))]
    groups = aliases[: first_select(plan)]
    top = _write_top(plan, scope, expressions)
    is_filtered = bool(top) and not _keeps_others(plan)
    if top and not is_filtered:
        first_group = 1
        for index in range(first_group, first_group + len(plan.group_by)):
            columns[index] = f"if({IS_TOP}, {columns[index]}, NULL)"
        groups = [*groups, IS_TOP]
    rows = statement(
        clause("WITH", ",", [*source.definitions, *expressions.properties.definitions, *top]),
        clause(
            "SELECT",
            ",",
            [
                *(f"{sql} AS {alias}" for sql, alias in zip(columns, aliases, strict=True)),
                *([IS_TOP] if plan.others else []),
            ],
        ),
        f"FROM {source.table}",
        clause(
            "WHERE",
            " AND",
            [*source.conditions, *bots, *filters, *([IS_TOP] if is_filtered else [])],
        ),
        clause("GROUP BY", ",", groups),
        "WITH TOTALS" if groups and plan.totals else "",
        clause("HAVING", " AND", _having_conditions(plan, aliases, parameters)),
    )
    outputs = list_outputs(plan)[: first_select(plan) + len(plan.selects)]
    keys = order_keys(plan, outputs) if groups else ()
    if plan.others:
        page = _page(plan)
        first = parameters.bind(page.start, "UInt64")
        last = parameters.bind(page.stop, "UInt64")
        return write_page_of_top(rows, aliases, write_order(keys, aliases), first, last)
    return statement(
        _wrap_in_subquery(rows, keys), _order_clause(keys, aliases), _limit_clause(plan, parameters)
    )


def _keeps_others(plan: QueryPlan) -> bool:
    """Return whether rows of other groups than the top ones count, in others or in totals."""
    return plan.others or plan.totals


def _write_top(plan: QueryPlan, scope: _Scope, expressions: Expressions) -> list[str]:
    """Return the definition of `is_top`: whether a row is of a top group; nothing without `top`.

    Which groups these are is a query of its own over the range, without buckets.
    """
    if plan.top is None:
        return []
    ranked = ranking_plan(plan, plan.top)
    current, _ = scope.ranges
    ranking = _write_statement(ranked, scope._replace(ranges=(current, None)))
    kinds = [output.kind for output in list_outputs(ranked)[: len(plan.group_by)]]
    keys = exact_key([f"c{index}" for index in range(len(kinds))], kinds)
    groups = statement(f"SELECT {keys}", f"FROM {subquery(ranking)}")
    in_operator = "GLOBAL IN" if scope.dialect.is_distributed else "IN"
    key = exact_key([expressions.value(column) for column in plan.group_by], kinds)
    return [f"({key} {in_operator} {subquery(groups)}) AS {IS_TOP}"]


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
    conditions = write_having(plan, columns[first_select(plan) :], parameters)
    if plan.others:
        conditions = [f"(NOT {IS_TOP} OR {condition})" for condition in conditions]
    elif plan.top is not None and _keeps_others(plan):
        conditions = [IS_TOP, *conditions]
    if plan.compare is None or plan.fill or not plan.has_groups:
        return conditions
    return [f"{columns[-len(ROW_COUNTS)]} > 0", *conditions]


def _max_rows(plan: QueryPlan) -> int:
    """Return the most rows that the statement may return."""
    rows = _max_filled_rows(plan) + 1
    if plan.others and plan.granularity is not None:
        rows += sum(len(buckets_of(days, plan.granularity)) for days in plan.ranges)
    return rows


def _max_filled_rows(plan: QueryPlan) -> int:
    """Return the most rows that a result is made of: with `fill`, the keys of both ranges."""
    is_compared = plan.fill and plan.compare is not None
    return QUERY_LIMITS["maxLimit"] * (2 if is_compared else 1)


def _compare_select(planned: PlannedHaving, columns: Sequence[str], parameters: Parameters) -> str:
    value = parameters.bind(planned.value, "Float64")
    return OPERATORS[planned.operator].format(column=columns[planned.index], value=value)


def write_columns(
    plan: QueryPlan, source: Source, expressions: Expressions
) -> tuple[list[str], tuple[str, ...]]:
    """Return the SQL of the columns that `list_outputs` lists, and the rule on bots for rows.

    Both ranges of a comparison are read in one scan.
    """
    own_conditions = [
        [write_condition(planned, expressions) for planned in expressions.own_filters(select)]
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


def _page(plan: QueryPlan) -> range:
    """Return which rows are read: those of the page and one more, or all where it is cut later."""
    rows = _max_filled_rows(plan) if plan.fill else plan.limit
    offset = 0 if plan.fill or is_row_of_totals(plan) else plan.offset
    return range(offset, offset + rows + 1)


def _limit_clause(plan: QueryPlan, parameters: Parameters) -> str:
    page = _page(plan)
    limit = parameters.bind(len(page), "UInt64")
    offset = parameters.bind(page.start, "UInt64")
    return f"LIMIT {limit} OFFSET {offset}"
