"""Compile a retention query to one statement with bound parameters (ADR 30).

The text depends on the shape of the plan alone; every value is bound, the website exactly once.
"""

from headrace.model.plan import CompiledQuery, Granularity, Output, OutputKind
from headrace.ports.store import Dialect
from headrace.query.retention.plan import RetentionPlan
from headrace.query.sql.builder import Parameters, clause, select_from, statement, subquery
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.paths import select_paths, step_bits, step_condition
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import BUCKET_KINDS, bind_range, bucket_expr

# A returning event comes after the first one. Where clocks go back across midnight, a later event
# can have an earlier date, which is no later bucket.
_RETURNED = """arrayDistinct(arrayMap(
    bucket -> bucket - cohort,
    arrayFilter(
        (bucket, bits, position) -> bitTest(bits, 1)
            AND position > first_position
            AND bucket >= cohort,
        buckets,
        steps,
        arrayEnumerate(steps)
    )
)) AS returned"""


def compile_retention(plan: RetentionPlan, dialect: Dialect) -> CompiledQuery:
    """Return the statement of a plan in a store's dialect.

    It has a row for each cohort, by date: the bucket, how many are in it, and for each period how
    many of them returned in it.
    """
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    range_parameters = bind_range(plan.read_range, parameters, is_bucketed=True)
    last_day = parameters.bind(plan.range.last_day, "Int64")
    expressions = Expressions(parameters, dialect)
    first = step_condition(
        plan.first, expressions, f"{bucket_expr(Granularity.DAILY)} <= {last_day}"
    )
    returning = step_condition(plan.returning, expressions)
    paths = select_paths(
        by=plan.by,
        visible=visible,
        range_parameters=range_parameters,
        expressions=expressions,
        bits=step_bits([first, returning]),
        values=(bucket_expr(plan.granularity),),
    )
    histories = select_from(
        paths,
        ["hits.3 AS steps", "hits.4 AS buckets"],
        ["*", "arrayFirstIndex(bits -> bitTest(bits, 0), steps) AS first_position"],
        ["*", "buckets[first_position] AS cohort"],
        ["cohort", _RETURNED],
    )
    periods = parameters.bind(plan.periods, "UInt16")
    sql = statement(
        clause(
            "SELECT",
            ",",
            [
                "cohort AS c0",
                "count() AS c1",
                f"sumForEach(arrayMap(period -> has(returned, period), range({periods}))) AS c2",
            ],
        ),
        f"FROM {subquery(histories)}",
        "GROUP BY cohort",
        "ORDER BY cohort",
    )
    outputs = (
        Output("date", BUCKET_KINDS[plan.granularity]),
        Output("size", OutputKind.NUMBER),
        Output("returned", OutputKind.NUMBERS),
    )
    return CompiledQuery(sql, parameters.values, outputs, plan.website_id)
