"""Compile a retention query to one statement with bound parameters (ADR 30).

The text depends on the shape of the plan alone; every value is bound, the website exactly once.
"""

from headrace.model.plan import CompiledQuery, Granularity, Output, OutputKind
from headrace.ports.store import Dialect
from headrace.query.retention.plan import RetentionPlan
from headrace.query.sql.builder import Parameters, clause, select_from, statement, subquery
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.paths import (
    EPOCH_MS,
    GATHERED_IDS,
    hits_in_order,
    select_paths,
    step_bits,
    step_condition,
)
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import BUCKET_KINDS, bind_range, bucket_expr

_BELOW_MS = 20
"""Bits of a hit below its milliseconds: 18 for its bucket, of which there are less than 120,600."""

_HIT = f"{EPOCH_MS} * {1 << _BELOW_MS} + toUInt64({{bucket}}) * 4 + bits"
_BUCKET = "toInt32(bitAnd(bitShiftRight({hit}, 2), 262143))"

# A returning event comes after the first one. Where clocks go back across midnight, a later event
# can have an earlier date, which is no later bucket: the difference is negative.
_COHORT = f"{_BUCKET.format(hit='hits[first_position]')} AS cohort"
_RETURNED = f"""arrayDistinct(arrayMap(
    hit -> {_BUCKET.format(hit="hit")} - cohort,
    arrayFilter(hit -> bitTest(hit, 1), arraySlice(hits, first_position + 1))
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
    # If the same filters make first and returning events, those of one millisecond are alike.
    is_arrival_needed = plan.first != plan.returning
    sorted_hits = "arraySort(groupArray(hit))"
    paths = select_paths(
        by=plan.by,
        visible=visible,
        range_parameters=range_parameters,
        expressions=expressions,
        bits=step_bits([first, returning]),
        hit=_HIT.format(bucket=bucket_expr(plan.granularity)),
        columns=[
            f"{sorted_hits} AS by_time",
            "groupArray(hit) AS gathered",
            GATHERED_IDS,
        ]
        if is_arrival_needed
        else [f"{sorted_hits} AS hits"],
    )
    histories = select_from(
        paths,
        *([["*", hits_in_order(_BELOW_MS)]] if is_arrival_needed else []),
        ["hits", "arrayFirstIndex(hit -> bitTest(hit, 0), hits) AS first_position"],
        ["*", _COHORT],
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
