"""From a plan to one statement with bound parameters. The text is made here, once, last.

It depends on the plan's shape alone: which table, columns, functions, operators and keys of the
order there are, whether an operator's values are texts or numbers, how many dots a property's key
has, how often clocks change within the range, whether they went back across midnight at an end of
it, and whether it starts and ends within a day. Every value is bound, the website exactly once.
"""

from collections.abc import Sequence

from headrace.model.catalog import DATE_OUTPUT_NAME, QUERY_LIMITS
from headrace.model.plan import CompiledQuery, Output, OutputKind, QueryPlan
from headrace.ports.store import Dialect
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.conditions import write_condition
from headrace.query.sql.expressions import OUTPUT_KINDS, Expressions
from headrace.query.sql.order_by import OrderKey, order_keys, write_order
from headrace.query.sql.sources import build_source
from headrace.query.sql.time_buckets import BUCKET_KINDS, bind_range, bucket_expr


def compile_query(plan: QueryPlan, dialect: Dialect) -> CompiledQuery:
    """Write the statement of a plan.

    Columns are `date`, the groups and the selects, in this order. One row more than the limit is
    asked for, so that the answer can tell whether there were more. A plan with `fill` asks for all
    rows from the first, and one more than a filled answer may have.
    """
    parameters = Parameters()
    website = parameters.bind(plan.website_id, "String")
    range_parameters = bind_range(plan.range, parameters, is_bucketed=plan.granularity is not None)
    source = build_source(
        plan, website, range_parameters, parameters, is_distributed=dialect.is_distributed
    )
    expressions = Expressions(parameters, dialect)
    outputs, columns = _write_columns(plan, expressions)
    filters = [write_condition(planned, expressions) for planned in plan.filters]
    aliases = [f"c{index}" for index in range(len(columns))]
    groups = aliases[: -len(plan.selects)]
    rows = statement(
        clause("WITH", ",", [*source.definitions, *expressions.properties.definitions]),
        clause(
            "SELECT",
            ",",
            [f"{sql} AS {alias}" for sql, alias in zip(columns, aliases, strict=True)],
        ),
        f"FROM {source.table}",
        clause("WHERE", " AND", [*source.conditions, *filters]),
        clause("GROUP BY", ",", groups),
    )
    keys = order_keys(plan, outputs) if groups else ()
    sql = statement(
        _wrap_in_subquery(rows, keys), _order_clause(keys, aliases), _limit_clause(plan, parameters)
    )
    return CompiledQuery(sql, parameters.values, outputs, plan.website_id)


def _write_columns(
    plan: QueryPlan, expressions: Expressions
) -> tuple[tuple[Output, ...], list[str]]:
    outputs: list[Output] = []
    columns: list[str] = []
    if plan.granularity is not None:
        outputs.append(Output(DATE_OUTPUT_NAME, BUCKET_KINDS[plan.granularity]))
        columns.append(bucket_expr(plan.granularity))
    for column in plan.group_by:
        outputs.append(Output(column.name, OUTPUT_KINDS[column.kind]))
        columns.append(expressions.value(column))
    for select in plan.selects:
        outputs.append(Output(select.alias, OutputKind.NUMBER))
        columns.append(expressions.aggregate(select))
    return tuple(outputs), columns


def _wrap_in_subquery(rows: str, keys: Sequence[OrderKey]) -> str:
    """Return rows whose columns may be named often.

    A name of SELECT stands for all of its expression wherever it is used. The order by a property
    names it five times, and to plan that takes longer than many an answer.
    """
    if any(key.kind is OutputKind.JSON for key in keys):
        return f"SELECT *\nFROM {subquery(rows)}"
    return rows


def _order_clause(keys: Sequence[OrderKey], columns: Sequence[str]) -> str:
    return clause("ORDER BY", ",", write_order(keys, columns))


def _limit_clause(plan: QueryPlan, parameters: Parameters) -> str:
    rows = QUERY_LIMITS["maxLimit"] if plan.fill else plan.limit
    limit = parameters.bind(rows + 1, "UInt64")
    offset = parameters.bind(0 if plan.fill else plan.offset, "UInt64")
    return f"LIMIT {limit} OFFSET {offset}"
